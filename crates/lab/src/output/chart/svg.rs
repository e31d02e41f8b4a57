//! A chart as SVG. Coordinates are rounded to tenths, so that the bytes are the same everywhere.

use super::Drawing;
use super::scale::{Scale, ticks};
use crate::output::table;
use crate::results::Results;
use crate::results::stats::Estimate;
use anysched_trace::svg::{GRID, INK, PAPER, SERIES, SOFT, escaped};
use std::fmt::Write;

pub(super) const WIDTH: f64 = 760.0;
pub(super) const MARGIN: f64 = 16.0;
const GAP: f64 = 24.0;
/// Height of what lines are drawn in, and the space to its left for the numbers.
const HEIGHT: f64 = 220.0;
const NUMBERS: f64 = 52.0;
/// How far the outermost points are from the sides.
const INSET: f64 = 24.0;
/// Of a small and of a large letter, about; no font is at hand to ask.
pub(super) const LETTER: f64 = 6.2;
const LARGE_LETTER: f64 = 9.0;
pub(super) const LINE: f64 = 15.0;

/// Points in turn; one shape more or fewer than colours, so that no pair comes back soon.
const POINTS: [&str; 5] = [
    "M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0z",
    "M-3,-3h6v6h-6z",
    "M0,-4l4,7h-8z",
    "M0,-4.2l4.2,4.2l-4.2,4.2l-4.2,-4.2z",
    "M0,4l4,-7h-8z",
];

pub(super) fn draw(drawing: &Drawing<'_>) -> String {
    let results = drawing.results;
    let mut page = Page::new(results);
    page.legend(drawing);
    for section in &drawing.sections {
        page.section(&section.title, &section.caption);
        let side_by_side = drawing.chart.columns.len().min(2);
        let width = (WIDTH - 2.0 * MARGIN - GAP * (side_by_side - 1) as f64) / side_by_side as f64;
        let numbers: Vec<usize> = (0..drawing.chart.columns.len()).collect();
        for row in numbers.chunks(side_by_side) {
            let (top, mut bottom) = (page.y, page.y);
            for (place, &number) in row.iter().enumerate() {
                let lines = |policy| drawing.line(section, policy, &drawing.chart.columns[number]);
                let left = MARGIN + place as f64 * (width + GAP);
                page.y = top;
                let lines = (0..results.policies.len()).map(lines).collect();
                page.panel(&Panel { drawing, number, left, width, lines });
                bottom = f64::max(bottom, page.y);
            }
            page.y = bottom;
        }
    }
    let mut notes = drawing.notes();
    if results.seeds > 1 {
        let words = "Bars are the 95 % confidence interval of the mean over seeds.";
        notes.insert(0, words.to_string());
    }
    page.finish(results, &notes)
}

fn title(results: &Results) -> &str {
    results.title.as_deref().unwrap_or(&results.experiment)
}

/// The colours, and the shapes of points.
fn style(policies: usize) -> String {
    let colours = |theme: usize| {
        let mut text = format!(
            "text{{fill:{}}}.paper{{fill:{}}}.soft{{fill:{}}}.grid{{stroke:{}}}.axis{{stroke:{}}}",
            INK[theme], PAPER[theme], SOFT[theme], GRID[theme], SOFT[theme]
        );
        for (number, colours) in SERIES.iter().enumerate().take(policies) {
            let colour = colours[theme];
            let _ = write!(text, ".c{number}{{stroke:{colour};fill:{colour}}}");
        }
        text
    };
    let mut text = format!(
        "<style>\ntext{{font:12px system-ui,-apple-system,\"Segoe UI\",Helvetica,Arial,sans-serif}}\
         .title{{font-size:16px;font-weight:600}}.head{{font-weight:600}}\
         .number{{font-size:11px}}.end{{text-anchor:end}}.middle{{text-anchor:middle}}\
         .line,.grid,.axis{{fill:none}}.line{{stroke-width:1.6}}\n{}\n\
         @media (prefers-color-scheme:dark){{{}}}\n</style>\n<defs>",
        colours(0),
        colours(1)
    );
    for (number, shape) in POINTS.iter().enumerate().take(policies) {
        let _ = write!(text, "<path id=\"p{number}\" d=\"{shape}\" stroke=\"none\"/>");
    }
    text + "</defs>\n"
}

