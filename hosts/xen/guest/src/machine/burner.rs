//! Work: CPU time by the nanosecond, at the speed that was measured.

use core::arch::asm;

use crate::events::Port;
use crate::shared::now;

/// How long a vCPU computes before it looks around, in nanoseconds.
const STRIDE: u64 = 4_000;

/// A vCPU's speed.
#[derive(Clone, Copy, Debug)]
pub struct Burner {
    /// Picoseconds of a round of the loop.
    round: u64,
    /// Picoseconds of looking around.
    look: u64,
}

impl Burner {
    /// Measures this vCPU. What interrupts it is left out: the best of some tries counts.
    pub fn calibrated() -> Burner {
        const LOOKS: u64 = 64;
        let time = |rounds: u64| {
            let once = |_| {
                let begin = now();
                for _ in 0..LOOKS {
                    spin(rounds);
                    core::hint::black_box(now() == u64::MAX);
                }
                (now() - begin) * 1_000 / LOOKS
            };
            (0..8).map(once).min().unwrap_or(1)
        };
        let (short, long) = (time(1_000), time(2_000));
        let round = (long.saturating_sub(short) / 1_000).max(1);
        Burner { round, look: short.saturating_sub(round * 1_000) }
    }

    /// Uses `work` nanoseconds of CPU time, unless there is an event at one of the ports or it is
    /// `until` before that. Returns how much it has used.
    pub fn burn(&self, work: u64, ports: &[Port], until: u64) -> u64 {
        let mut done = 0;
        while done < work {
            let part = STRIDE.min(work - done);
            let spun = (part * 1_000).saturating_sub(self.look);
            spin((spun / self.round).max(1));
            done += part;
            if ports.iter().any(|port| port.is_pending()) || now() >= until {
                break;
            }
        }
        done
    }
}

/// Two instructions, again and again.
fn spin(rounds: u64) {
    // SAFETY: it counts a register down.
    unsafe {
        asm!(
            "2: dec {rounds}",
            "jnz 2b",
            rounds = inout(reg) rounds => _,
            options(nomem, nostack),
        );
    }
}
