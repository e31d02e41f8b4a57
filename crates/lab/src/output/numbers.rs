//! Numbers for people: a unit for a column, and in it at least three significant digits of each
//! number.

use anysched_measure::Metric;

/// How the numbers of one column are written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Format {
    /// The unit, or nothing.
    pub(super) unit: &'static str,
    factor: f64,
    /// How many decimals show four digits of the largest number.
    decimals: usize,
    /// All numbers are whole, and shown without decimals.
    is_whole: bool,
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
        Format::scaled_by(factor, unit, values)
    }

    /// For times in ns.
    pub(super) fn of_times(values: &[f64]) -> Format {
        let largest = values.iter().map(|value| libm::fabs(*value)).fold(0.0, f64::max);
        let fits = |&&(_, factor): &&(&str, f64)| largest * factor >= 1.0;
        let &(unit, factor) = TIMES.iter().find(fits).unwrap_or(&TIMES[3]);
        Format::scaled_by(factor, unit, values)
    }

    /// For numbers of no unit.
    pub(super) fn plain(values: &[f64]) -> Format {
        Format::scaled_by(1.0, "", values)
    }

    fn scaled_by(factor: f64, unit: &'static str, values: &[f64]) -> Format {
        let sizes = values.iter().map(|value| libm::fabs(value * factor));
        let sizes = sizes.filter(|size| size.is_finite());
        let is_whole = sizes.clone().all(|size| size == libm::trunc(size));
        let decimals = decimals(4, sizes.fold(0.0, f64::max));
        Format { unit, factor, decimals, is_whole }
    }

    /// One number without its unit.
    pub(super) fn number(&self, value: f64) -> String {
        let value = value * self.factor;
        shown(value, if self.is_whole { 0 } else { self.decimals_of(value) })
    }

    /// A mean without its unit, and its error, `± error`, with as many decimals, if there is any:
    /// runs that do not depend on the seed have none to speak of.
    pub(super) fn parts(&self, mean: f64, ci95: Option<f64>) -> (String, String) {
        match ci95 {
            Some(ci95) if ci95 > 0.0 => self.with(mean, ci95),
            _ => (self.number(mean), String::new()),
        }
    }

    /// A mean and its error in one, if there is any.
    pub(super) fn with_error(&self, mean: f64, ci95: Option<f64>) -> String {
        joined(self.parts(mean, ci95))
    }

    /// A mean and the interval around it, though that be as narrow as 0.
    pub(super) fn interval(&self, mean: f64, ci95: Option<f64>) -> String {
        match ci95 {
            Some(ci95) => joined(self.with(mean, ci95)),
            None => self.number(mean),
        }
    }

    fn with(&self, mean: f64, ci95: f64) -> (String, String) {
        let [mean, ci95] = [mean, ci95].map(|value| value * self.factor);
        let is_whole = self.is_whole && ci95 == libm::trunc(ci95);
        let decimals = if is_whole { 0 } else { self.decimals_of(mean) };
        (shown(mean, decimals), format!("± {}", shown(ci95, decimals)))
    }

    /// As many as the column has, or as show three digits of `value`, which is in the unit.
    fn decimals_of(&self, value: f64) -> usize {
        self.decimals.max(decimals(3, libm::fabs(value)))
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

/// Nothing is measured more finely than to a nanosecond, which in seconds has nine decimals.
const MOST_DECIMALS: i32 = 9;

/// How many decimals show so many digits of a number of this size; none of one that would be shown
/// as 0.
fn decimals(digits: i32, size: f64) -> usize {
    if size < 0.5e-9 || !size.is_finite() {
        return 0;
    }
    (digits - 1 - libm::floor(libm::log10(size)) as i32).clamp(0, MOST_DECIMALS) as usize
}

fn joined((mean, error): (String, String)) -> String {
    format!("{mean} {error}").trim_end().to_string()
}

fn shown(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let is_zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    if is_zero { text.replace('-', "") } else { text }
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
        assert_eq!(shown("makespan_ns", &[251_840_000.0, 2_800_000.0]), ["251.8ms", "2.80ms"]);
        assert_eq!(shown("makespan_ns", &[1_500.0, 20.0]), ["1.500us", "0.0200us"]);
        assert_eq!(shown("makespan_ns", &[0.0, 0.0]), ["0ns", "0ns"]);
        assert_eq!(shown("makespan_ns", &[-27e9]), ["-27s"]);
    }

    #[test]
    fn others_by_what_they_are() {
        assert_eq!(shown("utilisation", &[0.5, 0.987654]), ["50.00%", "98.77%"]);
        assert_eq!(shown("throughput_per_s", &[1234.56]), ["1235/s"]);
        assert_eq!(shown("migrations", &[3.0, 12.0]), ["3", "12"]);
        assert_eq!(shown("slowdown", &[1.0, 2.25]), ["1.000", "2.250"]);
        assert_eq!(Format::of_times(&[10.5]).number(-0.0001), "-0.000100");
        assert_eq!(Format::of_times(&[10.5]).number(-0.0), "0.00");
    }

    #[test]
    fn small_numbers_keep_three_digits_beside_large_ones() {
        let values = [1.9e9, 0.012e9, 12.0, 0.0];
        assert_eq!(shown("makespan_ns", &values), ["1.900s", "0.0120s", "0.000000012s", "0.000s"]);
        assert_eq!(shown("slowdown", &[1234.5, 2.0]), ["1234", "2.00"]);
    }

    #[test]
    fn an_error_has_the_decimals_of_its_mean() {
        let format = Format::of_times(&[1.9e9, 0.012e9]);
        assert_eq!(format.with_error(1.9e9, Some(0.31e6)), "1.900 ± 0.000");
        assert_eq!(format.with_error(0.012e9, Some(0.31e6)), "0.0120 ± 0.0003");
        assert_eq!(format.with_error(0.012e9, Some(0.0)), "0.0120");
        assert_eq!(format.with_error(0.012e9, None), "0.0120");
        // Counts whose means happen to be whole.
        let counts = Format::plain(&[12.0, 2.0]);
        assert_eq!(counts.with_error(2.0, None), "2");
        assert_eq!(counts.with_error(12.0, Some(0.5)), "12.00 ± 0.50");
    }
}
