//! Loops that use the CPU and nothing else.

use core::hint::black_box;

use crate::Kernel;

/// Divides `iterations` times, as the groups of the PBG report's cases do.
#[inline(never)]
pub fn divide(iterations: u64) {
    let (mut number, divisor) = (u64::MAX, black_box(3u64));
    for i in 0..iterations {
        number = black_box(number / divisor + i);
    }
}

/// Shifts and adds `iterations` times, as the groups of its unequal case do.
#[inline(never)]
pub fn shift(iterations: u64) {
    let mut number = u64::MAX;
    for i in 0..iterations {
        number = black_box((number << 1) ^ i);
    }
}

/// How many iterations of [`shift`] tell its speed, where nothing else is known of the CPU.
pub const CALIBRATION: u64 = 100_000;

/// Uses CPU time by the nanosecond, at the speed that it has measured.
#[derive(Clone, Copy, Debug)]
pub struct Burner {
    /// How many picoseconds an iteration of [`shift`] takes.
    iteration: u64,
}

impl Burner {
    /// Measures this CPU.
    pub fn calibrated<K: Kernel>() -> Burner {
        let iterations = K::calibration();
        let once = |_| {
            let start = K::cpu_time();
            shift(iterations);
            K::cpu_time() - start
        };
        // Where nothing interrupts it.
        let least = (0..4).map(once).min().unwrap_or(1);
        Burner { iteration: (least * 1000 / iterations).max(1) }
    }

    /// Uses `nanoseconds` of CPU time.
    pub fn burn(&self, nanoseconds: u64) {
        shift(nanoseconds * 1000 / self.iteration);
    }
}
