//! The lines of a [status](anysched_wire::status).

use alloc::string::String;
use core::fmt::{self, Write};

use anysched_core::{CpuId, Scheduler};
use anysched_scx::State;
use anysched_wire::status::{Cpu, Line};

use crate::call::Call;
use crate::heap;
use crate::running::Running;

/// Lines that fit into a piece of memory; what does not fit is left out.
struct Lines<'a> {
    room: &'a mut [u8],
    used: usize,
}

impl Lines<'_> {
    fn push(&mut self, line: &Line) {
        let before = self.used;
        if writeln!(self, "{line}").is_err() {
            self.used = before;
        }
    }
}

impl Write for Lines<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used + text.len();
        let room = self.room.get_mut(self.used..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

/// Answers with a part of the status: 0 is what is said of all, then a part for each CPU, then what
/// the policy itself tells, then nothing.
pub fn answer(running: &Running, call: &mut Call) {
    // SAFETY: the C side gives room with this call.
    let room = unsafe { call.room() };
    let mut lines = Lines { room, used: 0 };
    let (part, cpus) = (call.cpu as usize, running.cpus);
    if part == 0 {
        lines.push(&Line::Policy(running.name.clone()));
        let (used, size) = heap::usage();
        lines.push(&Line::Heap(used, size));
    } else if part <= cpus {
        cpu(running, CpuId((part - 1) as u16), &mut lines);
    } else if part == cpus + 1 {
        for (floor, count) in running.adapter.latencies().iter() {
            lines.push(&Line::Waited(floor, count.into()));
        }
        let policy = running.adapter.policy();
        policy.tally(&mut |name, number| lines.push(&Line::Tally(name.into(), number)));
        policy.learned(&mut |name, text| {
            lines.push(&Line::Learned(name.into(), String::from(text)));
        });
    }
    call.slice = u64::from(part <= cpus + 1);
    call.text_len = lines.used as u32;
}

/// A state as a number, for the kernel's dump: the name's in `states` of the BPF program, and from
/// bit 8 on the CPU.
pub fn state(state: State) -> u64 {
    let (number, cpu) = match state {
        State::New => (0, CpuId(0)),
        State::Blocked => (1, CpuId(0)),
        State::Out => (2, CpuId(0)),
        State::Ready => (3, CpuId(0)),
        State::Picked(cpu) => (4, cpu),
        State::Running(cpu) => (5, cpu),
        State::Unasked => (6, CpuId(0)),
    };
    number | u64::from(cpu.0) << 8
}

fn cpu(running: &Running, cpu: CpuId, lines: &mut Lines<'_>) {
    let adapter = &running.adapter;
    if !adapter.is_online(cpu) {
        return;
    }
    let c = adapter.counts(cpu);
    lines.push(&Line::Cpu(Cpu {
        number: cpu.0,
        task: adapter.runs(cpu).map(|task| task.0),
        queued: adapter.queued(cpu).into(),
        counts: [
            c.dispatches,
            c.kept,
            c.idle,
            c.preemptions,
            c.migrations,
            c.wakeups,
            c.kicks,
            c.undone,
            c.unasked,
        ],
    }));
}
