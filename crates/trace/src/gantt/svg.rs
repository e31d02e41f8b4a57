//! The picture as SVG, for light and dark pages.

use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use super::ticks::{label, ticks};
use super::{CpuLine, Gantt, STOLEN, Scale, TaskLine, mark};
use crate::svg::{Colour, GRID, INK, PAPER, RED, SERIES, SOFT, escaped};

/// How many columns a picture has that is to be drawn so: two for each of SVG's units.
pub const SVG_COLUMNS: usize = 1216;

const WIDTH: usize = 760;
const NAMES: usize = 128;
const ROW: usize = 22;
const BAR: usize = 14;
/// Of a letter, about; no font is at hand to ask.
const LETTER: usize = 7;

/// Of tasks in turn. Misses alone are red.
const TASKS: [Colour; 7] =
    [SERIES[0], SERIES[1], SERIES[2], SERIES[3], SERIES[4], SERIES[5], SERIES[7]];

/// Several pictures below each other, each with its heading, with a legend. All have been made with
/// [`SVG_COLUMNS`]; the same pictures give the same bytes everywhere.
pub fn svg(title: &str, pictures: &[(&str, &Gantt)]) -> String {
    let mut page = Page { body: String::new(), y: 12 };
    page.text("title", 12, title, 22);
    for (name, picture) in pictures {
        page.picture(name, picture);
    }
    page.legend(pictures.iter().any(|(_, picture)| picture.tasks.values().any(has_marks)));
    let height = page.y + 12;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n{}\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n{}</svg>\n",
        escaped(title),
        style(),
        page.body
    )
}

fn has_marks(line: &TaskLine) -> bool {
    line.cells.iter().any(|cell| cell.marks != 0)
}

fn style() -> String {
    let colours = |theme: usize| {
        let mut text = format!(
            "text{{fill:{}}}.paper{{fill:{}}}.soft{{fill:{}}}.grid{{stroke:{}}}\
             .wait,.mark{{stroke:{}}}.miss{{stroke:{}}}.on{{fill:{}}}",
            INK[theme],
            PAPER[theme],
            SOFT[theme],
            GRID[theme],
            SOFT[theme],
            RED[theme],
            PAPER[theme]
        );
        for (number, colours) in TASKS.iter().enumerate() {
            let _ = write!(text, ".c{number}{{fill:{}}}", colours[theme]);
        }
        text
    };
    format!(
        "<style>\ntext{{font:12px system-ui,-apple-system,\"Segoe UI\",Helvetica,Arial,sans-serif}}\
         .title{{font-size:16px;font-weight:600}}.head{{font-weight:600}}.end{{text-anchor:end}}\
         .middle{{text-anchor:middle}}.wait,.mark,.miss,.grid{{fill:none}}.miss{{stroke-width:2}}\
         .some{{opacity:.6}}.little{{opacity:.35}}.stolen{{opacity:.25}}\n{}\n\
         @media (prefers-color-scheme:dark){{{}}}\n</style>\n",
        colours(0),
        colours(1)
    )
}

/// A number of half units, as a coordinate.
fn halves(count: usize) -> String {
    if count.is_multiple_of(2) { format!("{}", count / 2) } else { format!("{}.5", count / 2) }
}

/// The class of a task's colour.
fn colour(serial: u64) -> usize {
    (serial % TASKS.len() as u64) as usize
}

/// How dark a column is of which so much is used.
fn shade(ran: u64, width: u64) -> &'static str {
    match ran {
        ran if 2 * ran >= width => "",
        ran if 4 * ran >= width => " some",
        _ => " little",
    }
}

struct Page {
    body: String,
    y: usize,
}

impl Page {
    fn text(&mut self, class: &str, x: usize, text: &str, height: usize) {
        self.y += height;
        let (y, text) = (self.y - 6, escaped(text));
        let _ = writeln!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
    }

    fn picture(&mut self, name: &str, picture: &Gantt) {
        self.y += 8;
        self.text("head", 12, name, 18);
        let top = self.y + 18;
        self.times(picture, top);
        self.y = top;
        for (cpu, line) in picture.cpus.iter().enumerate() {
            self.cpu(&format!("CPU {cpu}"), line, picture);
        }
        for (&serial, line) in &picture.tasks {
            let shown = line.place.and_then(|place| picture.virtual_cpus.get(&place));
            match shown {
                Some(cpu) => self.cpu(&line.name, cpu, picture),
                None => self.task(serial, line, picture),
            }
        }
        if picture.hidden > 0 {
            self.text("soft", 12, &format!("and {} more tasks", picture.hidden), 18);
        }
    }

    fn times(&mut self, picture: &Gantt, top: usize) {
        let Scale { from, .. } = picture.scale;
        let until = picture.scale.until();
        let rows = picture.cpus.len() + picture.tasks.len();
        let bottom = top + rows * ROW;
        let mut last: Option<usize> = None;
        let all = core::iter::once(from).chain(ticks(from, until, 8));
        let ends = core::iter::once(until);
        for at in all.chain(ends) {
            let x = 2 * NAMES + edge(picture.scale, at);
            let text = label(at);
            // The end may be too near to the last tick.
            if last.is_some_and(|last| x < last + 2 * LETTER * (text.len() + 2)) {
                continue;
            }
            last = Some(x);
            let x = halves(x);
            let _ = writeln!(
                self.body,
                "<path class=\"grid\" d=\"M{x},{top}V{bottom}\"/>\
                 <text class=\"soft middle\" x=\"{x}\" y=\"{}\">{text}</text>",
                top - 5
            );
        }
    }

