//! A metric over the values of an axis: a line per policy, as SVG or as a table.
//!
//! Drawn by code of its own. `plotters` (0.3.7, MIT) was the candidate: it writes colours as
//! attributes, so that one picture cannot suit light and dark pages, and places logarithmic axes
//! with the platform's `ln`, so that the same results would not be the same file everywhere.

mod bars;
mod scale;
mod svg;

pub use bars::{Bars, Shape};

use super::marks::{self, marked};
use super::numbers::Format;
use super::table;
use crate::plan::Plan;
use crate::results::stats::Estimate;
use crate::results::{Group, Results};
use crate::spec::error::{Error, Fault};
use crate::spec::experiment::Experiment;
use crate::spec::fields::hint;
use crate::spec::overrides::{Appended, quoted};
use crate::spec::parts::{ALL, VM, WORKLOAD, all_load_names, vm_names};
use crate::spec::report::{Asked, Counted};
use crate::spec::scenario::SCENARIO;
use crate::spec::sweep::{AxisValue, is_path};
use anysched_core::Span;
use anysched_measure::Apart;
use anysched_workload::nearest::nearest;
use std::fmt::Write;

/// What is drawn of an experiment's results; [`Experiment::chart`] makes it.
#[derive(Clone, Debug)]
pub struct Chart {
    axis: String,
    /// A panel each.
    columns: Vec<Asked>,
    log_x: bool,
    log_y: bool,
}

impl Experiment {
    /// A chart of `metrics`, names of columns such as `wakeup_latency_ns_p99`, over the values of
    /// `axis`: a path such as `machine.cpus`, `scenario` or `vm`. There is a panel for each metric
    /// and each combination of the other axes.
    ///
    /// Values that are numbers or times are drawn where they are, others by order; scenarios by
    /// the number or time that their names begin with, if all do.
    ///
    /// Errors: there is no such axis or metric; values of the axis have no logarithm.
    pub fn chart(
        &self,
        axis: &str,
        metrics: &[&str],
        [log_x, log_y]: [bool; 2],
    ) -> Result<Chart, Error> {
        let asked = self.append("x", &quoted(axis));
        self.check_axis(axis, log_x, &asked).map_err(|fault| asked.source.error(fault))?;
        let counted = Counted::by_policies(&self.sweep, &self.scenarios);
        let mut known = Vec::new();
        for name in metrics {
            let asked = self.append("y", &quoted(name));
            let column = Asked::named(name, &asked.node.at, &self.scenarios, &counted);
            known.push(column.map_err(|fault| asked.source.error(fault))?);
        }
        Ok(Chart { axis: axis.to_string(), columns: known, log_x, log_y })
    }

    fn check_axis(&self, axis: &str, log: bool, asked: &Appended) -> Result<(), Fault> {
        let axes = self.axes();
        let at = &asked.node.at;
        let Some((_, values)) = axes.iter().find(|(known, _)| known == axis) else {
            let help = match axes.is_empty() {
                true => "the experiment varies nothing but policies; give [sweep] an axis, for \
                         example `\"machine.cpus\" = [1, 2, 4]`"
                    .to_string(),
                false => hint(axis, axes.iter().map(|(known, _)| known.as_str())),
            };
            let names = axes.iter().map(|(known, _)| known.as_str());
            let help = match is_path(axis) && nearest(axis, names).is_none() {
                true => format!("{help}; or vary it: --sweep {axis}=VALUE,…"),
                false => help,
            };
            return Err(Fault::at(at, format!("`{axis}` is no axis of this experiment"))
                .label("not an axis")
                .help(help));
        };
        let Some(places) = places(axis, values).filter(|_| log) else {
            return match log {
                true => Err(Fault::at(at, format!("not all values of `{axis}` are numbers"))
                    .label("no logarithms")
                    .help("leave out --log-x")),
                false => Ok(()),
            };
        };
        match places.iter().position(|place| *place <= 0.0) {
            None => Ok(()),
            Some(low) => {
                let message = format!("`{axis}` = {} has no logarithm", values[low]);
                Err(Fault::at(at, message).label("this axis").help("leave out --log-x"))
            }
        }
    }

