//! Events as the kernel stores them: trace-cmd and perf keep them so, with the descriptions that
//! the kernel gives of their fields (`events/sched/sched_switch/format` and the like).

use super::line::{Fields, Head, Named};
use super::{Context, Recorder, State};
use std::collections::BTreeMap;
use std::str;

/// The order of bytes in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endian {
    #[default]
    Little,
    Big,
}

impl Endian {
    /// A number of up to 8 bytes.
    pub fn number(self, bytes: &[u8]) -> u64 {
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self {
            Endian::Little => bytes.iter().rev().fold(0, add),
            Endian::Big => bytes.iter().fold(0, add),
        }
    }
}

/// Where a field is in an event.
#[derive(Clone, Copy, Debug)]
struct Field {
    offset: usize,
    size: usize,
    /// It holds the place and the length of its value.
    is_place: bool,
}

impl Field {
    fn number(self, event: &[u8], endian: Endian) -> Option<u64> {
        Some(endian.number(event.get(self.offset..self.offset.checked_add(self.size.min(8))?)?))
    }

    /// A number that may be negative.
    fn signed(self, event: &[u8], endian: Endian) -> Option<i64> {
        let bits = 64 - 8 * self.size.clamp(1, 8) as u32;
        Some((self.number(event, endian)? << bits) as i64 >> bits)
    }

    fn text(self, event: &[u8], endian: Endian) -> Option<&str> {
        let (offset, size) = match self.is_place {
            false => (self.offset, self.size),
            true => {
                let place = self.number(event, endian)? as usize;
                (place & 0xffff, place >> 16 & 0xffff)
            }
        };
        let bytes = event.get(offset..offset.checked_add(size)?)?;
        let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(match str::from_utf8(&bytes[..length]) {
            Ok(text) => text,
            Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        })
    }
}

/// A task in an event.
#[derive(Clone, Copy, Debug)]
struct TaskFields {
    comm: Field,
    pid: Field,
    prio: Field,
}

impl TaskFields {
    fn read(self, event: &[u8], endian: Endian) -> Option<Named<'_>> {
        Some(Named {
            comm: self.comm.text(event, endian)?,
            pid: self.pid.number(event, endian)? as u32,
            prio: self.prio.signed(event, endian)? as i32,
        })
    }
}

#[derive(Clone, Debug)]
enum Layout {
    Switch {
        prev: TaskFields,
        state: Field,
        letters: Letters,
        next: TaskFields,
    },
    Waking(TaskFields),
    Wakeup(TaskFields),
    WakeupNew(TaskFields),
    Fork {
        child: Field,
    },
    Exit {
        pid: Field,
    },
    Migrate {
        pid: Field,
    },
    /// Its name.
    Unused(String),
}

/// What bits of a state mean, as the event's format says: kernels differ.
#[derive(Clone, Debug, Default)]
struct Letters(Vec<(u64, char)>);

impl Letters {
    /// The pairs `{ 0x0001, "S" }` in the text by which an event is printed.
    fn of(print: &str) -> Letters {
        let pairs = print.split('{').skip(1).filter_map(|pair| {
            let (bits, letter) = pair.split_once('}')?.0.split_once(',')?;
            let bits = bits.trim();
            let bits = match bits.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => bits.parse().ok()?,
            };
            let letter = letter.trim().trim_matches('"').chars().next()?;
            (bits > 0).then_some((bits, letter))
        });
        Letters(pairs.collect())
    }

    fn state(&self, bits: u64) -> State {
        let Some(highest) = self.0.iter().map(|&(bits, _)| bits).max() else {
            return super::line::state_of_bits(bits);
        };
        let has = |wanted: &[char]| {
            self.0.iter().any(|(bit, letter)| bits & bit != 0 && wanted.contains(letter))
        };
        let known = self.0.iter().fold(0, |all, (bit, _)| all | bit);
        // What is above all letters says that it could have gone on.
        if bits & known == 0 || bits & highest.saturating_mul(2) != 0 {
            State::Ready
        } else if has(&['X', 'Z', 'x']) {
            State::Ended
        } else {
            State::Blocked
        }
    }
}

/// Fields that all events have.
#[derive(Clone, Copy, Debug)]
struct Common {
    kind: Field,
    flags: Field,
    pid: Field,
}

/// The formats of events.
#[derive(Clone, Debug, Default)]
pub struct Formats {
    endian: Endian,
    common: Option<Common>,
    /// By number.
    layouts: BTreeMap<u64, Layout>,
}

