//! Policies side by side without an axis: a bar each, or a box of the values of its seeds; as SVG
//! or in text.

use super::caption;
use super::scale::{Scale, ticks};
use super::svg::{LETTER, LINE, MARGIN, Page, WIDTH, coordinate, look};
use crate::output::align;
use crate::output::marks::{self, marked};
use crate::output::numbers::Format;
use crate::output::table;
use crate::plan::Plan;
use crate::results::Results;
use crate::results::stats::Estimate;
use crate::spec::error::Error;
use crate::spec::experiment::Experiment;
use crate::spec::overrides::quoted;
use crate::spec::report::{Asked, Counted};
use anysched_measure::Apart;
use std::fmt::Write;

/// What is drawn of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A bar to the mean over seeds, with its interval.
    Bar,
    /// The values of the seeds: a box from the lower to the upper quartile with the median in it,
    /// and lines to the smallest and the largest.
    Box,
}

/// What is drawn of an experiment's results; [`Experiment::bars`] makes it.
#[derive(Clone, Debug)]
pub struct Bars {
    columns: Vec<Asked>,
    shape: Shape,
    log: bool,
}

impl Experiment {
    /// Bars or boxes of `metrics`, names of columns such as `wakeup_latency_ns_p99`, a line for
    /// each policy. There is a panel for each metric and each combination of axis values.
    ///
    /// Errors: there is no such metric.
    pub fn bars(&self, metrics: &[&str], shape: Shape, log: bool) -> Result<Bars, Error> {
        let counted = Counted::by_policies(&self.sweep, &self.scenarios);
        let mut columns = Vec::new();
        for name in metrics {
            let asked = self.append("y", &quoted(name));
            let column = Asked::named(name, &asked.node.at, &self.scenarios, &counted);
            columns.push(column.map_err(|fault| asked.source.error(fault))?);
        }
        Ok(Bars { columns, shape, log })
    }
}

impl Plan {
    /// The same runs, of which what bars show of some of the tasks is measured too.
    pub fn with_bars(mut self, bars: &Bars) -> Plan {
        let apart = bars.columns.iter().map(Asked::apart).fold(Apart::default(), Apart::and);
        self.apart = self.apart.and(apart);
        self
    }
}

/// What is drawn of a policy.
#[derive(Clone, Debug, PartialEq)]
struct Drawn {
    /// The ends of the thin line, if there is one.
    line: Option<[f64; 2]>,
    /// The ends of the thick part.
    body: [f64; 2],
    /// What is marked in it: the median of a box.
    mark: Option<f64>,
    /// What it says behind it.
    words: String,
}

/// The smallest, the quartiles and the largest of `values`, which are not empty. Between two values
/// they are on the straight line from one to the other, as in R's type 7.
fn five_numbers(values: &[f64]) -> [f64; 5] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len() - 1;
    [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| {
        let place = part * last as f64;
        let below = libm::floor(place) as usize;
        let above = (below + 1).min(last);
        sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
    })
}

/// One metric in one group.
struct Panel<'a> {
    asked: &'a Asked,
    format: Format,
    /// By policy; `None`: no data.
    drawn: Vec<Option<Drawn>>,
    /// The least and the largest value that must fit.
    ends: [f64; 2],
}

