//! Numbers for people: a unit and as many decimals as a column needs.

use anysched_measure::Metric;

/// How the numbers of one column are written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Format {
    /// The unit, or nothing.
    pub(super) unit: &'static str,
    factor: f64,
    decimals: usize,
}

/// Units of time, largest first.
const TIMES: [(&str, f64); 4] = [("s", 1e-9), ("ms", 1e-6), ("us", 1e-3), ("ns", 1.0)];

impl Format {
    /// For the values of `metric`.
    pub(super) fn of(metric: Metric, values: &[f64]) -> Format {
        let is_share = || {
            let name = metric.to_string();
            name == "utilisation" || name.ends_with("_ratio")
        };
        let (unit, factor) = match metric.unit() {
            "ns" => return Format::of_times(values),
            "/s" => ("/s", 1.0),
            "1" if is_share() => ("%", 100.0),
            _ => ("", 1.0),
        };
        Format { unit, factor, decimals: decimals(values.iter().map(|value| value * factor)) }
    }

    /// For times in ns.
    pub(super) fn of_times(values: &[f64]) -> Format {
        let largest = values.iter().map(|value| libm::fabs(*value)).fold(0.0, f64::max);
        let fits = |&&(_, factor): &&(&str, f64)| largest * factor >= 1.0;
        let &(unit, factor) = TIMES.iter().find(fits).unwrap_or(&TIMES[3]);
        Format { unit, factor, decimals: decimals(values.iter().map(|value| value * factor)) }
    }

    /// For numbers of no unit.
    pub(super) fn plain(values: &[f64]) -> Format {
        Format { unit: "", factor: 1.0, decimals: decimals(values.iter().copied()) }
    }

    /// One number without its unit.
    pub(super) fn number(&self, value: f64) -> String {
        let text = format!("{:.*}", self.decimals, value * self.factor);
        let is_zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
        if is_zero { text.replace('-', "") } else { text }
    }

    /// One number as it is in the unit, with all its digits.
    pub(super) fn scaled(&self, value: f64) -> f64 {
        value * self.factor
    }

    /// One number with its unit.
    pub(super) fn with_unit(&self, value: f64) -> String {
        format!("{}{}", self.number(value), self.unit)
    }
}

/// As many decimals as show four digits of the largest number and two of the smallest, from 0 to
/// 4; none if all are whole.
fn decimals(values: impl Iterator<Item = f64> + Clone) -> usize {
    let sizes = values.map(libm::fabs).filter(|value| value.is_finite() && *value > 0.0);
    if sizes.clone().all(|value| value == libm::trunc(value)) {
        return 0;
    }
    let largest = sizes.clone().fold(0.0, f64::max);
    let smallest = sizes.fold(f64::INFINITY, f64::min);
    let magnitude = |value: f64| libm::floor(libm::log10(value)) as i32;
    (3 - magnitude(largest)).max(1 - magnitude(smallest).max(-1)).clamp(0, 4) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(metric: &str, values: &[f64]) -> Vec<String> {
        let format = Format::of(Metric::named(metric, &["x"]).unwrap(), values);
        values.iter().map(|value| format.with_unit(*value)).collect()
    }

    #[test]
    fn times_have_the_unit_of_the_largest() {
        assert_eq!(shown("makespan_ns", &[251_840_000.0, 2_800_000.0]), ["251.8ms", "2.8ms"]);
        assert_eq!(shown("makespan_ns", &[1_500.0, 20.0]), ["1.500us", "0.020us"]);
        assert_eq!(shown("makespan_ns", &[0.0, 0.0]), ["0ns", "0ns"]);
        assert_eq!(shown("makespan_ns", &[-27e9]), ["-27s"]);
    }

    #[test]
    fn others_by_what_they_are() {
        assert_eq!(shown("utilisation", &[0.5, 0.987654]), ["50.00%", "98.77%"]);
        assert_eq!(shown("throughput_per_s", &[1234.56]), ["1235/s"]);
        assert_eq!(shown("migrations", &[3.0, 12.0]), ["3", "12"]);
        assert_eq!(shown("slowdown", &[1.0, 2.25]), ["1.000", "2.250"]);
        assert_eq!(Format::of_times(&[10.5]).number(-0.0001), "0.00");
    }
}
