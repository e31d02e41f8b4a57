//! One line of a trace, in any of its spellings.

use super::{Context, State};

/// What a line is.
#[derive(Debug, PartialEq)]
pub enum Line<'a> {
    /// A scheduler event that is used.
    Event(Head<'a>, Fields<'a>),
    /// An event that is not used.
    Unused(&'a str),
    /// This many events were lost before it; `None`: an unknown number.
    Lost(Option<u64>),
    /// The machine has this many CPUs.
    Cpus(u32),
    /// A comment or an empty line.
    Nothing,
    /// Something else.
    Unknown,
}

/// What every event line begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head<'a> {
    /// The task that ran on the CPU; 0 is the idle task.
    pub pid: u32,
    /// The CPU that recorded it.
    pub cpu: u32,
    /// What that was doing.
    pub context: Context,
    /// In ns.
    pub time: u64,
    event: &'a str,
    rest: &'a str,
}

impl Head<'_> {
    /// That of an event which is no line.
    pub(crate) fn new(pid: u32, cpu: u32, context: Context, time: u64) -> Head<'static> {
        Head { pid, cpu, context, time, event: "", rest: "" }
    }
}

/// A task as an event names it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Named<'a> {
    /// Its name.
    pub comm: &'a str,
    /// Its number.
    pub pid: u32,
    /// The kernel's: 100 to 139 are nice −20 to 19, below is real-time.
    pub prio: i32,
}

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are the event's")]
pub enum Fields<'a> {
    /// `sched_switch`
    Switch { prev: Named<'a>, state: State, next: Named<'a> },
    /// `sched_waking`
    Waking(Named<'a>),
    /// `sched_wakeup`
    Wakeup(Named<'a>),
    /// `sched_wakeup_new`
    WakeupNew(Named<'a>),
    /// `sched_process_fork`
    Fork { child: u32 },
    /// `sched_process_exit`
    Exit { pid: u32 },
    /// `sched_migrate_task`
    Migrate { pid: u32 },
}

/// Longer names do not occur, so the search for their end is bounded.
const MAX_COMM: usize = 64;

/// Reads a line. Errors: a scheduler event that is not understood, and what was expected.
pub fn parse(line: &str) -> Result<Line<'_>, String> {
    let trimmed = line.trim_start();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Ok(cpus_in_comment(trimmed).map_or(Line::Nothing, Line::Cpus));
    }
    let Some((head, time)) = find_head(line) else {
        return Ok(other(trimmed));
    };
    let Some(expected) = expected(head.event) else {
        return Ok(Line::Unused(head.event));
    };
    let time = nanoseconds(time).ok_or_else(|| match time.contains('.') {
        true => format!("the time `{time}` is longer than 584 years"),
        false => format!(
            "the time `{time}` is not in seconds with a fraction; record with a clock such as \
             mono or local"
        ),
    })?;
    if head.cpu >= anysched_core::MAX_CPUS as u32 {
        return Err(format!("CPU {}: CPUs are numbered 0 to 1023", head.cpu));
    }
    let fields = fields(head.event, head.rest.trim())
        .ok_or_else(|| format!("{} is not understood; it is `{expected}`", head.event))?;
    Ok(Line::Event(Head { time, ..head }, fields))
}

/// When an event of any kind was, in ns, if `line` is of one.
pub fn time(line: &str) -> Option<u64> {
    nanoseconds(find_head(line)?.1)
}

/// `#P:8` in the header of the kernel's `trace` file.
fn cpus_in_comment(line: &str) -> Option<u32> {
    line.rsplit_once("#P:")?.1.trim().parse().ok()
}

fn other(line: &str) -> Line<'_> {
    if let Some(cpus) = line.strip_prefix("cpus=") {
        return cpus.trim().parse().map_or(Line::Unknown, Line::Cpus);
    }
    if line.starts_with("version =") || line.starts_with("CPU ") && line.ends_with(" is empty") {
        return Line::Nothing;
    }
    // `CPU:1 [LOST 12 EVENTS]` (kernel), `CPU:1 [12 EVENTS DROPPED]` (trace-cmd).
    if line.starts_with("CPU") && (line.contains("LOST") || line.contains("DROPPED")) {
        let within = line.split_once('[').map_or("", |(_, within)| within);
        let number = within.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty());
        return Line::Lost(number.and_then(|word| word.parse().ok()));
    }
    Line::Unknown
}

