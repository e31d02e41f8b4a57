//! NAS EP: pairs of Gaussian deviates, made of uniform random numbers and counted by how far out
//! they lie.
//!
//! Bailey and others, "The NAS Parallel Benchmarks", NASA Ames RNR-94-007, section 2.2.1: random
//! numbers x[k+1] = 5¹³ x[k] mod 2⁴⁶ from 271828183; pairs in (−1, 1)² with t = x² + y² ≤ 1 give
//! x·√(−2 ln t / t) and y·√(−2 ln t / t).
//!
//! Arguments: `domains`, how many compute it; `class`, S (2²⁴ pairs), W (2²⁵) or A (2²⁸); or
//! `log2_pairs`.
//!
//! Values: `epN.gaussian_pairs`; with a class `epN.verified`, 1 if the sums are the published ones
//! to 10⁻⁸.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Arguments, Own, Plan};
use crate::domain::Share;
use crate::report;

/// Classes: name, log₂ of the pairs, sums of x and y (RNR-94-007, table 2.2 and its successors).
const CLASSES: [(&str, u64, f64, f64); 3] = [
    ("S", 24, -3.247_834_652_034_74e3, -6.958_407_078_382_297e3),
    ("W", 25, -2.863_319_731_645_753e3, -6.320_053_679_109_499e3),
    ("A", 28, -4.295_875_165_629_892e3, -1.580_732_573_678_431e4),
];

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan>, String> {
    let domains = arguments.number("domains", 4)?;
    let class = arguments.text("class", "");
    let found = CLASSES.iter().find(|(name, ..)| *name == class).map(|(_, pairs, ..)| *pairs);
    if found.is_none() && !class.is_empty() {
        return Err(format!("`class` = \"{class}\": S, W or A is wanted"));
    }
    let pairs = found.map_or_else(|| arguments.number("log2_pairs", 16), Ok)?;
    if !(1..=32).contains(&pairs) {
        return Err(format!("`log2_pairs` = \"{pairs}\": from 1 to 32 is wanted"));
    }
    let plan =
        |number| Plan::new(format!("ep{number}"), format!("ep pairs={pairs}"), Share::default());
    Ok((1..=domains).map(plan).collect())
}

/// The random numbers, in integers: products of 46 bits fit into 128.
struct Random(u64);

impl Random {
    const MODULUS: u64 = 1 << 46;

    fn next(&mut self) -> f64 {
        const FACTOR: u64 = 1_220_703_125;
        let product = u128::from(self.0) * u128::from(FACTOR);
        self.0 = (product % u128::from(Self::MODULUS)) as u64;
        self.0 as f64 / Self::MODULUS as f64
    }
}

/// Returns the pairs that it has made.
pub fn run(own: &Own<'_>) -> u64 {
    let log = own.number("pairs");
    let mut random = Random(271_828_183);
    let (mut x_sum, mut y_sum, mut counted) = (0.0, 0.0, 0_u64);
    for _ in 0..1_u64 << log {
        let (x, y) = (2.0 * random.next() - 1.0, 2.0 * random.next() - 1.0);
        let t = x * x + y * y;
        if t <= 1.0 {
            let factor = libm::sqrt(-2.0 * libm::log(t) / t);
            x_sum += x * factor;
            y_sum += y * factor;
            counted += 1;
        }
    }
    report::value("gaussian_pairs", counted);
    if let Some((_, _, x, y)) = CLASSES.iter().find(|(_, pairs, ..)| *pairs == log) {
        let is_near = |sum: f64, published: f64| libm::fabs((sum - published) / published) <= 1e-8;
        report::value("verified", u64::from(is_near(x_sum, *x) && is_near(y_sum, *y)));
    }
    1 << log
}