    /// The names and values of all axes that results will have.
    fn axes(&self) -> Vec<(String, Vec<AxisValue>)> {
        let mut axes = Vec::new();
        let names = self.scenarios.iter().map(|scenario| scenario.name.clone());
        if let Some(names) = names.collect::<Option<Vec<_>>>() {
            axes.push((SCENARIO.to_string(), names.into_iter().map(AxisValue::Text).collect()));
        }
        for axis in &self.sweep.axes {
            axes.push((axis.path.clone(), axis.values.iter().map(AxisValue::of).collect()));
        }
        let vms = vm_names(&self.scenarios);
        if !vms.is_empty() {
            let all = [ALL.to_string()].into_iter().chain(vms);
            axes.push((VM.to_string(), all.map(AxisValue::Text).collect()));
        }
        if self.apart().loads {
            let all = [ALL.to_string()].into_iter().chain(all_load_names(&self.scenarios));
            axes.push((WORKLOAD.to_string(), all.map(AxisValue::Text).collect()));
        }
        axes
    }
}

/// Where the values of an axis are, times in ns; `None`: by order.
fn places(axis: &str, values: &[AxisValue]) -> Option<Vec<f64>> {
    let first_word = |text: &str| text.split_whitespace().next().unwrap_or_default().to_string();
    let time = |value: &AxisValue| match value {
        AxisValue::Text(text) => {
            let text = if axis == SCENARIO { first_word(text) } else { text.clone() };
            Span::parse(&text).ok().filter(|span| *span != Span::MAX).map(|span| span.0 as f64)
        }
        _ => None,
    };
    let number = |value: &AxisValue| match value {
        AxisValue::Integer(number) => Some(*number as f64),
        AxisValue::Real(number) => Some(*number).filter(|number| number.is_finite()),
        AxisValue::Text(text) if axis == SCENARIO => {
            let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
            text[..digits.unwrap_or(text.len())].parse().ok()
        }
        _ => None,
    };
    let all = |place: &dyn Fn(&AxisValue) -> Option<f64>| -> Option<Vec<f64>> {
        values.iter().map(place).collect()
    };
    all(&time).or_else(|| all(&number))
}

/// What all panels have in common.
struct Drawing<'a> {
    chart: &'a Chart,
    results: &'a Results,
    /// Those of the axis, in the order of the file.
    values: Vec<AxisValue>,
    places: Option<Vec<f64>>,
    /// One per column, so that panels can be compared.
    formats: Vec<Format>,
    sections: Vec<Section>,
}

/// One combination of the other axes.
struct Section {
    title: String,
    caption: Vec<String>,
    /// For each value of the axis, the position of its group.
    groups: Vec<Option<usize>>,
}

impl<'a> Drawing<'a> {
    fn new(chart: &'a Chart, results: &'a Results) -> Drawing<'a> {
        let mut values: Vec<AxisValue> = Vec::new();
        let mut found: Vec<(String, Vec<(usize, usize)>)> = Vec::new();
        for (number, group) in results.groups.iter().enumerate() {
            let Some((_, value)) = group.axes.iter().find(|(axis, _)| *axis == chart.axis) else {
                continue;
            };
            if !results.rows_shown.include(&group.axes) {
                continue;
            }
            let place = values.iter().position(|known| known == value).unwrap_or(values.len());
            if place == values.len() {
                values.push(value.clone());
            }
            let mut others = group.clone();
            others.axes.retain(|(axis, _)| *axis != chart.axis);
            let title = others.title();
            match found.iter_mut().find(|(known, _)| *known == title) {
                Some((_, places)) => places.push((place, number)),
                None => found.push((title, vec![(place, number)])),
            }
        }
        let section = |(title, places): (String, Vec<(usize, usize)>)| {
            let of_section: Vec<&Group> =
                places.iter().map(|(_, number)| &results.groups[*number]).collect();
            let caption = caption(&of_section, &chart.axis, results.seeds);
            let mut groups = vec![None; values.len()];
            places.into_iter().for_each(|(place, number)| groups[place] = Some(number));
            Section { title, caption, groups }
        };
        let sections = found.into_iter().map(section).collect();
        let format = |asked: &Asked| table::format_of(results, asked.column);
        let formats = chart.columns.iter().map(format);
        let (formats, places) = (formats.collect(), places(&chart.axis, &values));
        Drawing { chart, results, values, places, formats, sections }
    }

    /// A policy's estimates over the values of the axis.
    fn line(&self, section: &Section, policy: usize, asked: &Asked) -> Vec<Option<Estimate>> {
        let estimate = |group: &Option<usize>| self.results.estimate((*group)?, policy, asked);
        section.groups.iter().map(estimate).collect()
    }

    /// The name of a policy, with a mark if it knows what no kernel does.
    fn name(&self, policy: usize) -> String {
        let policy = &self.results.policies[policy];
        marked(&policy.label, policy.nature)
    }

    fn notes(&self) -> Vec<String> {
        let told = marks::notes(self.results.policies.iter().map(|policy| policy.nature));
        let interrupted = (!self.results.complete).then(|| marks::interrupted(self.results));
        told.into_iter().map(String::from).chain(interrupted).collect()
    }
}

