//! Claims: what an experiment is expected to show, and whether it does.
//!
//! Both sides of a comparison are computed for each seed, and the comparison is decided on their
//! differences: it holds, or does not, if the 95 % confidence interval of the mean difference lies
//! on one side of 0, and is undecided if it contains 0. All policies of a row are given the same
//! tasks for the same seed, so what the tasks contribute cancels out. If the difference is the same
//! for every seed, or there is one seed, it is compared as it is.
//!
//! A comparison says which way something goes; how far is the claim's `size`, judged apart.

pub(crate) mod expr;
mod verdict;

pub use verdict::Verdict;

use crate::spec::columns::Column;
use crate::spec::error::{Fault, Faults};
use crate::spec::fields::{self, Fields, hint, read_all};
use crate::spec::keys;
use crate::spec::parts::{
    self, ALL, PARTS, TASK, VM, WORKLOAD, all_load_names, parts_of, vm_names,
};
use crate::spec::report::{Counted, find_column};
use crate::spec::scenario::{SCENARIO, Scenario};
use crate::spec::sweep::{AxisValue, Sweep};
use crate::spec::tree::Node;
use anysched_measure::Apart;
use expr::{Comparison, Expr, Name};
use std::ops::Range;

/// A `[[claim]]` whose references have been looked up.
#[derive(Clone, Debug)]
pub(crate) struct ClaimSpec {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) paper: Option<String>,
    pub(crate) reading: Option<String>,
    pub(crate) because: Option<String>,
    pub(crate) details: Option<String>,
    pub(crate) expected: Verdict,
    /// Which rows it is about: the values that axes may have.
    pub(crate) rows: Vec<(String, Vec<String>)>,
    pub(crate) expect: Vec<Comparison<Reference>>,
    pub(crate) measure: Option<(String, Expr<Reference>)>,
    /// What is written behind the measured value.
    pub(crate) unit: String,
    pub(crate) size: Option<Size>,
}

/// How large the paper says that the measured value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) low: f64,
    /// Not below `low`.
    pub(crate) high: f64,
    pub(crate) expected: Verdict,
}

/// A column of a policy in the claim's rows or, where it says so, in others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reference {
    pub(crate) policy: usize,
    pub(crate) rows: Vec<(String, String)>,
    pub(crate) column: Column,
}

/// What references may be to.
struct Names<'a> {
    sweep: &'a Sweep,
    counted: &'a Counted,
    /// The axes and the texts of their values.
    axes: Vec<(&'a str, Vec<String>)>,
}

/// What claims may refer to; `None`: that is not known yet, and no reference is looked up.
type Known<'a> = Option<&'a Names<'a>>;

impl ClaimSpec {
    /// The claim where the policy at position p has moved to `places[p]`; `None` if one that it
    /// is about is gone.
    pub(crate) fn moved(&self, places: &[Option<usize>]) -> Option<ClaimSpec> {
        let mut look_up = |reference: &Reference| {
            let policy = places.get(reference.policy).copied().flatten().ok_or(())?;
            Ok::<_, ()>(Reference { policy, ..reference.clone() })
        };
        let mut moved = self.clone();
        for comparison in &mut moved.expect {
            comparison.left = comparison.left.resolve(&mut look_up).ok()?;
            comparison.right = comparison.right.resolve(&mut look_up).ok()?;
        }
        if let Some((_, measure)) = &mut moved.measure {
            *measure = measure.resolve(&mut look_up).ok()?;
        }
        Some(moved)
    }

