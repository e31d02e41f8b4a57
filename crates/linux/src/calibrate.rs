//! What scheduling costs in Linux, measured by its program `calibrate`.

use crate::boot::TICK;
use crate::host::{HOST, Linux};
use anysched_host::{Calibration, HostError, Subject};
use anysched_policies::POLICIES;
use anysched_qemu::{Calibrator, Column, LOOPS, Source};

const COLUMNS: [Column; 13] = [
    Column(["yield", "alone"], Source::Time("yield_ps_1")),
    Column(["yield", "of 4"], Source::Time("yield_ps_4")),
    Column(["to an-", "other, %"], Source::Share("yield_switches_4")),
    Column(["", "policy"], Source::PartOfTime("policy_of_yield_ps_4")),
    Column(["yield", "of 64"], Source::Time("yield_ps_64")),
    Column(["wake-", "up"], Source::Time("wakeup_ps")),
    Column(["", "policy"], Source::PartOfTime("policy_of_wakeup_ps")),
    Column(["inter-", "rupt"], Source::Time("interrupt_ps")),
    Column(["from", "idle"], Source::Time("idle_ps")),
    Column(["", "start"], Source::Time("start_ps")),
    Column(["", "end"], Source::Time("end_ps")),
    Column(["", "wake"], Source::Time("wake_ps")),
    Column(["pre-", "empt"], Source::Time("preempt_ps")),
];

const NOTES: &str = "\
Nanoseconds, of which an instruction takes one, from system call to system call. What
the policy's calls take of the figure before is measured by the module, and part of it.";

pub(crate) fn calibrate(host: &Linux, subjects: &[Subject]) -> Result<Calibration, HostError> {
    let calibrator = Calibrator {
        host: &HOST,
        policies: POLICIES,
        tick: TICK,
        loops: LOOPS,
        columns: &COLUMNS,
        notes: NOTES,
        timed: false,
        boot: &|by, setup, _| host.boot_calibration(by, setup),
    };
    calibrator.calibrate(subjects)
}