/// The head of an event line and its time as it is written.
///
/// A name may hold anything, even what looks like a head; at 15 bytes at most it is too short for a
/// whole one, so the first that fits is the head.
fn find_head(line: &str) -> Option<(Head<'_>, &str)> {
    line.match_indices('[').find_map(|(at, _)| head_at(&line[..at], &line[at + 1..]))
}

fn head_at<'a>(left: &'a str, right: &'a str) -> Option<(Head<'a>, &'a str)> {
    let (cpu, rest) = number::<u32>(right)?;
    if !(3..=5).contains(&(right.len() - rest.len())) {
        return None;
    }
    let mut rest = rest.strip_prefix(']')?.trim_start();
    let pid = pid_before(left)?;
    let mut context = Context::Unknown;
    if let Some((flags, after)) = rest.split_once(' ')
        && let Some(known) = context_of(flags)
    {
        (context, rest) = (known, after.trim_start());
    }
    let (time, mut rest) = rest.split_once(':')?;
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, "0"));
    if !all_digits(seconds) || !all_digits(fraction) {
        return None;
    }
    rest = rest.trim_start();
    // perf can print a count before the name.
    if let Some((count, after)) = rest.split_once(' ')
        && all_digits(count)
    {
        rest = after.trim_start();
    }
    let (event, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let event = event.strip_suffix(':')?;
    let event = event.strip_prefix("sched:").unwrap_or(event);
    Some((Head { pid, cpu, context, time: 0, event, rest }, time))
}

/// The number of the task at the end of `comm-12 `, `comm 12 ` or `comm 11/12 `, and with a
/// process's number in parentheses behind it.
fn pid_before(left: &str) -> Option<u32> {
    let mut left = left.trim_end();
    if let Some(group) = left.strip_suffix(')')
        && let group = group.trim_end_matches(|c: char| c.is_ascii_digit() || " -".contains(c))
        && let Some(before) = group.strip_suffix('(')
    {
        left = before.trim_end();
    }
    let digits = left.len() - left.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (before, pid) = left.split_at(digits);
    if !before.ends_with([' ', '-', '/']) {
        return None;
    }
    pid.parse().ok()
}

/// Reads the column of flags: irqs off, need-resched, context, preemption depth and, from kernel
/// 5.15 on, migration disabled. The third tells.
fn context_of(flags: &str) -> Option<Context> {
    if !(4..=6).contains(&flags.len()) || flags.contains(':') {
        return None;
    }
    match flags.as_bytes()[2] {
        b'.' | b'-' => Some(Context::Task),
        b's' => Some(Context::SoftIrq),
        b'h' | b'H' | b'z' | b'Z' => Some(Context::HardIrq),
        _ => None,
    }
}

/// `sec.fraction` in ns; digits after the ninth are cut. `None`: no fraction, or out of range.
fn nanoseconds(time: &str) -> Option<u64> {
    let (seconds, fraction) = time.split_once('.')?;
    let nine = &fraction[..fraction.len().min(9)];
    let below: u64 = nine.parse().ok()?;
    let below = below * 10u64.pow(9 - nine.len() as u32);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(below)
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The form of an event that is used, for errors.
fn expected(event: &str) -> Option<&'static str> {
    Some(match event {
        "sched_switch" => {
            "prev_comm=NAME prev_pid=N prev_prio=N prev_state=S ==> next_comm=NAME next_pid=N \
             next_prio=N` or `NAME:PID [PRIO] S ==> NAME:PID [PRIO]"
        }
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
            "comm=NAME pid=N prio=N` or `NAME:PID [PRIO]"
        }
        "sched_process_fork" => "comm=NAME pid=N child_comm=NAME child_pid=N",
        "sched_process_exit" => "comm=NAME pid=N prio=N",
        "sched_migrate_task" => "comm=NAME pid=N prio=N orig_cpu=N dest_cpu=N",
        _ => return None,
    })
}