    pub(crate) fn read_all(
        nodes: &[Node],
        sweep: &Sweep,
        scenarios: &[Scenario],
        counted: &Counted,
    ) -> Result<Vec<ClaimSpec>, Fault> {
        let mut axes = Vec::new();
        let (vms, loads) = (vm_names(scenarios), scenarios);
        let scenarios: Option<Vec<String>> = scenarios.iter().map(|s| s.name.clone()).collect();
        axes.extend(scenarios.map(|names| (SCENARIO, names)));
        for axis in &sweep.axes {
            let text = |node| AxisValue::of(node).to_string();
            axes.push((axis.path.as_str(), axis.values.iter().map(text).collect()));
        }
        let with_all = |names: Vec<String>| [ALL.to_string()].into_iter().chain(names).collect();
        if !vms.is_empty() {
            axes.push((VM, with_all(vms)));
        }
        axes.push((WORKLOAD, with_all(all_load_names(loads))));
        let names = Names { sweep, counted, axes };
        let mut claims: Vec<ClaimSpec> = Vec::new();
        let mut faults = Faults::default();
        for node in nodes {
            let read = read_all(node, |node| ClaimSpec::read(node, Some(&names)));
            let Some(claim) = faults.take(read) else { continue };
            if claims.iter().any(|other| other.id == claim.id) {
                let message = format!("two claims have the id \"{}\"", claim.id);
                faults.add(Fault::at(&node.at, message).label("the second one"));
            }
            claims.push(claim);
        }
        faults.result().map(|()| claims)
    }

    /// Checks what can be checked of claims where what they refer to is wrong itself.
    ///
    /// Errors: all that is wrong with them but for references.
    pub(crate) fn check_all(nodes: &[Node]) -> Result<(), Fault> {
        let mut faults = Faults::default();
        for node in nodes {
            faults.take(read_all(node, |node| ClaimSpec::read(node, None)));
        }
        faults.result()
    }

    /// What is measured of some of the tasks for it.
    pub(crate) fn apart(&self) -> Apart {
        let of_all = |values: &[String]| values.iter().all(|value| value == ALL);
        let rows = self.rows.iter().filter(|(_, of)| !of_all(of)).map(|(axis, _)| axis);
        let named = self.references().into_iter().flat_map(|reference| &reference.rows);
        parts::apart(rows.chain(named.map(|(axis, _)| axis)).map(String::as_str))
    }

    /// All that its expressions refer to.
    pub(crate) fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        for comparison in &self.expect {
            comparison.left.references(&mut found);
            comparison.right.references(&mut found);
        }
        if let Some((_, expr)) = &self.measure {
            expr.references(&mut found);
        }
        found
    }

    fn read(node: &Node, names: Known<'_>) -> Result<ClaimSpec, Fault> {
        let fields = Fields::of(node, &keys::CLAIM)?;
        let mut faults = Faults::default();
        let id = fields.need("id", "\"000-E4-1\"").and_then(|node| fields::name(node, "id"));
        let text = fields.need("text", "\"A waits less than B\"");
        let text = text.and_then(|node| fields::text(node, "text"));
        let (id, text) = (faults.take(id), faults.take(text));
        let mut optional = |key| faults.take(fields.text(key)).flatten().map(str::to_string);
        let (reading, because) = (optional("reading"), optional("because"));
        let (paper, details, unit) = (optional("paper"), optional("details"), optional("unit"));
        let expected = faults.take(read_verdict(&fields, reading.is_some()));
        let expect = match (fields.get("expect"), expected) {
            (Some(node), _) => read_expect(node, names),
            (None, Some(expected)) if expected.is_measured() => fields
                .need("expect", "\"a.waiting_time_ns_mean < b.waiting_time_ns_mean\"")
                .map(|_| Vec::new()),
            (None, _) => Ok(Vec::new()),
        };
        let expect = faults.take(expect);
        if let (Some(expected), Some(id)) = (expected, id)
            && !expected.is_measured()
            && fields.get("because").is_none()
        {
            let message = format!("claim \"{id}\" does not say why it is {expected}");
            let help = "for example `because = \"the paper does not say on which hardware\"`";
            faults.add(Fault::at(&node.at, message).help(help));
        }
        let measure = fields.get("measure").map(|node| read_measure(node, names)).transpose();
        let measure = faults.take(measure).flatten().flatten();
        let size = faults.take(read_size(&fields, fields.get("measure").is_some()));
        let rows = fields.get("where").zip(names).map(|(node, names)| names.rows(node));
        let mut rows = faults.take(rows.transpose()).flatten().unwrap_or_default();
        // About all tasks of the whole machine unless it says otherwise.
        for part in PARTS {
            if rows.iter().all(|(axis, _)| axis != part) {
                rows.push((part.to_string(), vec![ALL.to_string()]));
            }
        }
        let read = (id, text, expected, expect, size);
        faults.result()?;
        let (Some(id), Some(text), Some(expected), Some(expect), Some(size)) = read else {
            return Err(Fault::at(&node.at, "not a claim"));
        };
        let (id, text, unit) = (id.to_string(), text.to_string(), unit.unwrap_or_default());
        Ok(ClaimSpec {
            id,
            text,
            paper,
            reading,
            because,
            details,
            expected,
            rows,
            expect,
            measure,
            unit,
            size,
        })
    }
}