/// What has been drawn, and how far down.
pub(super) struct Page {
    body: String,
    pub(super) y: f64,
}

/// One metric in one section.
struct Panel<'a> {
    drawing: &'a Drawing<'a>,
    /// Which of the chart's columns.
    number: usize,
    left: f64,
    width: f64,
    /// By policy, then by value of the axis.
    lines: Vec<Vec<Option<Estimate>>>,
}

impl Page {
    /// A page that begins with what results are about.
    pub(super) fn new(results: &Results) -> Page {
        let mut page = Page { body: String::new(), y: MARGIN + 4.0 };
        page.paragraph("title", title(results), LARGE_LETTER, 20.0);
        page.paragraph("", &results.question, LETTER, LINE);
        page
    }

    /// Begins a section.
    pub(super) fn section(&mut self, title: &str, caption: &[String]) {
        self.y += 8.0;
        if !title.is_empty() {
            self.paragraph("head", title, LETTER * 1.1, LINE + 2.0);
        }
        for line in caption {
            self.paragraph("soft", line, LETTER, LINE);
        }
    }

    /// The whole picture, with notes below.
    pub(super) fn finish(mut self, results: &Results, notes: &[String]) -> String {
        self.y += 4.0;
        for note in notes {
            self.paragraph("soft", note, LETTER, LINE);
        }
        let height = coordinate(self.y + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n\
             <desc>{}</desc>\n\
             {}<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n{}</svg>\n",
            escaped(title(results)),
            escaped(&results.question),
            style(results.policies.len()),
            self.body
        )
    }

    /// Adds what is drawn.
    pub(super) fn draw(&mut self, picture: &str) {
        self.body.push_str(picture);
        self.body.push('\n');
    }

    pub(super) fn text(&mut self, class: &str, [x, y]: [f64; 2], words: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let (x, y) = (coordinate(x), coordinate(y));
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{class}>{}</text>", escaped(words));
    }

    /// `words` in lines over the whole width.
    fn paragraph(&mut self, class: &str, words: &str, letter: f64, height: f64) {
        for line in broken(words, ((WIDTH - 2.0 * MARGIN) / letter) as usize) {
            self.y += height;
            self.text(class, [MARGIN, self.y - 3.0], &line);
        }
    }

    fn legend(&mut self, drawing: &Drawing<'_>) {
        self.y += LINE + 6.0;
        let mut x = MARGIN;
        for policy in 0..drawing.results.policies.len() {
            let name = drawing.name(policy);
            let width = 28.0 + name.chars().count() as f64 * (LETTER + 0.6) + 14.0;
            if x > MARGIN && x + width > WIDTH - MARGIN {
                (x, self.y) = (MARGIN, self.y + LINE + 3.0);
            }
            let (from, middle, y) = (coordinate(x), coordinate(x + 11.0), coordinate(self.y - 4.0));
            let (colour, point) = look(policy);
            let _ = writeln!(
                self.body,
                "<g class=\"c{colour}\"><path class=\"line\" d=\"M{from},{y}h22\"/>\
                 <use href=\"#p{point}\" x=\"{middle}\" y=\"{y}\"/></g>"
            );
            self.text("", [x + 28.0, self.y], &name);
            x += width;
        }
    }

    fn panel(&mut self, panel: &Panel<'_>) {
        let drawing = panel.drawing;
        let (asked, format) =
            (&drawing.chart.columns[panel.number], &drawing.formats[panel.number]);
        self.y += LINE + 8.0;
        let name = table::name_in_full(asked, format);
        self.text("head", [panel.left, self.y - 3.0], &name);
        let (top, bottom) = (self.y + 8.0, self.y + 8.0 + HEIGHT);
        let across = panel.across();
        let Some(values) = panel.values() else {
            let why = match panel.count(|_| true) {
                0 => "nothing was measured",
                _ => "no value is above 0, as a logarithmic axis needs",
            };
            self.text("soft", [panel.left + NUMBERS, top + LINE], why);
            self.y = top + 2.0 * LINE;
            return;
        };
        let log = drawing.chart.log_y;
        let marks = ticks(values.map(|value| format.scaled(value)), log);
        let held = [marks[0].0, marks[marks.len() - 1].0];
        let up = Scale { values: held, ends: [bottom, top], log };
        let (left, right) =
            (coordinate(panel.left + NUMBERS), coordinate(panel.left + panel.width));
        for (value, words) in &marks {
            let y = up.at(*value);
            let line = coordinate(y);
            let _ = writeln!(self.body, "<path class=\"grid\" d=\"M{left},{line}H{right}\"/>");
            self.text("soft number end", [panel.left + NUMBERS - 6.0, y + 4.0], words);
        }
        let _ = writeln!(
            self.body,
            "<path class=\"axis\" d=\"M{left},{}V{}H{right}\"/>",
            coordinate(top),
            coordinate(bottom)
        );
        for (policy, line) in panel.lines.iter().enumerate() {
            self.line(drawing, policy, line, &across, &up, |value| format.scaled(value));
        }
        self.y = bottom;
        self.values(panel, &across);
        let left_out = panel.count(|mean| mean <= 0.0);
        if log && left_out > 0 {
            self.y += LINE;
            let words = format!("left out: {left_out} means that are not above 0");
            self.text("soft", [panel.left + NUMBERS, self.y], &words);
        }
    }

