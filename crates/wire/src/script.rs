//! What tasks do: a list of steps for each, which a kernel performs.
//!
//! The first line is `anysched-script 1`, the format and its version. Each other line is a task, in
//! order of arrival: its arrival, its name ([escaped](mod@crate::escape)) and a word for each step,
//! separated by single spaces:
//!
//! | word | means |
//! |---|---|
//! | `c`*n* | computes for *n* ns |
//! | `s`*n* | sleeps for *n* ns |
//! | `u`*n* | sleeps until *n* ns from the start, unless that is past |
//! | `y` | yields |
//! | `i`*n* | has the niceness *n*, -20 to 19, from here on |
//! | `d`*n* | has jobs that are due *n* ns after they could begin |
//! | `a`*n*,… | may run on these CPUs only from here on, in ascending order; `a` alone is all CPUs |
//! | `w`*n* | takes a signal of channel *n*, or blocks until one comes |
//! | `p`*n* | wakes the first task that waits on channel *n*, or stores the signal |
//! | `n`*n* | wakes the first task that waits on channel *n*, if there is one |
//! | `b`*n* | wakes all tasks that wait on channel *n* |
//! | `l`*n* | takes lock *n*, or blocks until it is handed over |
//! | `x`*n* | takes lock *n*, or computes until it is handed over |
//! | `o`*n* | gives lock *n*, if the task holds it, to the first that waits for it |
//! | `m`*n*:*t* | blocks until *t* tasks, at least 1, have come to barrier *n* |
//! | `t`*n* | sends the message that the task holds out of the machine by port *n*, or a new one |
//! | `q`*n* | answers the message that the task holds, if any; the answer travels for *n* ns |
//! | `r`*n* … `e` | does what is between them *n* times, at least 1 |
//!
//! Channels, locks and barriers exist as soon as a task uses them. `i`, `d` and `a` at the
//! beginning of a task say how it is created. Whoever names a barrier names the same number of
//! tasks. A task holds the message that it took from a channel last until it sends it or answers
//! it; a signal of a task counts as a message that was sent just then. Kernels without messages do
//! nothing for `t` and `q`.
//!
//! Arrivals count from the start, in nanoseconds. Limits:
//!
//! | of | at most |
//! |---|---|
//! | tasks | [`MOST_TASKS`], and at least 1 |
//! | steps in all, as written | [`MOST_STEPS`] |
//! | depth of nested repetitions | [`DEEPEST`] |
//! | number of a channel, lock, barrier, port or CPU | [`HIGHEST`] |
//! | a time or span | [`LATEST`] |
//! | the text | [`LONGEST`] |

use crate::text::{TextFormat, number};
use crate::{At, WireError, escape};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::mem;

/// The name of the firmware item.
pub const ITEM: &str = "opt/org.anysched/script";

/// The most tasks.
pub const MOST_TASKS: usize = 1 << 20;

/// The most steps of all tasks together; repeated ones count once, and a repetition itself counts
/// as one.
pub const MOST_STEPS: usize = 1 << 20;

/// The deepest nesting of repetitions.
pub const DEEPEST: usize = 8;

/// The highest number of a channel, a lock, a barrier, a port or a CPU.
pub const HIGHEST: u32 = (1 << 24) - 1;

/// The latest time and the longest span in nanoseconds, 115 days: kernels can still count a
/// thousand times as much.
pub const LATEST: u64 = 10_000_000_000_000_000;

/// The most bytes of the text.
pub const LONGEST: usize = 16 << 20;

const FORMAT: TextFormat =
    TextFormat { name: "script", magic: "anysched-script", version: 1, longest: LONGEST };

/// The tasks, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// When it arrives, in nanoseconds from the start.
    pub arrival: u64,
    /// Its name: any text.
    pub name: String,
    /// What it does.
    pub steps: Vec<Step>,
}