impl Bars {
    fn panel<'a>(&self, results: &Results, group: usize, asked: &'a Asked) -> Panel<'a> {
        let format = table::format_of(results, asked.column);
        let values = |policy: usize| -> Vec<f64> {
            let row = results
                .group_beside(group, &asked.of)
                .and_then(|beside| results.row(beside, policy));
            let values = row.map_or(Vec::new(), |row| row.values(asked.column));
            values.into_iter().filter(|value| value.is_finite()).collect()
        };
        let draw = |policy: usize| self.drawn(&values(policy), &format);
        let drawn: Vec<Option<Drawn>> = (0..results.policies.len()).map(draw).collect();
        let shown = drawn.iter().flatten();
        let all =
            shown.flat_map(|drawn| drawn.body.into_iter().chain(drawn.line.into_iter().flatten()));
        let all: Vec<f64> = all.filter(|value| !self.log || *value > 0.0).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The length of a bar is its value, so bars begin at 0; boxes are about differences.
        let from_zero = self.shape == Shape::Bar && !self.log;
        let ends = match from_zero {
            true => [least.min(0.0), largest.max(0.0)],
            false => [least, largest],
        };
        Panel { asked, format, drawn, ends }
    }

    fn drawn(&self, values: &[f64], format: &Format) -> Option<Drawn> {
        let estimate = Estimate::of(values)?;
        if self.log && values.iter().any(|value| *value <= 0.0) {
            return None;
        }
        Some(match self.shape {
            Shape::Bar => {
                let ci95 = estimate.ci95.filter(|ci95| *ci95 > 0.0);
                let low = |ci95: f64| match estimate.mean >= 0.0 {
                    true => f64::max(estimate.mean - ci95, 0.0),
                    false => estimate.mean - ci95,
                };
                Drawn {
                    line: ci95.map(|ci95| [low(ci95), estimate.mean + ci95]),
                    body: [0.0, estimate.mean],
                    mark: None,
                    words: format.interval(estimate.mean, ci95),
                }
            }
            Shape::Box => {
                let five = five_numbers(values);
                Drawn {
                    line: Some([five[0], five[4]]),
                    body: [five[1], five[3]],
                    mark: Some(five[2]),
                    words: five.map(|value| format.number(value)).join(" "),
                }
            }
        })
    }

    /// The groups that are shown.
    fn groups(results: &Results) -> impl Iterator<Item = usize> {
        let all = 0..results.groups.len();
        all.filter(|group| results.rows_shown.include(&results.groups[*group].axes))
    }

    fn notes(&self, results: &Results) -> Vec<String> {
        let mut notes = Vec::new();
        match self.shape {
            Shape::Bar if results.seeds > 1 => notes
                .push("± is half the 95 % confidence interval of the mean over seeds.".to_string()),
            Shape::Bar => {}
            Shape::Box => notes.push(format!(
                "Of {} seeds: the smallest, the quartiles with the median between them, the \
                 largest.",
                results.seeds
            )),
        }
        let told = marks::notes(results.policies.iter().map(|policy| policy.nature));
        notes.extend(told.into_iter().map(String::from));
        if !results.complete {
            notes.push(marks::interrupted(results));
        }
        notes
    }

    fn name(results: &Results, policy: usize) -> String {
        let policy = &results.policies[policy];
        marked(&policy.label, policy.nature)
    }

    /// The bars as plain text, 80 columns wide.
    pub fn text(&self, results: &Results) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{}", results.title.as_deref().unwrap_or(&results.experiment));
        table::wrap(&mut text, "", &results.question);
        for group in Bars::groups(results) {
            text.push('\n');
            let shown = &results.groups[group];
            let title = Some(shown.title()).filter(|title| !title.is_empty());
            for line in title.into_iter().chain(caption(&[shown], "", results.seeds)) {
                table::wrap(&mut text, "", &line);
            }
            for asked in &self.columns {
                let panel = self.panel(results, group, asked);
                let _ = writeln!(text, "\n{}", table::name_in_full(asked, &panel.format));
                text += &self.text_of(&panel, results);
            }
        }
        let _ = writeln!(text, "\n{}", self.notes(results).join("\n"));
        text
    }

    fn text_of(&self, panel: &Panel<'_>, results: &Results) -> String {
        const TEXT_WIDTH: usize = 80;
        let names: Vec<String> =
            (0..results.policies.len()).map(|policy| Bars::name(results, policy)).collect();
        let words: Vec<String> = panel
            .drawn
            .iter()
            .map(|drawn| drawn.as_ref().map_or("-".to_string(), |drawn| drawn.words.clone()))
            .collect();
        let (name_width, words_width) = (align::width(&names), align::width(&words));
        let room = TEXT_WIDTH.saturating_sub(name_width + words_width + 4).clamp(16, 60);
        let scale = Scale { values: panel.ends, ends: [0.0, room as f64 - 1.0], log: self.log };
        let mut text = String::new();
        for ((name, drawn), words) in names.iter().zip(&panel.drawn).zip(&words) {
            let picture = drawn.as_ref().map_or(String::new(), |drawn| row_of(drawn, &scale, room));
            let line = format!("{name:<name_width$}  {picture:<room$}  {words:>words_width$}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// The bars as a picture that needs no other file, on light and dark pages. The same results
    /// give the same bytes on every machine.
    pub fn svg(&self, results: &Results) -> String {
        let mut page = Page::new(results);
        for group in Bars::groups(results) {
            let shown = &results.groups[group];
            page.section(&shown.title(), &caption(&[shown], "", results.seeds));
            for asked in &self.columns {
                self.svg_of(&mut page, &self.panel(results, group, asked), results);
            }
        }
        page.finish(results, &self.notes(results))
    }

    fn svg_of(&self, page: &mut Page, panel: &Panel<'_>, results: &Results) {
        const HEIGHT: f64 = 20.0;
        page.y += LINE + 8.0;
        page.text("head", [MARGIN, page.y - 3.0], &table::name_in_full(panel.asked, &panel.format));
        let names: Vec<String> =
            (0..results.policies.len()).map(|policy| Bars::name(results, policy)).collect();
        let letters = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64;
        let name_width = letters(&mut names.iter().map(|name| name.chars().count())) * LETTER;
        let all = panel.drawn.iter().flatten();
        let words_width = letters(&mut all.map(|drawn| drawn.words.chars().count())) * LETTER;
        if panel.ends[0] > panel.ends[1] {
            page.y += LINE;
            page.text("soft", [MARGIN, page.y], "nothing was measured");
            return;
        }
        let left = MARGIN + name_width + 10.0;
        let right = f64::max(WIDTH - MARGIN - words_width - 14.0, left + 120.0);
        let marks = ticks(panel.ends.map(|value| panel.format.scaled(value)), self.log);
        let held = [marks[0].0, marks[marks.len() - 1].0];
        let across = Scale { values: held, ends: [left, right], log: self.log };
        let at = |value: f64| {
            // A logarithmic bar begins at the first tick.
            let scaled = panel.format.scaled(value);
            across.at(if self.log { scaled.max(held[0]) } else { scaled })
        };
        let (top, bottom) = (page.y + 4.0, page.y + 4.0 + HEIGHT * names.len() as f64);
        let mut taken = f64::NEG_INFINITY;
        for (value, words) in &marks {
            let x = across.at(*value);
            page.draw(&format!(
                "<path class=\"grid\" d=\"M{},{}V{}\"/>",
                coordinate(x),
                coordinate(top),
                coordinate(bottom)
            ));
            let half = words.chars().count() as f64 * LETTER / 2.0;
            if x - half > taken + LETTER {
                page.text("soft number middle", [x, bottom + LINE], words);
                taken = x + half;
            }
        }
        for (policy, (name, drawn)) in names.iter().zip(&panel.drawn).enumerate() {
            let middle = top + HEIGHT * (policy as f64 + 0.5);
            page.text("end", [left - 6.0, middle + 4.0], name);
            let Some(drawn) = drawn else {
                page.text("soft", [left + 6.0, middle + 4.0], "-");
                continue;
            };
            page.draw(&picture_of(drawn, policy, middle, HEIGHT, at));
            page.text("number", [right + 10.0, middle + 4.0], &drawn.words);
        }
        page.y = bottom + LINE + 8.0;
    }
}

/// A bar or a box as SVG.
fn picture_of(
    drawn: &Drawn,
    policy: usize,
    middle: f64,
    height: f64,
    at: impl Fn(f64) -> f64,
) -> String {
    let (colour, _) = look(policy);
    let [low, high] = drawn.body.map(&at);
    let (low, high) = (low.min(high), low.max(high));
    let (top, size) = (coordinate(middle - height * 0.3), coordinate(height * 0.6));
    let mut text = format!(
        "<g class=\"c{colour}\"><rect x=\"{}\" y=\"{top}\" width=\"{}\" height=\"{size}\" \
         fill-opacity=\".55\"/>",
        coordinate(low),
        coordinate(f64::max(high - low, 0.5))
    );
    if let Some(line) = drawn.line {
        let [low, high] = line.map(&at);
        let (y, ends) = (coordinate(middle), coordinate(middle - 4.0));
        let (low, high) = (coordinate(low), coordinate(high));
        let _ = write!(
            text,
            "<path class=\"line\" d=\"M{low},{y}H{high}M{low},{ends}v8M{high},{ends}v8\"/>"
        );
    }
    if let Some(mark) = drawn.mark {
        let x = coordinate(at(mark));
        let _ = write!(text, "<path class=\"line\" d=\"M{x},{top}v{size}\" stroke-width=\"3\"/>");
    }
    text + "</g>"
}

/// A bar or a box in `room` letters.
fn row_of(drawn: &Drawn, scale: &Scale, room: usize) -> String {
    let place = |value: f64| libm::round(scale.at(value)) as usize;
    let mut row = vec![' '; room];
    // A bar is from 0, which a logarithmic axis does not have.
    let body = match scale.log {
        true => drawn.body.map(|value| if value > 0.0 { value } else { scale.values[0] }),
        false => drawn.body,
    };
    let [from, to] = body.map(place);
    if let Some(line) = drawn.line {
        let [low, high] =
            line.map(|value| place(value.max(if scale.log { scale.values[0] } else { value })));
        row[low..=high].fill('-');
        (row[low], row[high]) = ('|', '|');
    }
    if drawn.mark.is_none() && body[0] == body[1] {
        return row.into_iter().collect::<String>().trim_end().to_string();
    }
    for letter in &mut row[from.min(to)..=from.max(to)] {
        *letter = if *letter == ' ' || drawn.mark.is_some() { '█' } else { '▓' };
    }
    if let Some(mark) = drawn.mark {
        row[place(mark)] = '│';
    }
    row.into_iter().collect::<String>().trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_by_hand() {
        assert_eq!(five_numbers(&[4.0, 1.0, 3.0, 2.0]), [1.0, 1.75, 2.5, 3.25, 4.0]);
        assert_eq!(five_numbers(&[7.0]), [7.0; 5]);
        assert_eq!(five_numbers(&[1.0, 2.0, 3.0, 4.0, 100.0]), [1.0, 2.0, 3.0, 4.0, 100.0]);
    }

    fn drawn(line: Option<[f64; 2]>, body: [f64; 2], mark: Option<f64>) -> Drawn {
        Drawn { line, body, mark, words: String::new() }
    }

    #[test]
    fn rows_are_as_long_as_their_values() {
        let scale = Scale { values: [0.0, 10.0], ends: [0.0, 10.0], log: false };
        let bar = |mean, line| row_of(&drawn(line, [0.0, mean], None), &scale, 11);
        assert_eq!(bar(10.0, None), "███████████");
        assert_eq!(bar(5.0, None), "██████");
        assert_eq!(bar(5.0, Some([3.0, 8.0])), "███▓▓▓--|");
        assert_eq!(bar(0.0, None), "");
        let whole = drawn(Some([1.0, 9.0]), [3.0, 6.0], Some(4.0));
        assert_eq!(row_of(&whole, &scale, 11), " |-█│██--|");
    }
}
