//! Tasks that the host describes: when each comes and what it does.
//!
//! The item `opt/org.anysched/tasks` has a line for each; `anysched_workload::steps` writes it and
//! says what it means.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use anysched_arceos_qemu::fw_cfg;
use axtask::yield_now;
use kernel_guard::NoPreempt;

use crate::Kernel;
use crate::crew::{Crew, Notes, Task, now};
use crate::work::Burner;

#[derive(Clone, Debug)]
enum Step {
    Compute(u64),
    Sleep(u64),
    Until(u64),
    Yield,
    /// How often, and where the repeated part ends.
    Repeat(u64, usize),
    End,
}

#[derive(Debug)]
struct Line {
    arrival: u64,
    name: String,
    steps: Vec<Step>,
}

/// The step that `word` stands for.
fn step(word: &str) -> Option<Step> {
    let (kind, number) = word.split_at_checked(1)?;
    match (kind, number.parse()) {
        ("c", Ok(span)) => Some(Step::Compute(span)),
        ("s", Ok(span)) => Some(Step::Sleep(span)),
        ("u", Ok(time)) => Some(Step::Until(time)),
        ("y", _) => Some(Step::Yield),
        ("r", Ok(times)) => Some(Step::Repeat(times, 0)),
        ("e", _) => Some(Step::End),
        _ => None,
    }
}

fn parse(line: &str) -> Option<Line> {
    let mut words = line.split(' ');
    let arrival = words.next()?.parse().ok()?;
    let name = words.next()?.to_string();
    let mut steps = words.map(step).collect::<Option<Vec<_>>>()?;
    let mut open = Vec::new();
    for at in 0..steps.len() {
        match steps[at] {
            Step::Repeat(..) => open.push(at),
            Step::End => match &mut steps[open.pop()?] {
                Step::Repeat(_, end) => *end = at,
                _ => return None,
            },
            _ => {}
        }
    }
    open.is_empty().then_some(Line { arrival, name, steps })
}

/// CPU time of `steps` in nanoseconds.
fn work(steps: &[Step]) -> u64 {
    let mut at = 0;
    let mut sum = 0;
    while at < steps.len() {
        match steps[at] {
            Step::Compute(span) => sum += span,
            Step::Repeat(times, end) => {
                sum += times * work(&steps[at + 1..end]);
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    sum
}

/// What all tasks know.
#[derive(Clone, Copy)]
struct Setting {
    burner: Burner,
    kernel: Kernel,
    start: u64,
}

/// Does what `steps` say.
fn perform(steps: &[Step], setting: &Setting, notes: &Notes) {
    let Setting { burner, kernel, start } = setting;
    let mut at = 0;
    while at < steps.len() {
        match steps[at] {
            Step::Compute(span) => {
                burner.burn(span);
                notes.group_done();
            }
            Step::Sleep(span) => {
                notes.sleeps(span);
                (kernel.sleep_until)(now() + span);
            }
            Step::Until(time) => {
                let time = start + time;
                notes.sleeps(time.saturating_sub(now()));
                if time > now() {
                    (kernel.sleep_until)(time);
                }
            }
            Step::Yield => yield_now(),
            Step::Repeat(times, end) => {
                for _ in 0..times {
                    perform(&steps[at + 1..end], setting, notes);
                }
                at = end;
            }
            Step::End => {}
        }
        at += 1;
    }
}

/// Runs the tasks that the host describes.
pub fn batch(kernel: &Kernel) {
    let text = fw_cfg::read("opt/org.anysched/tasks").unwrap_or_default();
    let text = core::str::from_utf8(&text).unwrap_or_default();
    let burner = Burner::calibrated();
    let lines: Vec<Line> = text
        .lines()
        .map(|line| match parse(line) {
            Some(line) => line,
            None => panic!("a task is not described like this: \"{line}\""),
        })
        .collect();
    assert!(!lines.is_empty(), "the host describes no tasks");
    let start = now();
    let mut crew = Crew::new(kernel);
    let mut lines = lines.into_iter().peekable();
    while let Some(arrival) = lines.peek().map(|line| line.arrival) {
        if start + arrival > now() {
            (kernel.sleep_until)(start + arrival);
        }
        let came = now();
        // Tasks of the same time are all there before one of them runs.
        let _guard = NoPreempt::new();
        while let Some(Line { name, steps, .. }) = lines.next_if(|line| line.arrival == arrival) {
            let setting = Setting { burner, kernel: *kernel, start };
            let task = Task { name, work: Some(work(&steps)) };
            crew.start_late(task, came, move |notes| perform(&steps, &setting, notes));
        }
    }
    crew.finish();
}