/// A step of a task; times and spans in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Computes for a span.
    Compute(u64),
    /// Sleeps for a span.
    Sleep(u64),
    /// Sleeps until a time from the start, unless that is past.
    Until(u64),
    /// Yields.
    Yield,
    /// Has this niceness from here on, -20 to 19.
    Nice(i8),
    /// Has jobs due this long after they could begin. Kernels without deadlines do nothing.
    Deadline(u64),
    /// May run on these CPUs only from here on, in ascending order; on all, if there are none.
    Cpus(Vec<u32>),
    /// Takes a signal of a channel, or blocks until one comes.
    Wait(u32),
    /// Wakes the first task that waits on a channel, or stores the signal.
    Post(u32),
    /// Wakes the first task that waits on a channel, if there is one.
    Notify(u32),
    /// Wakes all tasks that wait on a channel.
    Broadcast(u32),
    /// Takes a lock, or blocks until it is handed over.
    Lock(u32),
    /// Takes a lock, or computes until it is handed over.
    Spin(u32),
    /// Gives a lock that the task holds to the first that waits for it.
    Unlock(u32),
    /// Blocks until as many tasks have come.
    Meet {
        /// To which barrier.
        barrier: u32,
        /// How many tasks; at least 1, and the same wherever the barrier is named.
        tasks: u32,
    },
    /// Sends the message that the task holds out of the machine by a port, or a new one.
    Send(u32),
    /// Answers the message that the task holds, if any; the answer travels this long.
    Reply(u64),
    /// Does some steps, at least 1, this many times, at least 1.
    Repeat(u64, Vec<Step>),
}

/// CPU time that a task which does `steps`, and then uses `then` more, uses before it may block, in
/// nanoseconds, saturating.
pub fn burst(steps: &[Step], then: u64) -> u64 {
    let (sum, blocks) = until_blocked(steps);
    if blocks { sum } else { sum.saturating_add(then) }
}

/// The same of `steps` alone, and whether they block.
fn until_blocked(steps: &[Step]) -> (u64, bool) {
    let mut sum: u64 = 0;
    for step in steps {
        let (more, blocks) = match step {
            Step::Compute(span) => (*span, false),
            Step::Repeat(times, steps) => match until_blocked(steps) {
                (first, true) if *times > 0 => (first, true),
                (each, _) => (times.saturating_mul(each), false),
            },
            Step::Sleep(span) => (0, *span > 0),
            Step::Until(_) | Step::Wait(_) | Step::Lock(_) | Step::Meet { .. } => (0, true),
            _ => (0, false),
        };
        sum = sum.saturating_add(more);
        if blocks {
            return (sum, true);
        }
    }
    (sum, false)
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Compute(span) => write!(f, "c{span}"),
            Step::Sleep(span) => write!(f, "s{span}"),
            Step::Until(time) => write!(f, "u{time}"),
            Step::Yield => f.write_str("y"),
            Step::Nice(nice) => write!(f, "i{nice}"),
            Step::Deadline(span) => write!(f, "d{span}"),
            Step::Cpus(cpus) => {
                f.write_str("a")?;
                cpus.iter().enumerate().try_for_each(|(place, cpu)| {
                    write!(f, "{}{cpu}", if place == 0 { "" } else { "," })
                })
            }
            Step::Wait(channel) => write!(f, "w{channel}"),
            Step::Post(channel) => write!(f, "p{channel}"),
            Step::Notify(channel) => write!(f, "n{channel}"),
            Step::Broadcast(channel) => write!(f, "b{channel}"),
            Step::Lock(lock) => write!(f, "l{lock}"),
            Step::Spin(lock) => write!(f, "x{lock}"),
            Step::Unlock(lock) => write!(f, "o{lock}"),
            Step::Meet { barrier, tasks } => write!(f, "m{barrier}:{tasks}"),
            Step::Send(port) => write!(f, "t{port}"),
            Step::Reply(way) => write!(f, "q{way}"),
            Step::Repeat(times, steps) => {
                write!(f, "r{times} ")?;
                steps.iter().try_for_each(|step| write!(f, "{step} "))?;
                f.write_str("e")
            }
        }
    }
}

