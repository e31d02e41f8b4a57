//! What the kernel prints, and what it means.
//!
//! What counts are [messages](anysched_wire::result). All else is prose for people, with one
//! exception: a kernel in Rust, or Xen, that panics says so in its own words.

use crate::{BootError, Heard, Running};
use anysched_core::{Span, Time};
use anysched_wire::result::{self, Message, Reader};
use std::time::Duration;

/// What a program has found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Its tasks, in the order in which it started them.
    pub tasks: Vec<TaskOutcome>,
    /// What it measured besides, by name.
    pub values: Vec<(String, u64)>,
    /// What it measured many times, by name, in the order in which it said it.
    pub samples: Vec<(String, u64)>,
    /// What the policy has learned: parameters for a later run, by name.
    pub learned: Vec<(String, String)>,
    /// The log of decisions of each CPU, if they were recorded.
    pub logs: Vec<Vec<u8>>,
    /// What the kernel recorded of its own events, of each CPU, if it was asked to.
    pub events: Vec<Vec<u8>>,
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
    /// Time for which it slept, as it was told to.
    pub slept: Span,
}

impl Outcome {
    /// The value called `name`.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.iter().find(|(value, _)| value == name).map(|(_, number)| *number)
    }
}

impl From<result::Task> for TaskOutcome {
    fn from(task: result::Task) -> TaskOutcome {
        TaskOutcome {
            name: task.name,
            arrival: Time(task.arrival),
            first: Time(task.first),
            finish: Time(task.finish),
            groups: task.groups,
            service: task.service.map(Span),
            dispatches: task.dispatches,
            slept: Span(task.slept),
        }
    }
}

/// What stands before the place in the line by which Rust says that it panics.
const PANIC: &str = "panicked at ";

/// What Xen's lines begin with, and the line with which it panics; the next says why.
const XEN: &str = "(XEN) ";
const XEN_PANIC: &str = "(XEN) Panic on ";

/// What ends its message. Xen waits for five seconds then, which take a minute where instructions
/// are counted.
const XEN_PANIC_END: &str = "(XEN) ****";

/// Reads a console.
#[derive(Debug, Default)]
pub struct Console {
    /// What the program has found out so far.
    pub outcome: Outcome,
    reader: Reader,
    /// The last line for people.
    last: String,
    panic: Option<String>,
    /// The program has said that clients can send to it.
    is_serving: bool,
    /// No kernel speaks here: what looks like its panic is a program's.
    is_of_programs: bool,
}

/// What was heard of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A line, which has been read.
    Line,
    /// Nothing for as long as was asked.
    Silence,
    /// It has ended well.
    End,
}

impl Console {
    /// That of a kernel whose own words go elsewhere.
    pub fn of_programs() -> Console {
        Console { is_of_programs: true, ..Console::default() }
    }

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
    /// Errors: the kernel panicked, refused what it was asked for, or did not end well.
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

    /// Whether clients can send to it.
    pub fn is_serving(&self) -> bool {
        self.is_serving
    }

    fn end(&mut self, status: &str) -> Result<(), BootError> {
        if let Some(message) = self.panic.take() {
            return Err(BootError::Panicked { message });
        }
        if !self.reader.is_over() {
            let (last, status) = (self.last.clone(), status.to_string());
            return Err(BootError::Unfinished { last, status });
        }
        Ok(())
    }

    fn line(&mut self, line: &str, say: &mut dyn FnMut(&str)) -> Result<(), BootError> {
        let line = strip_colours(line);
        if let Some(message) = &mut self.panic {
            if line.starts_with(XEN_PANIC_END) {
                return self.end("a panic");
            }
            // The line after "panicked at PLACE:" says why.
            if message.ends_with(':') {
                *message += &format!(" {}", line.trim_start_matches(XEN));
            }
            return Ok(());
        }
        if let Some(place) = line.strip_prefix(XEN_PANIC) {
            self.panic = Some(place.to_string());
            return Ok(());
        }
        // A message may quote a program that panicked.
        if !self.is_of_programs
            && !line.starts_with(result::MARK)
            && let Some((_, place)) = line.split_once(PANIC)
        {
            self.panic = Some(place.to_string());
            return Ok(());
        }
        // Xen's own messages are among the lines that it prints.
        let line = match line.strip_prefix(XEN) {
            Some(message) if message.starts_with(result::MARK) => message.to_string(),
            _ => line,
        };
        match self.reader.read(&line)? {
            // The kernel's own greeting is not worth saying.
            None if line.is_empty() => {}
            None if !self.reader.is_running() => self.last = line,
            None => self.tell(line, say),
            Some(message) => self.heed(message, say)?,
        }
        Ok(())
    }

    /// Says a line for people.
    fn tell(&mut self, line: String, say: &mut dyn FnMut(&str)) {
        say(&line);
        self.last = line;
    }

