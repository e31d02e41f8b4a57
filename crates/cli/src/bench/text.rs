//! Numbers and columns as C's `printf` and a terminal show them.

/// `%.3g` of a number from 0 up to 1000, right-aligned.
pub fn three_digits(value: f64, width: usize) -> String {
    if !value.is_finite() {
        return format!("{:>width$}", "-");
    }
    let whole = if value >= 99.95 { 3 } else { 1 + usize::from(value >= 9.995) };
    let small = if value > 0.0 && value < 0.9995 {
        (-libm::floor(libm::log10(value))).max(0.0) as usize
    } else {
        0
    };
    let text = format!("{value:.*}", 3 - whole + small);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text:>width$}")
}

/// Expands each tab to the next multiple of eight columns.
pub fn expand_tabs(line: &str) -> String {
    let mut text = String::new();
    for part in line.split_inclusive('\t') {
        let Some(part) = part.strip_suffix('\t') else {
            text.push_str(part);
            continue;
        };
        text.push_str(part);
        let columns = text.chars().count();
        text.push_str(&" ".repeat(8 - columns % 8));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_c() {
        let cases = [
            (100.0, "100"),
            (99.96, "100"),
            (99.4, "99.4"),
            (50.0, "50"),
            (9.996, "10"),
            (5.034, "5.03"),
            (1.0, "1"),
            (0.5, "0.5"),
            (0.123456, "0.123"),
            (0.0123456, "0.0123"),
            (0.0, "0"),
        ];
        for (value, text) in cases {
            assert_eq!(three_digits(value, 0), text);
        }
        assert_eq!(three_digits(f64::NAN, 4), "   -");
    }

    #[test]
    fn tabs_lead_to_multiples_of_eight() {
        assert_eq!(expand_tabs("None\t1\tx"), "None    1       x");
        assert_eq!(expand_tabs("12345678\tx"), "12345678        x");
    }
}