/// What interrupts an event was recorded in.
const HARDIRQ: u64 = 0x08 | 0x40;
const SOFTIRQ: u64 = 0x10;

/// The context that the flags of an event tell.
pub fn context_of(flags: u64) -> Context {
    if flags & HARDIRQ != 0 {
        Context::HardIrq
    } else if flags & SOFTIRQ != 0 {
        Context::SoftIrq
    } else {
        Context::Task
    }
}

impl Formats {
    pub fn new(endian: Endian) -> Formats {
        Formats { endian, ..Formats::default() }
    }

    /// Adds an event of a group by its description.
    ///
    /// Errors: it is one that is used, and lacks something.
    pub fn add(&mut self, group: &str, text: &str) -> Result<(), String> {
        let value = |key: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.trim().strip_prefix(key)).map(str::trim)
        };
        let (Some(name), Some(id)) = (value("name:"), value("ID:")) else { return Ok(()) };
        let Ok(id) = id.parse::<u64>() else { return Ok(()) };
        let fields: BTreeMap<&str, Field> = text.lines().filter_map(field).collect();
        let get = |key: &str| {
            let missing = || format!("the format of the event {name} has no field {key}");
            fields.get(key).copied().ok_or_else(missing)
        };
        let task = |comm, pid, prio| {
            Ok::<_, String>(TaskFields { comm: get(comm)?, pid: get(pid)?, prio: get(prio)? })
        };
        let woken = || task("comm", "pid", "prio");
        let layout = match (group, name) {
            ("sched", "sched_switch") => Layout::Switch {
                prev: task("prev_comm", "prev_pid", "prev_prio")?,
                state: get("prev_state")?,
                letters: Letters::of(value("print fmt:").unwrap_or_default()),
                next: task("next_comm", "next_pid", "next_prio")?,
            },
            ("sched", "sched_waking") => Layout::Waking(woken()?),
            ("sched", "sched_wakeup") => Layout::Wakeup(woken()?),
            ("sched", "sched_wakeup_new") => Layout::WakeupNew(woken()?),
            ("sched", "sched_process_fork") => Layout::Fork { child: get("child_pid")? },
            ("sched", "sched_process_exit") => Layout::Exit { pid: get("pid")? },
            ("sched", "sched_migrate_task") => Layout::Migrate { pid: get("pid")? },
            _ => Layout::Unused(name.to_string()),
        };
        if self.common.is_none()
            && let (Ok(kind), Ok(flags), Ok(pid)) =
                (get("common_type"), get("common_flags"), get("common_pid"))
        {
            self.common = Some(Common { kind, flags, pid });
        }
        self.layouts.insert(id, layout);
        Ok(())
    }

    /// Whether there is an event of the scheduler.
    pub fn has_switches(&self) -> bool {
        self.layouts.values().any(|layout| matches!(layout, Layout::Switch { .. }))
    }

    /// What is known of an event, and its number.
    fn layout(&self, event: &[u8]) -> (Option<&Layout>, u64) {
        let kind = self.common.and_then(|common| common.kind.number(event, self.endian));
        (kind.and_then(|kind| self.layouts.get(&kind)), kind.unwrap_or_default())
    }

    /// Whether an event is used.
    pub fn is_used(&self, event: &[u8]) -> bool {
        !matches!(self.layout(event), (None | Some(Layout::Unused(_)), _))
    }

    /// Tells `recorder` of an event that is not used.
    pub fn count(&self, event: &[u8], recorder: &mut Recorder) {
        match self.layout(event) {
            (Some(Layout::Unused(name)), _) => recorder.unused(name),
            (Some(_), _) => {}
            (None, kind) => recorder.unused(&format!("number {kind}")),
        }
    }

    /// Gives `recorder` the event that `cpu` stored at `time`.
    ///
    /// Errors: the event is cut, or its CPU has a number too high.
    pub fn take(
        &self,
        event: &[u8],
        cpu: u32,
        time: u64,
        recorder: &mut Recorder,
    ) -> Result<(), String> {
        if !self.is_used(event) {
            self.count(event, recorder);
            return Ok(());
        }
        let (Some(common), (Some(layout), _)) = (self.common, self.layout(event)) else {
            return Ok(());
        };
        let cut = || "this event ends before its fields do".to_string();
        let pid = common.pid.number(event, self.endian).ok_or_else(cut)? as u32;
        let flags = common.flags.number(event, self.endian).ok_or_else(cut)?;
        let fields = layout.read(event, self.endian).ok_or_else(cut)?;
        recorder.event(Head::new(pid, cpu, context_of(flags), time), fields)
    }
}