impl Script {
    /// The text.
    ///
    /// Errors: a limit is exceeded, tasks are not in order of arrival, or a repetition does
    /// nothing.
    pub fn write(&self) -> Result<String, WireError> {
        let mut limits = Limits::default();
        let mut text = FORMAT.begin();
        for (index, task) in self.tasks.iter().enumerate() {
            // The line that it will be on.
            let at = At::Line(index + 2);
            limits.arrival(task.arrival, at)?;
            limits.steps(&task.steps, 0, at)?;
            let _ = write!(text, "{} {}", task.arrival, escape::word(&task.name));
            for step in &task.steps {
                let _ = write!(text, " {step}");
            }
            text.push('\n');
        }
        limits.end()?;
        FORMAT.end(text)
    }

    /// Reads a text.
    ///
    /// Errors: as for [`Script::write`]; it is of another version, or a word is meaningless.
    pub fn read(text: &[u8]) -> Result<Script, WireError> {
        let mut limits = Limits::default();
        let mut tasks = Vec::new();
        for (number, line) in FORMAT.lines(text)? {
            tasks.push(read_task(line, &mut limits, At::Line(number))?);
        }
        limits.end()?;
        Ok(Script { tasks })
    }
}

/// What has been written or read so far.
#[derive(Default)]
pub(crate) struct Limits {
    tasks: usize,
    steps: usize,
    last: u64,
    /// How many tasks meet at each barrier that was named.
    barriers: BTreeMap<u32, u32>,
}

impl Limits {
    fn arrival(&mut self, arrival: u64, at: At) -> Result<(), WireError> {
        let error = |why: String| Err(FORMAT.error(at, &format!("{arrival}"), why));
        self.tasks += 1;
        if self.tasks > MOST_TASKS {
            return error(format!("there are more than {MOST_TASKS} tasks"));
        }
        if arrival < mem::replace(&mut self.last, arrival) {
            return error("this task comes before the one above: order them by arrival".into());
        }
        if arrival > LATEST {
            return error(format!("an arrival is at most {LATEST} ns"));
        }
        Ok(())
    }

    /// `step`, whose own steps, if it has any, have been checked, within `depth` repetitions.
    fn step(&mut self, step: &Step, depth: usize, at: At) -> Result<(), WireError> {
        self.steps += 1;
        // Of a step that is too deep or empty, only the head is shown.
        let error =
            |head: &dyn fmt::Display, why: String| Err(FORMAT.error(at, &format!("{head}"), why));
        if self.steps > MOST_STEPS {
            return error(&"…", format!("there are more than {MOST_STEPS} steps in all"));
        }
        match step {
            Step::Compute(span)
            | Step::Sleep(span)
            | Step::Until(span)
            | Step::Deadline(span)
            | Step::Reply(span)
                if *span > LATEST =>
            {
                error(step, format!("a time or span is at most {LATEST} ns"))
            }
            Step::Repeat(times, _) if depth >= DEEPEST => {
                let head = format!("r{times}");
                error(&head, format!("at most {DEEPEST} repetitions can be in each other"))
            }
            Step::Repeat(times, steps) if *times == 0 || steps.is_empty() => {
                let head = format!("r{times}");
                error(&head, "a repetition does a step or more, once or more".into())
            }
            Step::Nice(nice) if !(-20..=19).contains(nice) => {
                error(step, "a niceness is from -20 to 19".into())
            }
            Step::Cpus(cpus) if !cpus.is_sorted_by(|one, next| one < next) => {
                error(step, "CPUs are in ascending order, each once".into())
            }
            Step::Meet { barrier, tasks } => match self.barriers.insert(*barrier, *tasks) {
                _ if *tasks == 0 => error(step, "at least 1 task meets at a barrier".into()),
                Some(other) if other != *tasks => {
                    error(step, format!("another step says that {other} tasks meet there"))
                }
                _ if *barrier > HIGHEST => error(step, highest()),
                _ => Ok(()),
            },
            step if step.numbers().iter().any(|number| *number > HIGHEST) => error(step, highest()),
            _ => Ok(()),
        }
    }