    fn name(&mut self, name: &str) {
        let most = (NAMES - 24) / LETTER;
        let shown: String = name.chars().take(most).collect();
        let y = self.y + 15;
        let _ = writeln!(self.body, "<text x=\"12\" y=\"{y}\">{}</text>", escaped(&shown));
    }

    /// A bar from one column to another.
    fn bar(&mut self, class: &str, from: usize, to: usize, title: &str, inside: &str) {
        let (x, y) = (halves(2 * NAMES + from), self.y + (ROW - BAR) / 2);
        let width = halves(to - from);
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BAR}\">\
             <title>{}</title></rect>",
            escaped(title)
        );
        if !inside.is_empty() && to - from >= 2 * LETTER * (inside.chars().count() + 1) {
            let (x, y) = (halves(2 * NAMES + (from + to) / 2), y + 11);
            let _ = write!(
                self.body,
                "<text class=\"on middle\" x=\"{x}\" y=\"{y}\">{}</text>",
                escaped(inside)
            );
        }
        self.body.push('\n');
    }

    fn cpu(&mut self, name: &str, line: &CpuLine, picture: &Gantt) {
        self.name(name);
        let what = |column: usize| {
            let cell = &line.cells[column];
            let task = cell.task?;
            Some((task, shade(cell.ran.0, picture.scale.width(column).0)))
        };
        for (from, to, (task, shade)) in runs(line.cells.len(), what) {
            let unknown = String::from("another task");
            let title = match picture.tasks.get(&task) {
                _ if task == STOLEN => String::from("stolen"),
                Some(line) if line.place.is_none() => line.name.clone(),
                _ => unknown,
            };
            let class = match task {
                STOLEN => String::from("c6 stolen"),
                task => format!("c{}{shade}", colour(task)),
            };
            let inside = if shade.is_empty() && task != STOLEN { title.as_str() } else { "" };
            self.bar(&class, from, to, &title, inside);
        }
        self.y += ROW;
    }

    fn task(&mut self, serial: u64, line: &TaskLine, picture: &Gantt) {
        self.name(&line.name);
        let scale = picture.scale;
        let middle = self.y + ROW / 2;
        let waits = |column: usize| {
            let cell = &line.cells[column];
            let away = scale.width(column).saturating_sub(cell.ran + cell.waited);
            (cell.waited.0 > 0 && cell.waited >= away).then_some(())
        };
        for (from, to, ()) in runs(line.cells.len(), waits) {
            let [from, to] = [from, to].map(|column| halves(2 * NAMES + column));
            let _ = writeln!(self.body, "<path class=\"wait\" d=\"M{from},{middle}H{to}\"/>");
        }
        let ran = |column: usize| {
            let cell = &line.cells[column];
            (cell.ran.0 > 0).then(|| (cell.cpu, shade(cell.ran.0, scale.width(column).0)))
        };
        let several = picture.cpus.len() > 1;
        for (from, to, (cpu, shade)) in runs(line.cells.len(), ran) {
            let inside = if several { format!("{cpu}") } else { String::new() };
            let class = format!("c{}{shade}", colour(serial));
            self.bar(&class, from, to, &format!("{} on CPU {cpu}", line.name), &inside);
        }
        for (column, cell) in line.cells.iter().enumerate().filter(|(_, cell)| cell.marks != 0) {
            self.marks(column, cell.marks);
        }
        self.y += ROW;
    }

    fn marks(&mut self, column: usize, marks: u8) {
        let (x, top, bottom) = (halves(2 * NAMES + column), self.y + 1, self.y + ROW - 1);
        let mut draw = |class: &str, path: String| {
            let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
        };
        if marks & mark::READY != 0 {
            draw("mark", format!("M{x},{bottom}V{top}m-2.5,4l2.5,-4l2.5,4"));
        }
        if marks & mark::DUE != 0 && marks & mark::MISSED == 0 {
            draw("mark", format!("M{x},{top}V{bottom}m-2.5,-4l2.5,4l2.5,-4"));
        }
        if marks & mark::MISSED != 0 {
            draw("miss", format!("M{x},{top}V{bottom}m-3.5,-4.5l3.5,4.5l3.5,-4.5"));
        }
        if marks & mark::PREEMPTED != 0 {
            draw("mark", format!("M{x},{top}m-3,1h6"));
        }
    }

    fn legend(&mut self, marks: bool) {
        self.y += 6;
        let what =
            "Bars: what ran, paler where for less than half of the time. Lines: ready, waiting.";
        self.text("soft", 12, what, 16);
        if marks {
            let what = "Arrows: up, arrival, release or wake-up; down, deadline, red if missed. \
                        Dash on top: preempted.";
            self.text("soft", 12, what, 16);
        }
    }
}

/// Where a time is, in columns from the left edge.
fn edge(scale: Scale, at: anysched_core::Time) -> usize {
    let passed = u128::from(at.since(scale.from).0) * scale.columns as u128;
    (passed / u128::from(scale.length)) as usize
}

/// Columns next to each other with the same content: from, to, content.
fn runs<T: PartialEq>(
    columns: usize,
    what: impl Fn(usize) -> Option<T>,
) -> alloc::vec::Vec<(usize, usize, T)> {
    let mut all: alloc::vec::Vec<(usize, usize, T)> = alloc::vec::Vec::new();
    for column in 0..columns {
        let Some(content) = what(column) else { continue };
        match all.last_mut() {
            Some((_, to, last)) if *to == column && *last == content => *to += 1,
            _ => all.push((column, column + 1, content)),
        }
    }
    all
}