    /// A policy's line, broken where there is no data.
    fn line(
        &mut self,
        drawing: &Drawing<'_>,
        policy: usize,
        line: &[Option<Estimate>],
        across: &[f64],
        up: &Scale,
        scaled: impl Fn(f64) -> f64,
    ) {
        let (colour, point) = look(policy);
        let (mut path, mut bars, mut points) = (String::new(), String::new(), String::new());
        let mut order: Vec<usize> = (0..across.len()).collect();
        order.sort_by(|&a, &b| across[a].total_cmp(&across[b]));
        let mut pen = 'M';
        for place in order {
            let drawn = |estimate: &Estimate| !up.log || estimate.mean > 0.0;
            let Some(estimate) = line[place].filter(drawn) else {
                pen = 'M';
                continue;
            };
            let height = |value: f64| coordinate(up.at(scaled(value)));
            let (x, y) = (coordinate(across[place]), height(estimate.mean));
            let _ = write!(path, "{pen}{x},{y}");
            let _ = write!(points, "<use href=\"#p{point}\" x=\"{x}\" y=\"{y}\"/>");
            pen = 'L';
            if let Some(error) = estimate.ci95.filter(|error| *error > 0.0) {
                let ends = [estimate.mean - error, estimate.mean + error];
                let side = coordinate(across[place] - 3.0);
                let _ = write!(bars, "M{x},{}V{}", height(ends[0]), height(ends[1]));
                // One that goes on below the axis has no end there.
                for end in ends.into_iter().filter(|end| scaled(*end) >= up.values[0]) {
                    let _ = write!(bars, "M{side},{}h6", height(end));
                }
            }
        }
        if path.is_empty() {
            return;
        }
        let name = escaped(&drawing.name(policy));
        let _ = write!(self.body, "<g class=\"c{colour}\"><title>{name}</title>");
        let _ = write!(self.body, "<path class=\"line\" d=\"{path}\"/>");
        if !bars.is_empty() {
            let _ = write!(self.body, "<path class=\"line\" d=\"{bars}\"/>");
        }
        let _ = writeln!(self.body, "{points}</g>");
    }

    /// The values of the axis below a panel, and its name.
    fn values(&mut self, panel: &Panel<'_>, across: &[f64]) {
        let bottom = self.y;
        let mut taken = f64::NEG_INFINITY;
        let mut order: Vec<usize> = (0..across.len()).collect();
        order.sort_by(|&a, &b| across[a].total_cmp(&across[b]));
        let space = order.windows(2).map(|pair| across[pair[1]] - across[pair[0]]);
        let space = space.fold(panel.width - NUMBERS, f64::min);
        let mut lines = 1;
        for place in order {
            let x = across[place];
            let words = panel.drawing.values[place].to_string();
            let shown = match panel.drawing.is_of_names() {
                true => broken(&words, ((space / LETTER) as usize).max(4)),
                false => {
                    let half = words.chars().count() as f64 * LETTER / 2.0;
                    if x - half < taken + LETTER {
                        continue;
                    }
                    taken = x + half;
                    vec![words]
                }
            };
            lines = lines.max(shown.len());
            let (mark, y) = (coordinate(x), coordinate(bottom));
            let _ = writeln!(self.body, "<path class=\"axis\" d=\"M{mark},{y}v4\"/>");
            for (line, words) in (1..).zip(&shown) {
                let y = bottom + 2.0 + f64::from(line) * LINE;
                self.text("soft number middle", [x, y], words);
            }
        }
        self.y += 2.0 + (lines + 1) as f64 * LINE;
        let middle = panel.left + (NUMBERS + panel.width) / 2.0;
        self.text("middle", [middle, self.y], &panel.drawing.chart.axis);
        self.y += 6.0;
    }
}