    /// `steps`, within `depth` repetitions.
    pub(crate) fn steps(&mut self, steps: &[Step], depth: usize, at: At) -> Result<(), WireError> {
        steps.iter().try_for_each(|step| {
            self.step(step, depth, at)?;
            match step {
                Step::Repeat(_, steps) => self.steps(steps, depth + 1, at),
                _ => Ok(()),
            }
        })
    }

    fn end(&self) -> Result<(), WireError> {
        if self.tasks > 0 {
            return Ok(());
        }
        Err(FORMAT.error(At::Whole, "", "there are no tasks"))
    }
}

fn highest() -> String {
    format!("channels, locks, barriers, ports and CPUs have numbers up to {HIGHEST}")
}

impl Step {
    /// The numbers of objects or CPUs in it.
    fn numbers(&self) -> &[u32] {
        match self {
            Step::Cpus(cpus) => cpus,
            Step::Wait(number)
            | Step::Post(number)
            | Step::Notify(number)
            | Step::Broadcast(number)
            | Step::Lock(number)
            | Step::Spin(number)
            | Step::Unlock(number)
            | Step::Send(number)
            | Step::Meet { barrier: number, .. } => core::slice::from_ref(number),
            _ => &[],
        }
    }
}

fn read_task(line: &str, limits: &mut Limits, at: At) -> Result<Task, WireError> {
    let error = |value: &str, why: &str| FORMAT.error(at, value, why);
    let mut words = line.split(' ');
    let (arrival, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let arrival =
        number(arrival).ok_or_else(|| error(arrival, "an arrival in nanoseconds is wanted"))?;
    limits.arrival(arrival, at)?;
    let name = escape::unescape(name).ok_or_else(|| {
        error(name, "a name is wanted; `\\-` is the empty one, and `\\\\` is a backslash")
    })?;
    Ok(Task { arrival, name, steps: limits.read_steps(words, at)? })
}

impl Limits {
    /// Reads the words of a task's steps.
    pub(crate) fn read_steps<'a>(
        &mut self,
        words: impl Iterator<Item = &'a str>,
        at: At,
    ) -> Result<Vec<Step>, WireError> {
        let error = |value: &str, why: &str| FORMAT.error(at, value, why);
        // Repetitions that have begun: how often, the word, and what was before.
        let mut open: Vec<(u64, Vec<Step>)> = Vec::new();
        let mut steps = Vec::new();
        for word in words {
            let step = match read_word(word) {
                Some(Word::Step(step)) => step,
                Some(Word::Repeat(times)) => {
                    if open.len() >= DEEPEST {
                        self.step(&Step::Repeat(times, Vec::new()), open.len(), at)?;
                    }
                    open.push((times, mem::take(&mut steps)));
                    continue;
                }
                Some(Word::End) => {
                    let (times, before) =
                        open.pop().ok_or_else(|| error(word, "no repetition has begun"))?;
                    Step::Repeat(times, mem::replace(&mut steps, before))
                }
                None => {
                    return Err(error(word, "a step is wanted, such as c and a number, y or e"));
                }
            };
            self.step(&step, open.len(), at)?;
            steps.push(step);
        }
        match open.last() {
            None => Ok(steps),
            Some((times, _)) => Err(error(&format!("r{times}"), "the repetition has no end `e`")),
        }
    }
}

enum Word {
    Step(Step),
    Repeat(u64),
    End,
}

fn read_word(word: &str) -> Option<Word> {
    let (kind, rest) = word.split_at_checked(1)?;
    let object = || u32::try_from(number(rest)?).ok();
    Some(Word::Step(match kind {
        "r" => return number(rest).map(Word::Repeat),
        "e" if rest.is_empty() => return Some(Word::End),
        "c" => Step::Compute(number(rest)?),
        "s" => Step::Sleep(number(rest)?),
        "u" => Step::Until(number(rest)?),
        "y" if rest.is_empty() => Step::Yield,
        "i" => Step::Nice(nice(rest)?),
        "d" => Step::Deadline(number(rest)?),
        "a" => Step::Cpus(cpus(rest)?),
        "w" => Step::Wait(object()?),
        "p" => Step::Post(object()?),
        "n" => Step::Notify(object()?),
        "b" => Step::Broadcast(object()?),
        "l" => Step::Lock(object()?),
        "x" => Step::Spin(object()?),
        "o" => Step::Unlock(object()?),
        "t" => Step::Send(object()?),
        "q" => Step::Reply(number(rest)?),
        "m" => {
            let (barrier, tasks) = rest.split_once(':')?;
            let number = |text| u32::try_from(number(text)?).ok();
            Step::Meet { barrier: number(barrier)?, tasks: number(tasks)? }
        }
        _ => return None,
    }))
}

