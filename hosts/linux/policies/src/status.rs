//! The lines of a [status](anysched_wire::status).

use core::fmt::{self, Write};

use anysched_core::CpuId;
use anysched_scx::State;
use anysched_wire::status::Line;

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

/// Answers with a part of the status; after the last, with nothing.
pub fn answer(running: &Running, call: &mut Call) {
    // SAFETY: the C side gives room with this call.
    let room = unsafe { call.room() };
    let mut lines = Lines { room, used: 0 };
    let facts = (running.name.as_str(), running.cpus, heap::usage());
    let say = &mut |line: &Line| lines.push(line);
    let is_part = anysched_linux_start::part(call.cpu as usize, facts, &running.adapter, say);
    call.slice = u64::from(is_part);
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