fn fields<'a>(event: &str, text: &'a str) -> Option<Fields<'a>> {
    match event {
        "sched_switch" => switch_keyed(text).or_else(|| switch_short(text)),
        "sched_waking" => woken(text).map(Fields::Waking),
        "sched_wakeup" => woken(text).map(Fields::Wakeup),
        "sched_wakeup_new" => woken(text).map(Fields::WakeupNew),
        "sched_process_fork" => fork(text),
        "sched_process_exit" => Some(Fields::Exit { pid: woken_keyed(text)?.pid }),
        "sched_migrate_task" => Some(Fields::Migrate { pid: woken_keyed(text)?.pid }),
        _ => None,
    }
}

/// Splits at the last `separator` behind which `tail` can read: names may hold separators.
fn split_name<'a, T>(
    text: &'a str,
    separator: &str,
    tail: impl Fn(&'a str) -> Option<T>,
) -> Option<(&'a str, T)> {
    let near = text.match_indices(separator).take_while(|(at, _)| *at <= MAX_COMM);
    near.filter_map(|(at, _)| Some((&text[..at], tail(&text[at + separator.len()..])?))).last()
}

/// Splits a number, which may be negative, from what follows it.
fn number<T: std::str::FromStr>(text: &str) -> Option<(T, &str)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(length + text.len() - digits.len());
    Some((number.parse().ok()?, rest))
}

/// Whether a field ends where `rest` begins.
fn ends(rest: &str) -> Option<()> {
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(())
}

fn switch_keyed(text: &str) -> Option<Fields<'_>> {
    let text = text.strip_prefix("prev_comm=")?;
    let (prev_comm, (prev, state, next)) = split_name(text, " prev_pid=", |text| {
        let (pid, text) = number(text)?;
        let (prio, text) = number(text.strip_prefix(" prev_prio=")?)?;
        let (state, text) = text.strip_prefix(" prev_state=")?.split_once(' ')?;
        let text = text.trim_start();
        let text = text.strip_prefix("==>").map_or(text, str::trim_start);
        let text = text.strip_prefix("next_comm=")?;
        let (comm, (next_pid, next_prio)) = split_name(text, " next_pid=", |text| {
            let (pid, text) = number(text)?;
            let (prio, text) = number(text.strip_prefix(" next_prio=")?)?;
            ends(text)?;
            Some((pid, prio))
        })?;
        let next = Named { comm, pid: next_pid, prio: next_prio };
        Some(((pid, prio), state_of(state)?, next))
    })?;
    Some(Fields::Switch { prev: Named { comm: prev_comm, pid: prev.0, prio: prev.1 }, state, next })
}

fn switch_short(text: &str) -> Option<Fields<'_>> {
    let (comm, (pid, prio, state, next)) = split_name(text, ":", |text| {
        let (pid, prio, text) = pid_and_prio(text)?;
        let (state, text) = text.strip_prefix(' ')?.split_once(" ==> ")?;
        Some((pid, prio, state_of(state.trim())?, woken_short(text.trim_start())?))
    })?;
    Some(Fields::Switch { prev: Named { comm, pid, prio }, state, next })
}

/// `12 [120]`, as it follows a name and a colon.
fn pid_and_prio(text: &str) -> Option<(u32, i32, &str)> {
    let (pid, text) = number(text)?;
    let (prio, text) = number(text.strip_prefix(" [")?)?;
    Some((pid, prio, text.strip_prefix(']')?))
}

fn woken(text: &str) -> Option<Named<'_>> {
    woken_keyed(text).or_else(|| woken_short(text))
}