/// A whole number that may be negative.
fn nice(text: &str) -> Option<i8> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    i8::try_from(sign * i64::try_from(number(digits)?).ok()?).ok()
}

/// Numbers with commas between; none, if there is no text.
fn cpus(text: &str) -> Option<Vec<u32>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(|cpu| u32::try_from(number(cpu)?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn repeat(depth: usize) -> Step {
        (0..depth).fold(Step::Yield, |step, _| Step::Repeat(2, vec![step]))
    }

    fn one(step: Step) -> Script {
        Script { tasks: vec![Task { arrival: 0, name: "a".into(), steps: vec![step] }] }
    }

    /// The text spelled out by hand, so that both ends can be built at different times.
    #[test]
    fn a_text_by_hand() {
        let text = "anysched-script 1\n0 a\\sb r40 c20000 r2 y e e s3\n0 \\-\n7 c u9\n";
        let inner = Step::Repeat(2, vec![Step::Yield]);
        let steps = vec![Step::Repeat(40, vec![Step::Compute(20_000), inner]), Step::Sleep(3)];
        let task = |arrival, name: &str, steps| Task { arrival, name: name.into(), steps };
        let tasks =
            vec![task(0, "a b", steps), task(0, "", vec![]), task(7, "c", vec![Step::Until(9)])];
        assert_eq!(burst(&tasks[0].steps, 9), 800_000);
        let script = Script { tasks };
        assert_eq!(script.write().unwrap(), text);
        assert_eq!(Script::read(text.as_bytes()), Ok(script));
    }

    /// So are the steps in which tasks meet others, or change.
    #[test]
    fn steps_among_tasks_by_hand() {
        let text =
            "anysched-script 1\n0 a i-5 a0,3 w0 p1 n2 b3 l0 x1 o0 m0:2 i0 a t1 q50\n0 b m0:2\n";
        let meet = Step::Meet { barrier: 0, tasks: 2 };
        let steps = vec![
            Step::Nice(-5),
            Step::Cpus(vec![0, 3]),
            Step::Wait(0),
            Step::Post(1),
            Step::Notify(2),
            Step::Broadcast(3),
            Step::Lock(0),
            Step::Spin(1),
            Step::Unlock(0),
            meet.clone(),
            Step::Nice(0),
            Step::Cpus(vec![]),
            Step::Send(1),
            Step::Reply(50),
        ];
        let task = |name: &str, steps| Task { arrival: 0, name: name.into(), steps };
        let script = Script { tasks: vec![task("a", steps), task("b", vec![meet])] };
        assert_eq!(burst(&script.tasks[0].steps, 9), 0);
        assert_eq!(script.write().unwrap(), text);
        assert_eq!(Script::read(text.as_bytes()), Ok(script));
        let other = text.replace("b m0:2", "b m0:3");
        let error = Script::read(other.as_bytes()).unwrap_err();
        assert!(error.at == At::Line(3) && error.why.contains("2 tasks meet there"), "{error}");
    }

    #[test]
    fn limits_hold_at_both_ends() {
        for (step, why) in [
            (Step::Compute(LATEST + 1), "at most 10000000000000000 ns"),
            (Step::Until(LATEST + 1), "at most 10000000000000000 ns"),
            (repeat(DEEPEST + 1), "at most 8 repetitions"),
            (Step::Repeat(0, vec![Step::Yield]), "a step or more, once or more"),
            (Step::Repeat(2, vec![]), "a step or more, once or more"),
            (Step::Nice(20), "from -20 to 19"),
            (Step::Nice(-21), "from -20 to 19"),
            (Step::Cpus(vec![1, 1]), "ascending order"),
            (Step::Cpus(vec![HIGHEST + 1]), "up to 16777215"),
            (Step::Post(HIGHEST + 1), "up to 16777215"),
            (Step::Send(HIGHEST + 1), "up to 16777215"),
            (Step::Reply(LATEST + 1), "at most 10000000000000000 ns"),
            (Step::Meet { barrier: HIGHEST + 1, tasks: 1 }, "up to 16777215"),
            (Step::Meet { barrier: 0, tasks: 0 }, "at least 1 task"),
        ] {
            let written = one(step.clone()).write().unwrap_err();
            let words = step.to_string().replace("  ", " ");
            let read = Script::read(format!("anysched-script 1\n0 a {words}\n").as_bytes());
            for error in [written, read.unwrap_err()] {
                assert!(error.at == At::Line(2) && error.why.contains(why), "{error}");
            }
        }
        let deep = one(repeat(DEEPEST));
        assert_eq!(Script::read(deep.write().unwrap().as_bytes()), Ok(deep));
        let none = Script::default().write().unwrap_err();
        assert_eq!(Script::read(b"anysched-script 1\n"), Err(none));
    }

    #[test]
    fn there_cannot_be_too_many() {
        let steps = Step::Repeat(2, vec![Step::Yield; MOST_STEPS]);
        assert!(one(steps).write().unwrap_err().why.contains("1048576 steps"));
        let tasks = vec![Task { arrival: 0, name: "a".into(), steps: vec![] }; MOST_TASKS + 1];
        assert!(Script { tasks }.write().unwrap_err().why.contains("1048576 tasks"));
        let long = Task { arrival: 0, name: "a".repeat(LONGEST), steps: vec![] };
        assert!(Script { tasks: vec![long] }.write().unwrap_err().why.contains("16777216"));
    }

    #[test]
    fn what_means_nothing_is_refused_with_its_line() {
        for wrong in [
            "",
            "0",
            "x a",
            "0 ",
            "0  c1",
            "0 a c",
            "0 a c-1",
            "0 a c+1",
            "0 a y1",
            "0 a x",
            "0 a w",
            "0 a p-1",
            "0 a i+1",
            "0 a i--1",
            "0 a i200",
            "0 a a,",
            "0 a a1,,2",
            "0 a m1",
            "0 a m1:",
            "0 a m:2",
            "0 a w4294967296",
            "0 a z1",
            "0 a e",
            "0 a r2 y",
            "0 a r2 y e e",
            "0 a c1 ",
            "0 a\\q",
            "0 a \u{e4}1",
        ] {
            let error = Script::read(format!("anysched-script 1\n0 b\n{wrong}\n").as_bytes());
            assert_eq!(error.unwrap_err().at, At::Line(3), "{wrong}");
        }
        let error = Script::read(b"anysched-script 1\n5 a\n4 b\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "script, line 3: \"4\": this task comes before the one above: order them by arrival"
        );
    }

    #[test]
    fn a_burst_ends_where_a_task_may_block() {
        let round = |steps: &[Step]| Step::Repeat(3, steps.to_vec());
        let (run, sleep) = (Step::Compute(2), Step::Sleep(1));
        assert_eq!(burst(&[run.clone(), Step::Yield, run.clone()], 5), 9);
        assert_eq!(burst(&[run.clone(), sleep.clone(), run.clone()], 5), 2);
        assert_eq!(burst(&[run.clone(), Step::Sleep(0), run.clone()], 5), 9);
        assert_eq!(burst(&[round(core::slice::from_ref(&run)), sleep.clone()], 5), 6);
        assert_eq!(burst(&[run.clone(), round(&[run.clone(), sleep.clone(), run])], 5), 4);
        assert_eq!(burst(&[Step::Repeat(0, vec![sleep])], 5), 5);
        let much = Step::Repeat(u64::MAX, vec![Step::Compute(2)]);
        assert_eq!(burst(&[much], 5), u64::MAX);
    }
}