fn read_verdict(fields: &Fields<'_>, has_reading: bool) -> Result<Verdict, Fault> {
    let default = if has_reading { Verdict::HoldsUnderReading } else { Verdict::Holds };
    let Some(node) = fields.get("verdict") else { return Ok(default) };
    match one_of(&Verdict::ALL, node, "verdict")? {
        Verdict::Holds if has_reading => {
            Err(Fault::at(&node.at, "a claim with a `reading` cannot simply hold").help(format!(
                "expect \"{}\", or leave `reading` out",
                Verdict::HoldsUnderReading.words()
            )))
        }
        Verdict::HoldsUnderReading if !has_reading => {
            Err(Fault::at(&node.at, "under which reading?")
                .help("say it: `reading = \"waiting time counts until the first run\"`"))
        }
        verdict => Ok(verdict),
    }
}

fn one_of(verdicts: &[Verdict], node: &Node, key: &str) -> Result<Verdict, Fault> {
    let text = fields::text(node, key)?;
    verdicts.iter().copied().find(|verdict| verdict.words() == text).ok_or_else(|| {
        let words: Vec<&str> = verdicts.iter().map(|verdict| verdict.words()).collect();
        Fault::at(&node.at, format!("\"{text}\" is no verdict that `{key}` can be"))
            .help(format!("there are: {}", words.join(" | ")))
    })
}

fn read_size(fields: &Fields<'_>, has_measure: bool) -> Result<Option<Size>, Fault> {
    const EXAMPLE: &str = "for example `size = [9.9, 15.7]`, in the unit of `measure`";
    let Some(node) = fields.get("size") else {
        return match fields.get("size_verdict") {
            Some(node) => Err(Fault::at(&node.at, "which size?").help(EXAMPLE)),
            None => Ok(None),
        };
    };
    if !has_measure {
        return Err(Fault::at(&node.at, "the size of what?")
            .help("say it: `measure = \"100 * (1 - a.makespan_ns / b.makespan_ns)\"`"));
    }
    let expected = match fields.get("size_verdict") {
        Some(node) => {
            let verdicts = [Verdict::Holds, Verdict::Undecided, Verdict::DoesNotHold];
            one_of(&verdicts, node, "size_verdict")?
        }
        None => Verdict::Holds,
    };
    let bounds: Option<Vec<f64>> = node
        .as_list()
        .and_then(|nodes| nodes.iter().map(|it| fields::real(it, "size").ok()).collect());
    match bounds.as_deref() {
        Some(&[low, high]) if low <= high => Ok(Some(Size { low, high, expected })),
        Some(&[low, high]) => {
            Err(Fault::at(&node.at, format!("there is nothing from {low} to {high}"))
                .help("the least value comes first"))
        }
        _ => Err(Fault::at(&node.at, "`size` is two numbers, the least and the largest value")
            .help(EXAMPLE)),
    }
}

/// What a claim expects.
fn read_expect(node: &Node, names: Known<'_>) -> Result<Vec<Comparison<Reference>>, Fault> {
    let text = fields::text(node, "expect")?;
    let inside = |fault: Fault| fault.shifted(|at| node.inside(at));
    let comparisons = expr::parse_expect(text).map_err(inside)?;
    let Some(names) = names else { return Ok(Vec::new()) };
    let mut look_up = |name: &Name| names.look_up(name);
    comparisons
        .into_iter()
        .map(|comparison| {
            Ok(Comparison {
                left: comparison.left.resolve(&mut look_up).map_err(inside)?,
                order: comparison.order,
                right: comparison.right.resolve(&mut look_up).map_err(inside)?,
                text: comparison.text,
            })
        })
        .collect()
}

