//! The picture with characters.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use anysched_core::Span;
use core::fmt;

use super::ticks::{label, ticks};
use super::{CpuLine, Gantt, LETTERS, TaskCell, TaskLine, letter, mark};

/// Width of the column of names.
pub const NAMES: usize = 16;

/// At least so many columns between two ticks.
const APART: usize = 10;

/// What stands for less than half of a column: from a quarter on, and below.
const SOME: char = '▒';
const LITTLE: char = '░';
/// What stands for a column that several tasks share on a CPU, each for less than half of it.
const SHARED: char = '▓';

impl Gantt {
    /// What the signs of pictures mean, as far as one of these has them, in lines of at most
    /// `width` characters if no word is longer.
    pub fn legend(pictures: &[Gantt], width: usize) -> String {
        let text: String = pictures.iter().map(|picture| format!("{picture}")).collect();
        let drawn: String = text
            .lines()
            .filter(|line| !line.starts_with("and ") && !line.starts_with("in "))
            .flat_map(|line| line.chars().skip(NAMES).chain(['\n']))
            .collect();
        let has = |sign: char| drawn.contains(sign);
        let mut parts = vec!["a CPU's line shows its tasks, a task's its CPU"];
        for (sign, words) in [
            (SHARED, "▓ several tasks, none for half of the column"),
            (SOME, "▒ less than half of the column"),
            (LITTLE, "░ less than a quarter"),
            ('.', ". waits"),
            ('-', "- stolen: ready, while the host runs something else"),
        ] {
            if has(sign) {
                parts.push(words);
            }
        }
        if pictures.iter().any(Gantt::has_many) {
            parts.push("# any from the 63rd on");
        }
        if pictures.iter().any(Gantt::shows_marks) {
            for (sign, words) in [
                ('^', "^ arrives, is released or woken"),
                ('v', "v deadline"),
                ('%', "% deadline and release"),
                ('!', "! deadline missed"),
                ('<', "< preempted"),
            ] {
                if has(sign) {
                    parts.push(words);
                }
            }
        }
        let mut text = String::new();
        for line in wrapped(&parts.join("; "), width) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// Whether there are more tasks than letters for them.
    fn has_many(&self) -> bool {
        self.tasks.keys().next_back().is_some_and(|serial| *serial >= LETTERS.len() as u64)
    }

    /// Whether marks are shown.
    fn shows_marks(&self) -> bool {
        let is_due = |cell: &TaskCell| cell.marks & mark::DUE != 0;
        self.marks || self.tasks.values().any(|line| line.cells.iter().any(is_due))
    }

    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = (self.scale.from, self.scale.until());
        let mut line = vec![' '; self.scale.columns];
        let end = format!("{}|", label(until));
        let free = self.scale.columns.saturating_sub(end.len() + 1);
        let mut next = 0;
        let most = (self.scale.columns / APART).max(1) as u64;
        for at in core::iter::once(from).chain(ticks(from, until, most)) {
            let text = format!("|{}", label(at));
            let Some(column) = self.scale.column(at) else { continue };
            if column < next || column + text.len() > free && at != from {
                continue;
            }
            put(&mut line, column, &text);
            next = column + text.len() + 1;
        }
        if next <= self.scale.columns.saturating_sub(end.len()) {
            let at = self.scale.columns - end.len();
            put(&mut line, at, &end);
        }
        let line: String = line.into_iter().collect();
        writeln!(f, "{:NAMES$}{}", "", line.trim_end())
    }

    fn write_cpu(&self, f: &mut fmt::Formatter<'_>, line: &CpuLine) -> fmt::Result {
        let cells = line.cells.iter().enumerate().map(|(column, cell)| {
            let width = self.scale.width(column).0;
            match cell.task {
                Some(serial) if 2 * cell.ran.0 >= width => letter(serial),
                Some(_) if 2 * cell.busy.0 >= width => SHARED,
                Some(_) if 4 * cell.busy.0 >= width => SOME,
                Some(_) => LITTLE,
                None => ' ',
            }
        });
        let cells: String = cells.collect();
        writeln!(f, "{}", cells.trim_end())
    }

    fn write_task(&self, f: &mut fmt::Formatter<'_>, line: &TaskLine) -> fmt::Result {
        let cells = line.cells.iter().enumerate().map(|(column, cell)| {
            let width = self.scale.width(column);
            let away = width.saturating_sub(cell.ran + cell.waited);
            if cell.ran > Span::ZERO && 2 * cell.ran.0 >= width.0 {
                letter(u64::from(cell.cpu))
            } else if cell.ran > Span::ZERO && 4 * cell.ran.0 >= width.0 {
                SOME
            } else if cell.ran > Span::ZERO {
                LITTLE
            } else if cell.waited > Span::ZERO && cell.waited >= away {
                '.'
            } else {
                ' '
            }
        });
        let cells: String = cells.collect();
        writeln!(f, "{}", cells.trim_end())
    }

    fn write_marks(&self, f: &mut fmt::Formatter<'_>, line: &TaskLine) -> fmt::Result {
        let sign = |cell: &TaskCell| match cell.marks {
            marks if marks & mark::MISSED != 0 => '!',
            marks if marks & (mark::DUE | mark::READY) == mark::DUE | mark::READY => '%',
            marks if marks & mark::DUE != 0 => 'v',
            marks if marks & mark::PREEMPTED != 0 => '<',
            marks if marks & mark::READY != 0 => '^',
            _ => ' ',
        };
        let cells: String = line.cells.iter().map(sign).collect();
        match cells.trim_end() {
            "" => Ok(()),
            cells => writeln!(f, "{:NAMES$}{cells}", ""),
        }
    }
}

/// Puts a text into a line.
fn put(line: &mut [char], at: usize, text: &str) {
    for (place, sign) in line.iter_mut().skip(at).zip(text.chars()) {
        *place = sign;
    }
}

/// A text in lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let used = lines[last].chars().count();
        if used > 0 && used + 1 + word.chars().count() > width {
            lines.push(word.into());
            continue;
        }
        if used > 0 {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
    }
    lines
}

impl fmt::Display for Gantt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_times(f)?;
        for (cpu, line) in self.cpus.iter().enumerate() {
            write!(f, "{:NAMES$}", format!("cpu {cpu}"))?;
            self.write_cpu(f, line)?;
        }
        let marks = self.shows_marks();
        for (&serial, line) in &self.tasks {
            // The names of virtual CPUs differ at their ends.
            let cut = line.name.chars().count().saturating_sub(NAMES - 4);
            let cut = if line.place.is_some() { cut } else { 0 };
            let name: String = line.name.chars().skip(cut).take(NAMES - 4).collect();
            write!(f, "{} {name:14}", letter(serial))?;
            match line.place.and_then(|place| self.virtual_cpus.get(&place)) {
                Some(line) => self.write_cpu(f, line)?,
                None => self.write_task(f, line)?,
            }
            if marks {
                self.write_marks(f, line)?;
            }
        }
        if self.hidden > 0 {
            writeln!(f, "and {} more tasks", self.hidden)?;
        }
        let shown = |vm: usize| self.virtual_cpus.range((vm, 0)..(vm + 1, 0)).next().is_some();
        for (_, inside) in self.inside.iter().filter(|&(&vm, _)| shown(vm)) {
            for (number, (letter, name)) in inside.tasks.iter().enumerate() {
                if number == 0 {
                    write!(f, "in {}: {letter} {name}", inside.name)?;
                } else {
                    write!(f, ", {letter} {name}")?;
                }
            }
            if !inside.tasks.is_empty() {
                writeln!(f)?;
            }
        }
        Ok(())
    }
}