fn woken_keyed(text: &str) -> Option<Named<'_>> {
    let text = text.strip_prefix("comm=")?;
    let (comm, (pid, prio)) = split_name(text, " pid=", |text| {
        let (pid, text) = number(text)?;
        let (prio, text) = number(text.strip_prefix(" prio=")?)?;
        ends(text)?;
        Some((pid, prio))
    })?;
    Some(Named { comm, pid, prio })
}

/// `NAME:PID [PRIO]` and more, such as `success=1 CPU:002` or `<CANT FAILED> CPU:002`.
fn woken_short(text: &str) -> Option<Named<'_>> {
    let (comm, (pid, prio)) = split_name(text, ":", |text| {
        let (pid, prio, text) = pid_and_prio(text)?;
        if !text.starts_with('<') {
            ends(text)?;
        }
        Some((pid, prio))
    })?;
    Some(Named { comm, pid, prio })
}

fn fork(text: &str) -> Option<Fields<'_>> {
    let text = text.strip_prefix("comm=")?;
    let (_, child) = split_name(text, " pid=", |text| {
        let (_, text) = number::<u32>(text)?;
        let text = text.strip_prefix(" child_comm=")?;
        let (_, child) = split_name(text, " child_pid=", |text| {
            let (child, text) = number(text)?;
            ends(text)?;
            Some(child)
        })?;
        Some(child)
    })?;
    Some(Fields::Fork { child })
}

/// Reads the state in which a task left its CPU: letters, or the kernel's number.
///
/// Letters are the same everywhere: `R` and whatever ends in `+` is preempted; `X`, `Z` and `x`
/// (dead, before 4.14) have ended. The numbers are not:
///
/// | number | before 4.14 | since | taken as |
/// |---|---|---|---|
/// | 0 | running | running | ready |
/// | 16, 32 | zombie, dead | dead, zombie | ended |
/// | 64 | dead | parked | ended if nothing more is heard of it |
/// | 128 | only with others | idle | blocked |
/// | 256 | waking | preempted | ready |
/// | 512 | parked | | blocked |
/// | 1024, 2048, 4096 alone | preempted | | ready |
/// | 1026 | idle | | blocked |
pub(crate) fn state_of(text: &str) -> Option<State> {
    if let Ok(bits) = text.parse::<u64>() {
        return Some(state_of_bits(bits));
    }
    if text.is_empty() || !text.bytes().all(|b| b"RSDTtXZxKWPNI|+".contains(&b)) {
        return None;
    }
    Some(if text.starts_with('R') || text.ends_with('+') {
        State::Ready
    } else if text.contains(['X', 'Z', 'x']) {
        State::Ended
    } else {
        State::Blocked
    })
}