impl Drawing<'_> {
    /// Whether the values of the axis are names, all of which are to be read.
    fn is_of_names(&self) -> bool {
        self.places.is_none() || self.chart.axis == crate::spec::scenario::SCENARIO
    }
}

impl Panel<'_> {
    /// Where the values of the axis are.
    fn across(&self) -> Vec<f64> {
        let drawing = self.drawing;
        let by_order = || (0..drawing.values.len()).map(|place| place as f64).collect();
        let places: Vec<f64> = drawing.places.clone().unwrap_or_else(by_order);
        let least = places.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Names are wider than numbers: those at the sides get half of their share.
        let share = (self.width - NUMBERS) / places.len().max(1) as f64 / 2.0;
        let inset = if drawing.is_of_names() { f64::max(share, INSET) } else { INSET };
        let ends = [self.left + NUMBERS + inset, self.left + self.width - inset];
        let scale = Scale { values: [least, largest], ends, log: drawing.chart.log_x };
        places.into_iter().map(|place| scale.at(place)).collect()
    }

    /// The least and the largest value that must fit, intervals included; `None`: there is none.
    fn values(&self) -> Option<[f64; 2]> {
        let log = self.drawing.chart.log_y;
        let all = self.lines.iter().flatten().flatten();
        let drawn = all.filter(|estimate| !log || estimate.mean > 0.0);
        let ends = drawn.flat_map(|Estimate { mean, ci95, .. }| {
            let error = ci95.unwrap_or(0.0);
            // An interval of what is never negative ends at 0.
            let low = if *mean >= 0.0 { f64::max(mean - error, 0.0) } else { mean - error };
            // So that one that all but reaches 0 does not stretch a logarithmic axis.
            [if log { f64::max(low, mean / 10.0) } else { low }, mean + error]
        });
        let (mut least, mut largest) = (f64::INFINITY, f64::NEG_INFINITY);
        ends.for_each(|end| (least, largest) = (least.min(end), largest.max(end)));
        let fit = if log { [least, largest] } else { [least.min(0.0), largest.max(0.0)] };
        (least <= largest).then_some(fit)
    }

    /// How many means there are of this kind.
    fn count(&self, is_meant: impl Fn(f64) -> bool) -> usize {
        let all = self.lines.iter().flatten().flatten();
        all.filter(|estimate| is_meant(estimate.mean)).count()
    }
}

/// Colour and shape of a policy's line.
pub(super) fn look(policy: usize) -> (usize, usize) {
    (policy % SERIES.len(), policy % POINTS.len())
}

/// `words` in lines of at most `width` letters; a longer word is a line of its own.
fn broken(words: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

pub(super) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance and contrast as WCAG 2 defines them.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |colour: &str| {
            let part = |at: usize| {
                let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                match value <= 0.04045 {
                    true => value / 12.92,
                    false => libm::pow((value + 0.055) / 1.055, 2.4),
                }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        f64::max(a / b, b / a)
    }

    #[test]
    fn all_colours_can_be_seen_on_light_and_dark() {
        assert!((contrast("#ffffff", "#000000") - 21.0).abs() < 1e-9);
        for theme in [0, 1] {
            for text in [INK[theme], SOFT[theme]] {
                assert!(contrast(text, PAPER[theme]) >= 4.5, "{text}");
            }
            for line in SERIES {
                assert!(contrast(line[theme], PAPER[theme]) >= 3.0, "{}", line[theme]);
            }
        }
    }

    #[test]
    fn texts_are_escaped_and_broken() {
        assert_eq!(escaped("a<b> & \u{7}c"), "a&lt;b&gt; &amp;  c");
        assert_eq!(broken("one two three", 7), ["one two", "three"]);
        assert_eq!([coordinate(3.0), coordinate(3.04), coordinate(3.06)], ["3", "3", "3.1"]);
    }

    #[test]
    fn forty_lines_look_different() {
        let mut looks: Vec<_> = (0..40).map(look).collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 40);
    }
}
