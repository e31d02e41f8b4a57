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
//! | `r`*n* … `e` | does what is between them *n* times, at least 1 |
//!
//! Arrivals count from the start, in nanoseconds. Limits:
//!
//! | of | at most |
//! |---|---|
//! | tasks | [`MOST_TASKS`], and at least 1 |
//! | steps in all, as written | [`MOST_STEPS`] |
//! | depth of nested repetitions | [`DEEPEST`] |
//! | a time or span | [`LATEST`] |
//! | the text | [`LONGEST`] |

use crate::text::{TextFormat, number};
use crate::{At, WireError, escape};
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
    /// Does some steps, at least 1, this many times, at least 1.
    Repeat(u64, Vec<Step>),
}

impl Task {
    /// CPU time that it uses in all, in nanoseconds, saturating.
    pub fn work(&self) -> u64 {
        work(&self.steps)
    }
}

fn work(steps: &[Step]) -> u64 {
    steps.iter().fold(0, |sum: u64, step| {
        sum.saturating_add(match step {
            Step::Compute(span) => *span,
            Step::Repeat(times, steps) => times.saturating_mul(work(steps)),
            Step::Sleep(_) | Step::Until(_) | Step::Yield => 0,
        })
    })
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Compute(span) => write!(f, "c{span}"),
            Step::Sleep(span) => write!(f, "s{span}"),
            Step::Until(time) => write!(f, "u{time}"),
            Step::Yield => f.write_str("y"),
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
struct Limits {
    tasks: usize,
    steps: usize,
    last: u64,
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
            Step::Compute(span) | Step::Sleep(span) | Step::Until(span) if *span > LATEST => {
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
            _ => Ok(()),
        }
    }

    /// `steps`, within `depth` repetitions.
    fn steps(&mut self, steps: &[Step], depth: usize, at: At) -> Result<(), WireError> {
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
    // Repetitions that have begun: how often, the word, and what was before.
    let mut open: Vec<(u64, Vec<Step>)> = Vec::new();
    let mut steps = Vec::new();
    for word in words {
        let step = match read_word(word) {
            Some(Word::Step(step)) => step,
            Some(Word::Repeat(times)) => {
                if open.len() >= DEEPEST {
                    limits.step(&Step::Repeat(times, Vec::new()), open.len(), at)?;
                }
                open.push((times, mem::take(&mut steps)));
                continue;
            }
            Some(Word::End) => {
                let (times, before) =
                    open.pop().ok_or_else(|| error(word, "no repetition has begun"))?;
                Step::Repeat(times, mem::replace(&mut steps, before))
            }
            None => return Err(error(word, "c, s, u or r and a number, y or e is wanted")),
        };
        limits.step(&step, open.len(), at)?;
        steps.push(step);
    }
    match open.last() {
        None => Ok(Task { arrival, name, steps }),
        Some((times, _)) => Err(error(&format!("r{times}"), "the repetition has no end `e`")),
    }
}

enum Word {
    Step(Step),
    Repeat(u64),
    End,
}

fn read_word(word: &str) -> Option<Word> {
    let (kind, digits) = word.split_at_checked(1)?;
    Some(match (kind, number(digits), digits) {
        ("c", Some(span), _) => Word::Step(Step::Compute(span)),
        ("s", Some(span), _) => Word::Step(Step::Sleep(span)),
        ("u", Some(time), _) => Word::Step(Step::Until(time)),
        ("r", Some(times), _) => Word::Repeat(times),
        ("y", None, "") => Word::Step(Step::Yield),
        ("e", None, "") => Word::End,
        _ => return None,
    })
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
        assert_eq!(tasks[0].work(), 800_000);
        let script = Script { tasks };
        assert_eq!(script.write().unwrap(), text);
        assert_eq!(Script::read(text.as_bytes()), Ok(script));
    }

    #[test]
    fn limits_hold_at_both_ends() {
        for (step, why) in [
            (Step::Compute(LATEST + 1), "at most 10000000000000000 ns"),
            (Step::Until(LATEST + 1), "at most 10000000000000000 ns"),
            (repeat(DEEPEST + 1), "at most 8 repetitions"),
            (Step::Repeat(0, vec![Step::Yield]), "a step or more, once or more"),
            (Step::Repeat(2, vec![]), "a step or more, once or more"),
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
    fn work_that_is_too_much_to_count_is_the_most() {
        let much = Step::Repeat(u64::MAX, vec![Step::Compute(2), Step::Sleep(1)]);
        assert_eq!(one(much).tasks[0].work(), u64::MAX);
    }
}
