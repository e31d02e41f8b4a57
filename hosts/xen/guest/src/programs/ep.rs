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

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Arguments, Own, Plan, Work};
use crate::{report, smp};

/// Classes: name, log₂ of the pairs, sums of x and y (RNR-94-007, table 2.2 and its successors).
const CLASSES: [(&str, u64, f64, f64); 3] = [
    ("S", 24, -3.247_834_652_034_74e3, -6.958_407_078_382_297e3),
    ("W", 25, -2.863_319_731_645_753e3, -6.320_053_679_109_499e3),
    ("A", 28, -4.295_875_165_629_892e3, -1.580_732_573_678_431e4),
];

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan<'static>>, String> {
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
    let plan = |number| Plan::new(format!("ep{number}"), format!("ep pairs={pairs}"));
    Ok((1..=domains).map(plan).collect())
}

/// The random numbers, in integers: products of 46 bits fit into 128.
struct Random(u64);

impl Random {
    const MODULUS: u64 = 1 << 46;
    const FACTOR: u64 = 1_220_703_125;

    /// The numbers after the first `skipped`.
    fn after(skipped: u64) -> Random {
        let (mut state, mut factor, mut left) = (271_828_183, Self::FACTOR, skipped);
        while left > 0 {
            if left % 2 == 1 {
                state = Self::product(state, factor);
            }
            factor = Self::product(factor, factor);
            left /= 2;
        }
        Random(state)
    }

    fn product(one: u64, other: u64) -> u64 {
        (u128::from(one) * u128::from(other) % u128::from(Self::MODULUS)) as u64
    }

    fn next(&mut self) -> f64 {
        self.0 = Self::product(self.0, Self::FACTOR);
        self.0 as f64 / Self::MODULUS as f64
    }
}

/// What pairs add up to.
#[derive(Clone, Copy, Default)]
struct Sums {
    x: f64,
    y: f64,
    pairs: u64,
    /// vCPUs that have added theirs.
    parts: usize,
}

impl Sums {
    fn of(first: u64, pairs: u64) -> Sums {
        let mut random = Random::after(2 * first);
        let mut sums = Sums { parts: 1, ..Sums::default() };
        for _ in 0..pairs {
            let (x, y) = (2.0 * random.next() - 1.0, 2.0 * random.next() - 1.0);
            let t = x * x + y * y;
            if t <= 1.0 {
                let factor = libm::sqrt(-2.0 * libm::log(t) / t);
                sums.x += x * factor;
                sums.y += y * factor;
                sums.pairs += 1;
            }
        }
        sums
    }

    fn say(&self, log: u64) {
        report::value("gaussian_pairs", self.pairs);
        if let Some((_, _, x, y)) = CLASSES.iter().find(|(_, pairs, ..)| *pairs == log) {
            let is_near = |sum: f64, right: f64| libm::fabs((sum - right) / right) <= 1e-8;
            report::value("verified", u64::from(is_near(self.x, *x) && is_near(self.y, *y)));
        }
    }
}

/// Each vCPU makes a part of the pairs. Counts them.
pub fn work(own: &Own<'_>) -> Work {
    let log = own.number("pairs");
    let all = smp::Lock::new(Sums::default());
    Box::new(move |vcpu| {
        let border = |vcpu: usize| ((1_u128 << log) * vcpu as u128 / smp::count() as u128) as u64;
        let (first, end) = (border(vcpu), border(vcpu + 1));
        let own = Sums::of(first, end - first);
        all.with(|all| {
            all.x += own.x;
            all.y += own.y;
            all.pairs += own.pairs;
            all.parts += 1;
            if all.parts == smp::count() {
                all.say(log);
            }
        });
        end - first
    })
}