impl Layout {
    fn read<'a>(&self, event: &'a [u8], endian: Endian) -> Option<Fields<'a>> {
        let pid = |field: &Field| Some(field.number(event, endian)? as u32);
        Some(match self {
            Layout::Switch { prev, state, letters, next } => Fields::Switch {
                prev: prev.read(event, endian)?,
                // Of a long, the upper half is 0 or a sign.
                state: letters.state(state.number(event, endian)?),
                next: next.read(event, endian)?,
            },
            Layout::Waking(task) => Fields::Waking(task.read(event, endian)?),
            Layout::Wakeup(task) => Fields::Wakeup(task.read(event, endian)?),
            Layout::WakeupNew(task) => Fields::WakeupNew(task.read(event, endian)?),
            Layout::Fork { child } => Fields::Fork { child: pid(child)? },
            Layout::Exit { pid: field } => Fields::Exit { pid: pid(field)? },
            Layout::Migrate { pid: field } => Fields::Migrate { pid: pid(field)? },
            Layout::Unused(_) => return None,
        })
    }
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`, with tabs between.
fn field(line: &str) -> Option<(&str, Field)> {
    let (declaration, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
    let value = |key: &str| {
        let mut parts = rest.split(';').map(str::trim);
        parts.find_map(|part| part.strip_prefix(key))?.trim().parse::<usize>().ok()
    };
    let declared = declaration.split('[').next()?.trim_end();
    let name = match declaration.contains("__data_loc") {
        // `__data_loc char[] comm`
        true => declaration,
        false => declared,
    };
    let name = name.rsplit([' ', '*']).next()?;
    let is_place = declaration.contains("__data_loc");
    Some((name, Field { offset: value("offset:")?, size: value("size:")?, is_place }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_fields() {
        assert_eq!(Endian::Little.number(&[1, 2]), 0x201);
        assert_eq!(Endian::Big.number(&[1, 2]), 0x102);
        let (name, at) =
            field("\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;").unwrap();
        assert_eq!((name, at.offset, at.size, at.is_place), ("prev_comm", 8, 16, false));
        let (name, at) =
            field("\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;").unwrap();
        assert_eq!((name, at.offset, at.is_place), ("comm", 8, true));
        let number = Field { offset: 0, size: 4, is_place: false };
        assert_eq!(number.signed(&[0xff; 4], Endian::Little), Some(-1));
        assert_eq!(number.number(&[0xff; 3], Endian::Little), None);
        let event = [6, 0, 3, 0, 9, 9, b'a', b'b', 0];
        let text = Field { offset: 0, size: 4, is_place: true };
        assert_eq!(text.text(&event, Endian::Little), Some("ab"));
    }

    /// As kernels since 4.14 and before it print them.
    #[test]
    fn states_are_what_the_kernel_says() {
        let new = "\"… prev_state=%s%s …\", (REC->prev_state & ((((0x0000 | 0x0001))) - 1)) ? \
                   __print_flags(REC->prev_state, \"|\", { 0x0001, \"S\" }, { 0x0002, \"D\" }, \
                   { 0x0004, \"T\" }, { 0x0008, \"t\" }, { 0x0010, \"X\" }, { 0x0020, \"Z\" }, \
                   { 0x0040, \"P\" }, { 0x0080, \"I\" }) : \"R\"";
        let old = "__print_flags(REC->prev_state & (2048-1), \"|\", { 1, \"S\"} , { 2, \"D\" }, \
                   { 4, \"T\" }, { 8, \"t\" }, { 16, \"Z\" }, { 32, \"X\" }, { 64, \"x\" }, \
                   { 128, \"K\" }, { 256, \"W\" }, { 512, \"P\" }, { 1024, \"N\" }) : \"R\"";
        let (new, old) = (Letters::of(new), Letters::of(old));
        for (bits, in_new, in_old) in [
            (0, State::Ready, State::Ready),
            (1, State::Blocked, State::Blocked),
            (0x10, State::Ended, State::Ended),
            (0x40, State::Blocked, State::Ended),
            (0x80, State::Blocked, State::Blocked),
            (0x100, State::Ready, State::Blocked),
            (0x402, State::Blocked, State::Blocked),
            (0x800, State::Ready, State::Ready),
        ] {
            assert_eq!((new.state(bits), old.state(bits)), (in_new, in_old), "{bits:#x}");
        }
        assert_eq!(Letters::default().state(64), State::EndedOrParked);
    }
}