    fn heed(&mut self, message: Message, say: &mut dyn FnMut(&str)) -> Result<(), BootError> {
        let Outcome { tasks, values, samples, learned, .. } = &mut self.outcome;
        match message {
            Message::Started(program) => self.tell(format!("program {program}"), say),
            Message::Serving(sockets) => {
                self.is_serving = true;
                self.tell(format!("serving {sockets} sockets"), say);
            }
            Message::Task(task) => tasks.push(task.into()),
            Message::Value { name, number } => values.push((name, number)),
            Message::Sample { name, number } => samples.push((name, number)),
            Message::Learned { name, value } => learned.push((name, value)),
            Message::Refused(why) => return Err(BootError::Refused { why }),
            Message::End => {}
        }
        Ok(())
    }
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
            "@started 1 yield",
            "@task P0 arrival=1 first=2 finish=30 groups=4 slept=0",
            "half done",
            "@task P\\s1 arrival=1 first=3 finish=40 groups=5 slept=2 service=6 dispatches=7",
            "@value per_yield_ns 195",
            "@sample latency 7",
            "@sample latency 5",
            "@learned profile 1 2\\n3",
            "@end",
        ])
        .unwrap();
        assert_eq!(said, ["program yield", "half done"]);
        assert_eq!(outcome.value("per_yield_ns"), Some(195));
        assert_eq!(outcome.samples, [7, 5].map(|number| ("latency".to_string(), number)));
        assert_eq!(outcome.learned, [("profile".to_string(), "1 2\n3".to_string())]);
        assert_eq!(outcome.tasks[0].service, None);
        let second = TaskOutcome {
            name: "P 1".into(),
            arrival: Time(1),
            first: Time(3),
            finish: Time(40),
            groups: 5,
            service: Some(Span(6)),
            dispatches: Some(7),
            slept: Span(2),
        };
        assert_eq!(outcome.tasks[1], second);
    }

    /// What only looks like a message, or like one of earlier images, changes nothing.
    #[test]
    fn prose_is_no_state() {
        let mut console = Console::default();
        for line in ["program yield", "serving 2 sockets", " @end"] {
            console.line(line, &mut |said| panic!("{said}")).unwrap();
        }
        assert!(!console.is_serving());
        for line in ["@started 1 udp", "@serving 2"] {
            console.line(line, &mut |_| ()).unwrap();
        }
        assert!(console.is_serving());
        assert_eq!(console.last(), "serving 2 sockets");
    }

    #[test]
    fn a_panic_says_where_and_why() {
        let lines =
            ["@started 1 batch", "panicked at src/batch.rs:7:9:", "the host describes no tasks"];
        assert_eq!(
            read(&lines).unwrap_err().to_string(),
            "the kernel panicked: src/batch.rs:7:9: the host describes no tasks"
        );
    }

    #[test]
    fn nobody_waits_for_xen_to_end_after_a_panic() {
        let mut console = Console::default();
        let mut hear = |line: &str| console.line(line, &mut |said| panic!("{said}"));
        let stars = "(XEN) ****************************************";
        let panic = ["(XEN) ", stars, "(XEN) Panic on CPU 0:", "(XEN) asked to panic"];
        panic.iter().for_each(|line| hear(line).unwrap());
        let error = hear(stars).unwrap_err().to_string();
        assert_eq!(error, "the kernel panicked: CPU 0: asked to panic");
    }

    /// A process that panics has a kernel that goes on.
    #[test]
    fn a_panic_of_a_program_is_not_the_kernels() {
        let panic = "thread 'main' panicked at src/main.rs:1:2:";
        let mut console = Console::of_programs();
        let mut said = Vec::new();
        for line in ["@started 1 shell", panic, "no such file", "@end"] {
            console.line(line, &mut |text| said.push(text.to_string())).unwrap();
        }
        console.end("exit status: 1").unwrap();
        assert_eq!(said, ["program shell", panic, "no such file"]);
        let refused = "@refused the guest's program: panicked at src/main.rs:1:2: no";
        let error = read(&["@started 1 shell", refused]).unwrap_err();
        assert!(matches!(error, BootError::Refused { .. }), "{error}");
    }

    #[test]
    fn what_is_refused_is_an_error() {
        let error = read(&["@refused there is no policy \"x\""]).unwrap_err().to_string();
        assert_eq!(error, "the kernel refused to run this: there is no policy \"x\"");
    }

    #[test]
    fn an_end_without_the_last_line_is_none() {
        let task = "@task P0 arrival=1 first=1 finish=1 groups=1 slept=0";
        let error = read(&["@started 1 yield", task]).unwrap_err();
        assert!(matches!(error, BootError::Unfinished { ref last, .. } if last == "program yield"));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for line in ["@task", "@task P0 arrival=x", "@value x", "@valve x 1", "@started 2 yield"] {
            assert!(matches!(read(&["@started 1 x", line]), Err(BootError::Wire { .. })), "{line}");
        }
        for early in ["@end", "@value x 1"] {
            assert!(matches!(read(&[early]), Err(BootError::Wire { .. })), "{early}");
        }
    }
}