/// What is measured beside a claim; nothing if its references are not looked up.
fn read_measure(node: &Node, names: Known<'_>) -> Result<Option<(String, Expr<Reference>)>, Fault> {
    let text = fields::text(node, "measure")?;
    let inside = |fault: Fault| fault.shifted(|at| node.inside(at));
    let expr = expr::parse_measure(text).map_err(inside)?;
    let Some(names) = names else { return Ok(None) };
    let expr = expr.resolve(&mut |name| names.look_up(name)).map_err(inside)?;
    Ok(Some((text.to_string(), expr)))
}

impl Names<'_> {
    /// The rows that a table of axis values selects; a list stands for any of its values.
    fn rows(&self, node: &Node) -> Result<Vec<(String, Vec<String>)>, Fault> {
        let mut rows = Vec::new();
        self.collect_rows("", node, &node.at, &mut rows)?;
        Ok(rows)
    }

    /// `workload.0.tasks = 500` without quotes is a table in a table.
    fn collect_rows(
        &self,
        path: &str,
        node: &Node,
        key_at: &Range<usize>,
        rows: &mut Vec<(String, Vec<String>)>,
    ) -> Result<(), Fault> {
        if let Some(table) = node.as_table() {
            for entry in &table.0 {
                let dot = if path.is_empty() { "" } else { "." };
                let inner = format!("{path}{dot}{}", entry.key);
                self.collect_rows(&inner, &entry.node, &entry.key_at, rows)?;
            }
            return Ok(());
        }
        if path.is_empty() {
            let message = format!("`where` is a table, not {}", node.shown());
            return Err(
                Fault::at(&node.at, message).help("for example `where = { \"machine.cpus\" = 4 }`")
            );
        }
        let known =
            |node: &Node| self.row(path, &AxisValue::of(node).to_string(), key_at, &node.at);
        // A value may be a list itself.
        let (axis, values) = match (known(node), node.as_list()) {
            (Err(_), Some(nodes)) if !nodes.is_empty() => {
                let several = nodes.iter().map(|node| Ok(known(node)?.1)).collect::<Result<_, _>>();
                (path.to_string(), several?)
            }
            (row, _) => row.map(|(axis, value)| (axis, vec![value]))?,
        };
        rows.push((axis, values));
        Ok(())
    }

    fn row(
        &self,
        axis: &str,
        value: &str,
        axis_at: &Range<usize>,
        value_at: &Range<usize>,
    ) -> Result<(String, String), Fault> {
        if axis == TASK {
            // Which tasks there are, the runs show.
            return Ok((axis.to_string(), value.to_string()));
        }
        let Some((_, values)) = self.axes.iter().find(|(name, _)| *name == axis) else {
            let fault = Fault::at(axis_at, format!("`{axis}` is not swept"));
            return Err(match self.axes.is_empty() {
                true => fault.help("the experiment has no axes besides `policy`"),
                false => fault.help(hint(axis, self.axes.iter().map(|(name, _)| *name))),
            });
        };
        if !values.iter().any(|known| known == value) {
            return Err(Fault::at(value_at, format!("`{axis}` never is {value}"))
                .help(format!("its values are {}", values.join(", "))));
        }
        Ok((axis.to_string(), value.to_string()))
    }

    /// Places of faults are bytes of the expression.
    fn look_up(&self, name: &Name) -> Result<Reference, Fault> {
        let labels = || self.sweep.labels();
        let policy = labels().position(|label| label == name.label).ok_or_else(|| {
            Fault::at(&name.label_at, format!("no policy is labelled `{}` here", name.label))
                .label("unknown label")
                .help(hint(&name.label, labels()))
        })?;
        let rows = name.axes.iter().map(|(axis, value, at)| self.row(axis, value, at, at));
        let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
        let (parts, column) = parts_of(&name.column);
        for (axis, value) in parts {
            rows.push(self.row(axis, value, &name.column_at, &name.column_at)?);
        }
        let column = find_column(column, &name.column_at, self.counted)?;
        Ok(Reference { policy, rows, column })
    }
}