/// What the runs of a section have in common, then what is different for some policies. Where
/// only words differ, as the values of the axis, all of them stand there.
fn caption(groups: &[&Group], axis: &str, seeds: u32) -> Vec<String> {
    let all: Vec<Vec<String>> = groups.iter().map(|group| table::facts(group, seeds)).collect();
    let mut facts = Vec::new();
    let mut differs = all.iter().any(|other| other.len() != all[0].len());
    for (number, fact) in all[0].iter().enumerate() {
        let alike = match differs {
            true => all.iter().all(|other| other.contains(fact)).then(|| fact.clone()),
            false => merged(&all.iter().map(|other| other[number].as_str()).collect::<Vec<_>>()),
        };
        facts.extend(alike);
    }
    differs |= facts.len() < all[0].len();
    if differs {
        facts.push(format!("the rest by {axis}"));
    }
    let mut lines = vec![facts.join("; ")];
    let (mut shared, mut others) = (Vec::new(), false);
    for exception in groups.iter().flat_map(|group| &group.exceptions) {
        let everywhere = groups.iter().all(|group| group.exceptions.contains(exception));
        others |= !everywhere;
        if everywhere && !shared.contains(&exception) {
            shared.push(exception);
        }
    }
    lines.extend(shared.into_iter().map(|exception| format!("but {exception}")));
    if others {
        lines.push(format!("but some policies are different by {axis}"));
    }
    lines
}

/// `burners 1/2` for `burners 1` and `burners 2`; `None` if they differ in more than words.
fn merged(texts: &[&str]) -> Option<String> {
    const MOST: usize = 4;
    let words: Vec<Vec<&str>> = texts.iter().map(|text| text.split(' ').collect()).collect();
    if words.iter().any(|other| other.len() != words[0].len()) {
        return None;
    }
    let merge = |place: usize| {
        let stem = |word: &'_ str| word.trim_end_matches([',', ';', ':']).len();
        let ending = &words[0][place][stem(words[0][place])..];
        let mut different: Vec<&str> = Vec::new();
        for word in words.iter().map(|words| &words[place][..stem(words[place])]) {
            let is_plural = |one: &str, many: &str| many.strip_suffix('s') == Some(one);
            match different.iter().position(|known| *known == word || is_plural(word, known)) {
                Some(_) => {}
                None => {
                    different.retain(|known| !is_plural(known, word));
                    different.push(word);
                }
            }
        }
        let shown = match different.as_slice() {
            [first, .., last] if different.len() > MOST => format!("{first}…{last}"),
            _ => different.join("/"),
        };
        shown + ending
    };
    Some((0..words[0].len()).map(merge).collect::<Vec<_>>().join(" "))
}

impl Plan {
    /// The same runs, of which what a chart draws of some of the tasks is measured too.
    pub fn with_chart(mut self, chart: &Chart) -> Plan {
        self.apart = self.apart.and(chart.apart());
        self
    }
}

impl Chart {
    /// What has to be measured of some of the tasks for it.
    fn apart(&self) -> Apart {
        self.columns.iter().map(Asked::apart).fold(Apart::default(), Apart::and)
    }

    /// The chart as a picture that needs no other file, on light and dark pages. The same results
    /// give the same bytes on every machine.
    pub fn svg(&self, results: &Results) -> String {
        svg::draw(&Drawing::new(self, results))
    }

