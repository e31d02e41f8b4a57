//! What scheduling costs in Xen, measured by its program `calibrate`.

use crate::host::{HOST, Xen};
use anysched_core::Span;
use anysched_host::{Calibration, HostError, Subject};
use anysched_policies::POLICIES;
use anysched_qemu::{Calibrator, Column, Source};

/// Xen has no tick but those of schedulers. Policies without one of their own are given this.
const TICK: Span = Span::from_ms(10);

const COLUMNS: [Column; 6] = [
    Column(["yield", "alone"], Source::Time("yield_ps_1")),
    Column(["yield", "of 4"], Source::Time("yield_ps_4")),
    Column(["to an-", "other, %"], Source::Share("yield_switches_4")),
    Column(["wake-", "up"], Source::Time("wakeup_ps")),
    Column(["lost in", "10 ms"], Source::Time("interrupt_ps")),
    Column(["from", "idle"], Source::Time("preempt_ps")),
];

const NOTES: &str = "\
Nanoseconds, of which an instruction takes one, from hypercall to hypercall. Lost in 10 ms
is what a domain that computes does not get, while it is the only one.";

pub(crate) fn calibrate(host: &Xen, subjects: &[Subject]) -> Result<Calibration, HostError> {
    let calibrator = Calibrator {
        host: &HOST,
        policies: POLICIES,
        tick: TICK,
        loops: &[],
        columns: &COLUMNS,
        notes: NOTES,
        timed: false,
        boot: &|by, setup, _| host.boot_calibration(by, setup),
    };
    calibrator.calibrate(subjects)
}
