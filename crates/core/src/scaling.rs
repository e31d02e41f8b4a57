//! Times that grow with the number of CPUs.

use crate::choice;
use crate::time::Span;

choice! {
    /// How a policy's times grow with the number of CPUs n, of which at most 8 count, as in Linux
    /// (`sysctl_sched_tunable_scaling`).
    pub enum Scaling {
        /// Times 1 + ⌊log2 n⌋.
        Log = "log",
        /// Not at all.
        None = "none",
        /// Times n.
        Linear = "linear",
    }
}

impl Scaling {
    /// `time` on a machine of `cpus` CPUs.
    pub fn scale(self, time: Span, cpus: usize) -> Span {
        let cpus = cpus.clamp(1, 8) as u64;
        let factor = match self {
            Scaling::Log => 1 + u64::from(cpus.ilog2()),
            Scaling::None => 1,
            Scaling::Linear => cpus,
        };
        time.scaled(factor, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_grow_up_to_8_cpus() {
        let scaled = |scaling: Scaling| {
            [1, 2, 3, 4, 7, 8, 64].map(|cpus| scaling.scale(Span::from_ms(1), cpus).0 / 1_000_000)
        };
        assert_eq!(scaled(Scaling::None), [1; 7]);
        assert_eq!(scaled(Scaling::Log), [1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(scaled(Scaling::Linear), [1, 2, 3, 4, 7, 8, 8]);
    }
}