pub(crate) fn state_of_bits(bits: u64) -> State {
    match bits {
        0 | 256 | 1024 | 2048 | 4096 => State::Ready,
        64 => State::EndedOrParked,
        _ if bits & (16 | 32) != 0 => State::Ended,
        _ => State::Blocked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SH: Named<'_> = Named { comm: "sh", pid: 1642, prio: 120 };

    fn event(line: &str) -> (Head<'_>, Fields<'_>) {
        match parse(line) {
            Ok(Line::Event(head, fields)) => (head, fields),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// Checks pid, CPU, context and time of a line, and returns its fields.
    fn checked(line: &str, pid: u32, cpu: u32, context: Context, time: u64) -> Fields<'_> {
        let (head, fields) = event(line);
        assert_eq!((head.pid, head.cpu, head.context, head.time), (pid, cpu, context, time));
        fields
    }

    #[test]
    fn a_switch_in_every_spelling() {
        let prev = Named { comm: "kworker/u12:1", pid: 46, prio: 100 };
        let switch = Fields::Switch { prev, state: State::Blocked, next: SH };
        let ns = 76_211_513_000;
        let keyed = "sched_switch: prev_comm=kworker/u12:1 prev_pid=46 prev_prio=100 \
                     prev_state=S ==> next_comm=sh next_pid=1642 next_prio=120";
        let short = "sched_switch:  kworker/u12:1:46 [100] S ==> sh:1642 [120]";
        let raw = "sched_switch:   prev_comm=kworker/u12:1 prev_pid=46 prev_prio=100 \
                   prev_state=1 next_comm=sh next_pid=1642 next_prio=120";
        for (line, context) in [
            (format!("   kworker/u12:1-46    [002]    76.211513: {raw}"), Context::Unknown),
            (format!("   kworker/u12:1-46    [002] d..2    76.211513: {short}"), Context::Task),
            (format!("   kworker/u12:1-46    [002] d..2.    76.211513: {keyed}"), Context::Task),
            (format!(" kworker/u12:1-46 (     46) [002] d..2. 76.211513: {keyed}"), Context::Task),
            (format!(" <...>-46 (-------) [002] ..... 76.211513: {keyed}"), Context::Task),
            (format!("kworker/u12:1    46 [002]  76.211513:   sched:{keyed}"), Context::Unknown),
            (format!("kworker/u12:1 46/46 [002] 76.211513: 1 sched:{short}"), Context::Unknown),
        ] {
            assert_eq!(checked(&line, 46, 2, context, ns), switch, "{line}");
        }
    }

    #[test]
    fn a_wakeup_in_every_spelling() {
        let head = "<idle>-0 [011] dNh2. 5.000000123:";
        for text in [
            "comm=sh pid=1642 prio=120 target_cpu=002",
            "comm=sh pid=1642 prio=120 success=1 target_cpu=002",
            "sh:1642 [120] success=1 CPU:002",
            "sh:1642 [120]<CANT FAILED> CPU:002",
            "sh:1642 [120] CPU:002",
        ] {
            for (name, fields) in [
                ("sched_waking", Fields::Waking(SH)),
                ("sched_wakeup", Fields::Wakeup(SH)),
                ("sched_wakeup_new", Fields::WakeupNew(SH)),
            ] {
                let line = format!("{head} {name}: {text}");
                assert_eq!(checked(&line, 0, 11, Context::HardIrq, 5_000_000_123), fields);
            }
        }
    }

    #[test]
    fn the_other_events() {
        let head = "make-7 [000] ..s1. 1.5:";
        let line = |text: &str| format!("{head} {text}");
        let soft = |line: &str, fields| {
            assert_eq!(checked(line, 7, 0, Context::SoftIrq, 1_500_000_000), fields);
        };
        let fork = "sched_process_fork: comm=make pid=7 child_comm=a child_pid=9 child_pid=8";
        soft(&line(fork), Fields::Fork { child: 8 });
        let exit = "sched_process_exit: comm=make pid=7 prio=120 group_dead=true";
        soft(&line(exit), Fields::Exit { pid: 7 });
        let migrate = "sched_migrate_task: comm=make pid=7 prio=120 orig_cpu=0 dest_cpu=1";
        soft(&line(migrate), Fields::Migrate { pid: 7 });
    }

    #[test]
    fn names_may_hold_what_looks_like_fields() {
        for comm in [
            "a b",
            "a:1 [120]",
            "(sd-pam)",
            "x=y",
            "[migration]",
            "a prev_pid=1",
            " next_pid=2",
            "a==>b",
            "a pid=3 prio=4",
            "a-1 [000] 1.0:",
            "",
        ] {
            let named = Named { comm, pid: 5, prio: 120 };
            let switch = Fields::Switch { prev: named, state: State::Ready, next: named };
            let keyed = format!(
                "{comm}-5 [001] 1.0: sched_switch: prev_comm={comm} prev_pid=5 prev_prio=120 \
                 prev_state=R+ ==> next_comm={comm} next_pid=5 next_prio=120"
            );
            assert_eq!(event(&keyed).1, switch, "{keyed}");
            let perf =
                format!("{comm}  5 [001] 1.0: sched:sched_waking: comm={comm} pid=5 prio=120");
            assert_eq!(event(&perf).1, Fields::Waking(named), "{perf}");
        }
        let short = "a:1-5 [001] 1.0: sched_switch: a:1:5 [120] D|K ==> b [9]:6 [0]";
        let prev = Named { comm: "a:1", pid: 5, prio: 120 };
        let next = Named { comm: "b [9]", pid: 6, prio: 0 };
        assert_eq!(event(short).1, Fields::Switch { prev, state: State::Blocked, next });
    }

    #[test]
    fn states() {
        for (text, state) in [
            ("R", State::Ready),
            ("R+", State::Ready),
            ("0", State::Ready),
            ("256", State::Ready),
            ("4096", State::Ready),
            ("S", State::Blocked),
            ("D|K", State::Blocked),
            ("I", State::Blocked),
            ("130", State::Blocked),
            ("512", State::Blocked),
            ("1026", State::Blocked),
            ("128", State::Blocked),
            ("P", State::Blocked),
            ("X", State::Ended),
            ("Z", State::Ended),
            ("x", State::Ended),
            ("16", State::Ended),
            ("32", State::Ended),
            ("64", State::EndedOrParked),
        ] {
            assert_eq!(state_of(text), Some(state), "{text}");
        }
        assert_eq!(state_of("?"), None);
        assert_eq!(state_of(""), None);
    }

    #[test]
    fn lines_that_are_no_scheduler_events() {
        let print = "sh-17 [005]    76.368433: print:       0xffff00000819ff24s: TRACE_MARKER";
        for (line, is) in [
            ("", Line::Nothing),
            ("# entries-in-buffer/entries-written: 3/3   #P:12", Line::Cpus(12)),
            ("#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION", Line::Nothing),
            ("version = 6", Line::Nothing),
            ("CPU 3 is empty", Line::Nothing),
            ("cpus=6", Line::Cpus(6)),
            ("CPU:1 [LOST 12 EVENTS]", Line::Lost(Some(12))),
            ("CPU:1 [7 EVENTS DROPPED]", Line::Lost(Some(7))),
            ("CPU:1 [EVENTS DROPPED]", Line::Lost(None)),
            ("\tffffffff810a schedule+0x2b ([kernel.kallsyms])", Line::Unknown),
            (print, Line::Unused("print")),
            ("sh 17 [005] 1.5: block:block_rq_issue: 8,0 R", Line::Unused("block:block_rq_issue")),
        ] {
            assert_eq!(parse(line), Ok(is), "{line}");
        }
    }

    #[test]
    fn scheduler_events_that_are_not_understood_are_errors() {
        for (line, why) in [
            (
                "sh-17 [005] 1.5: sched_switch: prev_comm=sh prev_pid=17 prev_prio=120",
                "sched_switch is not understood; it is `prev_comm=NAME prev_pid=N prev_prio=N \
                 prev_state=S ==> next_comm=NAME next_pid=N next_prio=N` or `NAME:PID [PRIO] S \
                 ==> NAME:PID [PRIO]`",
            ),
            (
                "sh-17 [005] 1.5: sched_wakeup: comm=sh pid=99999999999 prio=120",
                "sched_wakeup is not understood; it is `comm=NAME pid=N prio=N` or `NAME:PID \
                 [PRIO]`",
            ),
            (
                "sh-17 [005] 1.5: sched_process_fork: comm=sh pid=17",
                "sched_process_fork is not understood; it is `comm=NAME pid=N child_comm=NAME \
                 child_pid=N`",
            ),
            (
                "sh-17 [005] 1.5: sched_process_exit:",
                "sched_process_exit is not understood; it is `comm=NAME pid=N prio=N`",
            ),
            (
                "sh-17 [1024] 1.5: sched_wakeup: comm=sh pid=9 prio=120",
                "CPU 1024: CPUs are numbered 0 to 1023",
            ),
            (
                "sh-17 [000] 123456: sched_wakeup: comm=sh pid=9 prio=120",
                "the time `123456` is not in seconds with a fraction; record with a clock such \
                 as mono or local",
            ),
            (
                "sh-17 [000] 99999999999.5: sched_wakeup: comm=sh pid=9 prio=120",
                "the time `99999999999.5` is longer than 584 years",
            ),
        ] {
            assert_eq!(parse(line), Err(why.to_string()), "{line}");
        }
    }
}