    /// The numbers of the chart as plain text: for each panel a table with a line for each value
    /// of the axis and a column for each policy.
    pub fn text(&self, results: &Results) -> String {
        let drawing = Drawing::new(self, results);
        let mut text = String::new();
        let _ = writeln!(text, "{}", results.title.as_deref().unwrap_or(&results.experiment));
        table::wrap(&mut text, "", &results.question);
        let names = table::names(&self.axis, drawing.values.iter().map(AxisValue::to_string));
        for section in &drawing.sections {
            text.push('\n');
            let title = Some(&section.title).filter(|title| !title.is_empty());
            for line in title.into_iter().chain(&section.caption) {
                table::wrap(&mut text, "", line);
            }
            for (shown, format) in self.columns.iter().zip(&drawing.formats) {
                let _ = writeln!(text, "\n{}", table::name_in_full(shown, format));
                let policies = 0..results.policies.len();
                let column = |policy| {
                    let line = drawing.line(section, policy, shown).into_iter();
                    table::estimates(line, format, |_| vec![drawing.name(policy)])
                };
                let all: Vec<_> = policies.map(column).collect();
                table::write_blocks(&mut text, std::slice::from_ref(&names), &all);
            }
        }
        let mut notes = drawing.notes();
        if results.seeds > 1 {
            notes
                .push("± is half the 95 % confidence interval of the mean over seeds.".to_string());
        }
        if !notes.is_empty() {
            let _ = writeln!(text, "\n{}", notes.join("\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Exception;

    fn texts(texts: &[&str]) -> Vec<AxisValue> {
        texts.iter().map(|text| AxisValue::Text(text.to_string())).collect()
    }

    #[test]
    fn values_are_where_their_numbers_are() {
        let numbers = [AxisValue::Integer(1), AxisValue::Real(2.5)];
        assert_eq!(places("machine.cpus", &numbers), Some(vec![1.0, 2.5]));
        let times = texts(&["500us", "1ms", "0"]);
        assert_eq!(places("machine.tick", &times), Some(vec![5e5, 1e6, 0.0]));
        let sizes = texts(&["2 cores", "4 cores"]);
        assert_eq!(places("machine.topology", &sizes), None, "only scenarios are read for numbers");
        assert_eq!(places(SCENARIO, &sizes), Some(vec![2.0, 4.0]));
        assert_eq!(places(SCENARIO, &texts(&["1VM", "2.5 VMs"])), Some(vec![1.0, 2.5]));
        assert_eq!(places(SCENARIO, &texts(&["10ms apart", "1s apart"])), Some(vec![1e7, 1e9]));
        assert_eq!(places(SCENARIO, &texts(&["5 compute", "none computes"])), None);
        assert_eq!(places("x", &[AxisValue::Integer(1), AxisValue::Flag(true)]), None);
        assert_eq!(places("x", &texts(&["none", "1ms"])), None);
    }

    #[test]
    fn captions_say_what_differs() {
        assert_eq!(merged(&["1 CPU, tick 1ms", "8 CPUs, tick 1ms"]).unwrap(), "1/8 CPUs, tick 1ms");
        assert_eq!(merged(&["load 0.5", "load 0.5"]).unwrap(), "load 0.5");
        let many = ["x 1, y", "x 2, y", "x 3, y", "x 4, y", "x 9, y"];
        assert_eq!(merged(&many).unwrap(), "x 1…9, y");
        assert_eq!(merged(&["a b", "a"]), None);
        let group = |machine: &str, exceptions: &[(&str, &str)]| Group {
            axes: Vec::new(),
            machine: machine.to_string(),
            loads: Vec::new(),
            costs: "none".to_string(),
            duration: None,
            exceptions: exceptions
                .iter()
                .map(|&(label, change)| Exception::Settings {
                    label: label.to_string(),
                    changes: vec![change.to_string()],
                })
                .collect(),
        };
        let (one, two) =
            (group("1 CPU", &[("a", "x"), ("b", "y")]), group("2 CPUs", &[("a", "x")]));
        let differing = "but some policies are different by scenario";
        assert_eq!(caption(&[&one, &two], "scenario", 1)[1..], ["but a: x", differing]);
        assert_eq!(caption(&[&two, &two], "scenario", 1)[1..], ["but a: x"]);
        let three = group("1 CPU, tick 1ms", &[]);
        let lines = caption(&[&one, &three], "scenario", 1);
        assert_eq!(lines[0], "costs: none; 1 seed; the rest by scenario");
    }
}
