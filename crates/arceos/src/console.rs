//! What the kernel prints, and what it means.

use crate::BootError;
use anysched_core::{Span, Time};
use anysched_qemu::{Heard, Running};
use std::time::Duration;

/// What a program has found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Its tasks, in the order in which it started them.
    pub tasks: Vec<TaskOutcome>,
    /// What it measured besides, by name.
    pub values: Vec<(String, u64)>,
    /// What the policy has learned: parameters for a later run, by name.
    pub learned: Vec<(String, String)>,
    /// The log of decisions of each CPU, if they were recorded.
    pub logs: Vec<Vec<u8>>,
}

/// What became of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskOutcome {
    /// Its name.
    pub name: String,
    /// When it was started.
    pub arrival: Time,
    /// When it ran first.
    pub first: Time,
    /// When its work was done.
    pub finish: Time,
    /// Parts of its work that it has done.
    pub groups: u64,
    /// CPU time that it used, where the kernel counts it.
    pub service: Option<Span>,
    /// How often it was picked, where the kernel counts it.
    pub dispatches: Option<u64>,
    /// The number by which its policy knew it.
    pub known_as: Option<u32>,
    /// Time for which it slept, as it was told to.
    pub slept: Span,
}

impl Outcome {
    /// The value called `name`.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.iter().find(|(value, _)| value == name).map(|(_, number)| *number)
    }
}

/// Reads a console.
#[derive(Debug, Default)]
pub(crate) struct Console {
    pub outcome: Outcome,
    /// The last line for people.
    last: String,
    panic: Option<String>,
    is_done: bool,
    /// The kernel's own greeting is over.
    is_running: bool,
}

/// What was heard of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A line, which has been read.
    Line,
    /// Nothing for as long as was asked.
    Silence,
    /// It has ended well.
    End,
}

impl Console {
    /// Listens to the end.
    ///
    /// Errors: the kernel panicked, was silent for longer than `patience`, or did not end well.
    pub fn listen(
        &mut self,
        running: &mut Running,
        patience: Duration,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), BootError> {
        loop {
            match self.hear(running, patience, say)? {
                Event::Line => {}
                Event::Silence => return Err(self.hung(patience)),
                Event::End => return Ok(()),
            }
        }
    }

    /// Waits for the next line, for `patience` at most.
    ///
    /// Errors: the kernel panicked or did not end well.
    pub fn hear(
        &mut self,
        running: &mut Running,
        patience: Duration,
        say: &mut dyn FnMut(&str),
    ) -> Result<Event, BootError> {
        match running.listen(patience)? {
            Heard::Line(line) => self.line(&line, say).map(|()| Event::Line),
            Heard::Silence => Ok(Event::Silence),
            Heard::End(status) => self.end(&status.to_string()).map(|()| Event::End),
        }
    }

    /// That nothing was heard for as long as `silence`.
    pub fn hung(&self, silence: Duration) -> BootError {
        BootError::Hung { silence, last: self.last.clone() }
    }

    /// The last line for people.
    pub fn last(&self) -> &str {
        &self.last
    }

    fn end(&mut self, status: &str) -> Result<(), BootError> {
        if let Some(message) = self.panic.take() {
            return Err(BootError::Panicked { message });
        }
        if !self.is_done {
            let (last, status) = (self.last.clone(), status.to_string());
            return Err(BootError::Unfinished { last, status });
        }
        Ok(())
    }

    fn line(&mut self, line: &str, say: &mut dyn FnMut(&str)) -> Result<(), BootError> {
        let line = strip_colours(line);
        if let Some(message) = &mut self.panic {
            // The line after "panicked at PLACE:" says why.
            if message.ends_with(':') {
                *message += &format!(" {line}");
            }
            return Ok(());
        }
        if let Some((_, place)) = line.split_once("panicked at ") {
            self.panic = Some(place.to_string());
            return Ok(());
        }
        let Some(said) = line.strip_prefix('@') else {
            self.is_running |= line.starts_with("program ");
            if self.is_running && !line.is_empty() {
                say(&line);
            }
            if !line.is_empty() {
                self.last = line;
            }
            return Ok(());
        };
        self.read(said).ok_or(BootError::Garbled { line })
    }

    /// Reads a line for us.
    fn read(&mut self, said: &str) -> Option<()> {
        let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
        match word {
            "task" => self.outcome.tasks.push(task(rest)?),
            "value" => {
                let (name, number) = rest.split_once(' ')?;
                self.outcome.values.push((name.into(), number.parse().ok()?));
            }
            "learned" => {
                let (name, value) = rest.split_once(' ')?;
                self.outcome.learned.push((name.into(), value.into()));
            }
            "end" => self.is_done = true,
            _ => return None,
        }
        Some(())
    }
}

/// Reads what follows `@task`.
fn task(text: &str) -> Option<TaskOutcome> {
    let mut words = text.split(' ');
    let name = words.next().filter(|name| !name.is_empty())?;
    let mut task = TaskOutcome { name: name.into(), ..TaskOutcome::default() };
    for word in words {
        let (key, number) = word.split_once('=')?;
        let number: u64 = number.parse().ok()?;
        match key {
            "arrival" => task.arrival = Time(number),
            "first" => task.first = Time(number),
            "finish" => task.finish = Time(number),
            "groups" => task.groups = number,
            "service" => task.service = Some(Span(number)),
            "dispatches" => task.dispatches = Some(number),
            "slept" => task.slept = Span(number),
            "id" => task.known_as = Some(u32::try_from(number).ok()?),
            _ => return None,
        }
    }
    Some(task)
}

/// `line` without the colours of ArceOS's log.
fn strip_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain += before;
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain += rest;
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<(Outcome, Vec<String>), BootError> {
        let mut console = Console::default();
        let mut said = Vec::new();
        for line in lines {
            console.line(line, &mut |text| said.push(text.into()))?;
        }
        console.end("exit status: 1")?;
        Ok((console.outcome, said))
    }

    #[test]
    fn lines_for_people_and_lines_for_us() {
        let (outcome, said) = read(&[
            "arch = x86_64",
            "\u{1b}[37m[  0.1 axruntime] \u{1b}[32mInitialize\u{1b}[m",
            "program yield",
            "@task P0 arrival=1 first=2 finish=30 groups=4",
            "half done",
            "@task P1 arrival=1 first=3 finish=40 groups=5 service=6 dispatches=7",
            "@value per_yield_ns 195",
            "@end",
        ])
        .unwrap();
        assert_eq!(said, ["program yield", "half done"]);
        assert_eq!(outcome.value("per_yield_ns"), Some(195));
        assert_eq!(outcome.tasks[0].service, None);
        assert_eq!(outcome.tasks[1].service, Some(Span(6)));
        assert_eq!(outcome.tasks[1].finish, Time(40));
    }

    #[test]
    fn a_panic_says_where_and_why() {
        let lines =
            ["program batch", "panicked at src/batch.rs:7:9:", "the host describes no tasks"];
        assert_eq!(
            read(&lines).unwrap_err().to_string(),
            "the kernel panicked: src/batch.rs:7:9: the host describes no tasks"
        );
    }

    #[test]
    fn an_end_without_the_last_line_is_none() {
        let error = read(&["program yield", "@task P0 arrival=1"]).unwrap_err();
        assert!(matches!(error, BootError::Unfinished { ref last, .. } if last == "program yield"));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for line in ["@task", "@task P0 arrival=x", "@task P0 age=3", "@value x", "@valve x 1"] {
            assert!(matches!(read(&[line]), Err(BootError::Garbled { .. })), "{line}");
        }
    }
}
