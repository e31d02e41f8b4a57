//! What scheduling costs in ArceOS, measured by its program `calibrate`.

use crate::host::{ArceOs, HOST};
use anysched_core::Span;
use anysched_host::{Calibration, HostError, Subject};
use anysched_policies::POLICIES;
use anysched_qemu::{Calibrator, Column, LOOPS, Source};

/// ArceOS's.
const TICK: Span = Span::from_ms(10);

const COLUMNS: [Column; 11] = [
    Column(["yield", "alone"], Source::Time("yield_ps_1")),
    Column(["yield", "of 4"], Source::Time("yield_ps_4")),
    Column(["to an-", "other, %"], Source::Share("yield_switches_4")),
    Column(["yield", "of 64"], Source::Time("yield_ps_64")),
    Column(["", "put"], Source::Call("put")),
    Column(["", "pick"], Source::Call("pick")),
    Column(["en-", "queue"], Source::Call("enqueue")),
    Column(["wake-", "up"], Source::Time("wakeup_ps")),
    Column(["inter-", "rupt"], Source::Time("interrupt_ps")),
    Column(["", "start"], Source::Time("start_ps")),
    Column(["", "end"], Source::Time("end_ps")),
];

const NOTES: &str = "\
Nanoseconds, of which an instruction takes one. Put, pick and enqueue are the policy's
part alone, measured with a clock around its calls; the kernel's is in all others.";

pub(crate) fn calibrate(host: &ArceOs, subjects: &[Subject]) -> Result<Calibration, HostError> {
    let calibrator = Calibrator {
        host: &HOST,
        policies: POLICIES,
        tick: TICK,
        loops: LOOPS,
        columns: &COLUMNS,
        notes: NOTES,
        timed: true,
        boot: &|by, setup, timed| host.boot_calibration(by, setup, timed),
    };
    calibrator.calibrate(subjects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_measured_by_the_first_of_the_kernels_own_rules() {
        let info = HOST.native(POLICIES)[0];
        let native = info.native.iter().find(|native| native.host == HOST.name).unwrap();
        assert_eq!(native.scheduler, HOST.schedulers.first().copied());
    }
}
