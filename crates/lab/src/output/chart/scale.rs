//! From values to places on a picture.

/// What of a picture's width or height stands for which values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The least and the largest value.
    pub(super) values: [f64; 2],
    /// Where they are.
    pub(super) ends: [f64; 2],
    pub(super) log: bool,
}

impl Scale {
    /// Where `value` is; one beyond the ends is there.
    pub(super) fn at(&self, value: f64) -> f64 {
        let [least, largest] = self.values;
        let [start, end] = self.ends;
        let size = |value| if self.log { libm::log10(value) } else { value };
        let part = match least < largest {
            true => {
                (size(value.clamp(least, largest)) - size(least)) / (size(largest) - size(least))
            }
            false => 0.5,
        };
        start + part * (end - start)
    }
}

/// Round values with their texts, the outermost of which hold `values`. With `log`, both are above
/// 0.
pub(super) fn ticks([least, largest]: [f64; 2], log: bool) -> Vec<(f64, String)> {
    let ticks = if log { powers(least, largest) } else { steps(least, largest) };
    ticks.into_iter().map(|(mantissa, exponent)| written(mantissa, exponent)).collect()
}

/// Mantissa and exponent of ten.
type Decimal = (i64, i32);

/// About five equal steps of 1, 2 or 5 times a power of ten.
fn steps(least: f64, largest: f64) -> Vec<Decimal> {
    let largest = if largest > least { largest } else { least + 1.0 };
    let range = largest - least;
    let exponent = libm::floor(libm::log10(range / 5.0)) as i32;
    let unit = libm::pow(10.0, f64::from(exponent));
    let enough = |step: &i64| *step as f64 * unit * 6.0 >= range;
    let (step, exponent) = match [1, 2, 5].into_iter().find(enough) {
        Some(step) => (step, exponent),
        None => (1, exponent + 1),
    };
    let size = written(step, exponent).0;
    let count = |value: f64| value / size;
    // A bound that is a tick but for the last digits needs no further one.
    let first = libm::floor(count(least) + 1e-9) as i64;
    let last = libm::ceil(count(largest) - 1e-9) as i64;
    (first..=last.max(first + 1)).map(|number| (number * step, exponent)).collect()
}

/// Powers of ten, over less than three of which also twice and five times each.
fn powers(least: f64, largest: f64) -> Vec<Decimal> {
    let [first, last] = [least, largest].map(|value| libm::floor(libm::log10(value)) as i32);
    let mantissas: &[i64] = if last - first < 3 { &[1, 2, 5] } else { &[1] };
    let each = |exponent| mantissas.iter().map(move |mantissa| (*mantissa, exponent));
    let all: Vec<Decimal> = (first..=last + 1).flat_map(each).collect();
    let value = |(mantissa, exponent): Decimal| mantissa as f64 * libm::pow(10.0, exponent.into());
    let below = |tick: &&Decimal| value(**tick) <= least * (1.0 + 1e-9);
    let start = all.iter().take_while(below).count().saturating_sub(1);
    let end = all.iter().position(|tick| value(*tick) >= largest * (1.0 - 1e-9));
    all[start..]
        .iter()
        .take(end.map_or(all.len(), |end| end.max(start + 1) - start + 1))
        .copied()
        .collect()
}

fn written(mantissa: i64, exponent: i32) -> (f64, String) {
    let value = mantissa as f64 * libm::pow(10.0, exponent.into());
    (value, format!("{value:.*}", (-exponent).max(0) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: [f64; 2], log: bool) -> Vec<String> {
        ticks(values, log).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_the_values() {
        assert_eq!(texts([0.0, 10.0], false), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(texts([0.0, 0.31], false), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(texts([-3.0, 4.0], false), ["-4", "-2", "0", "2", "4"]);
        assert_eq!(texts([0.0, 0.0], false), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts([3.0, 40.0], true), ["2", "5", "10", "20", "50"]);
        assert_eq!(
            texts([0.5, 20_000.0], true),
            ["0.1", "1", "10", "100", "1000", "10000", "100000"]
        );
        assert_eq!(texts([1.0, 1.0], true), ["1", "2"]);
        assert_eq!(texts([1.0, 1000.0], true), ["1", "10", "100", "1000"]);
    }

    #[test]
    fn places_are_linear_or_logarithmic() {
        let scale = |log| Scale { values: [1.0, 100.0], ends: [200.0, 0.0], log };
        assert_eq!(
            [1.0, 10.0, 100.0, 1e9].map(|value| scale(true).at(value)),
            [200.0, 100.0, 0.0, 0.0]
        );
        assert_eq!(scale(false).at(50.5), 100.0);
        let point = Scale { values: [5.0, 5.0], ends: [0.0, 10.0], log: false };
        assert_eq!(point.at(5.0), 5.0);
    }
}
