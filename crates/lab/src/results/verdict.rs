//! Whether claims hold.

use crate::results::Results;
use crate::results::stats::Estimate;
use crate::spec::claim::expr::{Comparison, Expr, Operator, Order};
use crate::spec::claim::{ClaimSpec, Reference, Size, Verdict};
use crate::spec::parts::{ALL, PARTS};
use crate::spec::sweep::AxisValue;

/// A claim and what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimResult {
    /// Its id.
    pub id: String,
    /// What is claimed.
    pub text: String,
    /// What the paper says, in its words or numbers.
    pub paper: Option<String>,
    /// The reading under which it is examined, if it needs one.
    pub reading: Option<String>,
    /// Why it cannot be measured, or what explains the verdict.
    pub because: Option<String>,
    /// What there is to say beyond a phrase.
    pub details: Option<String>,
    /// The verdict that the file expects.
    pub expected: Verdict,
    /// The verdict; `None` if runs that it needs were not made or had no such data.
    pub verdict: Option<Verdict>,
    /// What became of the size that the claim gives, if it gives one.
    pub size: Option<SizeResult>,
    /// Its comparisons, each in every row that it is about.
    pub checks: Vec<Check>,
    /// What the file asks to be measured with it, in every row that it is about.
    pub measures: Vec<Measure>,
}

/// A size that a claim gives, beside the measured one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeResult {
    /// The smallest value of the measure that is of this size, in the measure's unit.
    pub low: f64,
    /// The largest one, not below `low`.
    pub high: f64,
    /// The verdict that the file expects.
    pub expected: Verdict,
    /// [`Verdict::Holds`] if the interval of the measure lies within the size in every row,
    /// [`Verdict::DoesNotHold`] if it lies outside in one, otherwise [`Verdict::Undecided`];
    /// `None` without data.
    pub verdict: Option<Verdict>,
    /// How many seeds would about decide it, if the mean and the deviation are those found; `None`
    /// if it is decided, or the mean lies on an end of the size.
    pub seeds_needed: Option<u64>,
}

/// One comparison in one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The row, as far as the comparison does not say it itself.
    pub axes: Vec<(String, AxisValue)>,
    /// The comparison as it is written.
    pub expression: String,
    /// Mean of the left side over seeds; NaN without data, as the next two.
    pub left: f64,
    /// Mean of the right side over seeds.
    pub right: f64,
    /// Mean over seeds of left − right.
    pub difference: f64,
    /// Half the width of the difference's 95 % confidence interval; `None` for a single seed.
    pub margin: Option<f64>,
    /// Whether it [holds](Verdict::Holds), [does not](Verdict::DoesNotHold), or is
    /// [undecided](Verdict::Undecided); `None` without data.
    pub verdict: Option<Verdict>,
    /// How many seeds would about decide it, if the mean and the deviation of the difference are
    /// those found; `None` if it is decided, or the mean is 0.
    pub seeds_needed: Option<u64>,
    /// Whether both sides are times in ns.
    pub is_time: bool,
    /// What else there is to say.
    pub note: Option<&'static str>,
}

/// An expression in one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The row, as far as the expression does not say it itself.
    pub axes: Vec<(String, AxisValue)>,
    /// The expression as it is written.
    pub expression: String,
    /// Its value over seeds; `None` without data.
    pub value: Option<Estimate>,
    /// What is written behind the value: a unit, or nothing.
    pub unit: String,
}

impl ClaimResult {
    /// Whether the verdicts are those that the file expects.
    pub fn is_as_expected(&self) -> bool {
        let size = self.size.is_none_or(|size| size.verdict == Some(size.expected));
        self.verdict == Some(self.expected) && size
    }

    /// Whether a verdict is another than the file expects. What could not be decided is not.
    pub fn is_unexpected(&self) -> bool {
        self.verdict.is_some_and(|found| found != self.expected)
            || self.size.is_some_and(|size| size.verdict.is_some_and(|it| it != size.expected))
    }

    /// Whether something came out as the opposite of what the file expects, in a smaller version
    /// of the experiment. With fewer seeds what is expected may stay undecided, which contradicts
    /// nothing. Unless `all_rows` of the experiment are there, neither does a claim that holds and
    /// is not expected to: it may fail in those that are left out.
    pub fn is_contradicted(&self, all_rows: bool) -> bool {
        let is = |expected: Verdict, found: Option<Verdict>| {
            found.is_some_and(|found| found.contradicts(expected))
                && (all_rows || expected != Verdict::DoesNotHold)
        };
        is(self.expected, self.verdict)
            || self.size.is_some_and(|size| is(size.expected, size.verdict))
    }

    /// How many seeds would about decide it; `None` if it is decided, or that cannot be told.
    pub fn seeds_needed(&self) -> Option<u64> {
        let needed = self.checks.iter().filter_map(|check| check.seeds_needed).max();
        needed.filter(|_| self.verdict == Some(Verdict::Undecided))
    }
}

impl ClaimSpec {
    /// What `results` say about the claim.
    pub(crate) fn judge(&self, results: &Results) -> ClaimResult {
        let mut checks = Vec::new();
        let mut measures = Vec::new();
        for (group, axes) in self.groups(results) {
            for comparison in &self.expect {
                checks.push(check(comparison, results, group, &axes));
            }
            if let Some((expression, expr)) = &self.measure {
                let values = per_seed(expr, results, group);
                let value = values.and_then(|values| Estimate::of(&values));
                let (expression, unit) = (expression.clone(), self.unit.clone());
                measures.push(Measure { axes, expression, value, unit });
            }
        }
        let verdict = if !self.expected.is_measured() {
            Some(self.expected)
        } else if checks.iter().any(|check| check.verdict == Some(Verdict::DoesNotHold)) {
            Some(Verdict::DoesNotHold)
        } else if checks.is_empty() || checks.iter().any(|check| check.verdict.is_none()) {
            None
        } else if checks.iter().any(|check| check.verdict == Some(Verdict::Undecided)) {
            Some(Verdict::Undecided)
        } else if self.reading.is_some() {
            Some(Verdict::HoldsUnderReading)
        } else {
            Some(Verdict::Holds)
        };
        ClaimResult {
            id: self.id.clone(),
            text: self.text.clone(),
            paper: self.paper.clone(),
            reading: self.reading.clone(),
            because: self.because.clone(),
            details: self.details.clone(),
            expected: self.expected,
            verdict,
            size: self.size.map(|size| judge_size(size, &measures)),
            checks,
            measures,
        }
    }

    /// The groups of rows that the claim is about, with those of their axes that say which. Of
    /// groups that differ only in axes which every reference sets for itself, the first.
    fn groups(&self, results: &Results) -> Vec<(usize, Axes)> {
        let references = self.references();
        let is_set = |axis: &str| {
            let sets = |reference: &&Reference| reference.rows.iter().any(|(set, _)| set == axis);
            references.iter().all(sets)
        };
        let mut about: Vec<(usize, Axes)> = Vec::new();
        for (index, group) in results.groups.iter().enumerate() {
            let mut free = group.axes.clone();
            let is_all = |value: &AxisValue| *value == AxisValue::Text(ALL.to_string());
            let is_part = |axis: &str| PARTS.contains(&axis);
            free.retain(|(axis, value)| !(is_set(axis) || is_part(axis) && is_all(value)));
            let is_one = |axis: &str, values: &[String]| {
                // Where nothing is measured apart, rows are of all.
                let parted = !is_part(axis) || group.axes.iter().any(|(known, _)| known == axis);
                values.iter().any(|it| if parted { group.has(axis, it) } else { it == ALL })
            };
            let matches = self.rows.iter().all(|(axis, values)| is_one(axis, values));
            if matches && about.iter().all(|(_, axes)| *axes != free) {
                about.push((index, free));
            }
        }
        about
    }
}

fn judge_size(size: Size, measures: &[Measure]) -> SizeResult {
    let Size { low, high, expected } = size;
    let judge = |measure: &Measure| {
        let value = measure.value?;
        let margin = value.ci95.unwrap_or(0.0);
        let (least, most) = (value.mean - margin, value.mean + margin);
        Some(match () {
            () if most < low || least > high => (Verdict::DoesNotHold, None),
            () if least >= low && most <= high => (Verdict::Holds, None),
            () => {
                // The interval has to leave out the end that is nearer.
                let distances = [value.mean - low, value.mean - high].map(libm::fabs);
                let mean = distances[0].min(distances[1]);
                (Verdict::Undecided, Estimate { mean, ..value }.needed())
            }
        })
    };
    let all: Option<Vec<_>> = measures.iter().map(judge).collect();
    let all = all.unwrap_or_default();
    let found = [Verdict::DoesNotHold, Verdict::Undecided, Verdict::Holds];
    let verdict = found.into_iter().find(|found| all.iter().any(|(it, _)| it == found));
    let needed = all.iter().filter_map(|(_, needed)| *needed).max();
    let seeds_needed = needed.filter(|_| verdict == Some(Verdict::Undecided));
    SizeResult { low, high, expected, verdict, seeds_needed }
}

type Axes = Vec<(String, AxisValue)>;

fn check(
    comparison: &Comparison<Reference>,
    results: &Results,
    group: usize,
    axes: &Axes,
) -> Check {
    let Comparison { left, order, right, text } = comparison;
    let sides = (per_seed(left, results, group), per_seed(right, results, group));
    let mut check = Check {
        axes: axes.clone(),
        expression: text.clone(),
        left: f64::NAN,
        right: f64::NAN,
        difference: f64::NAN,
        margin: None,
        verdict: None,
        seeds_needed: None,
        is_time: left.is_time() || right.is_time(),
        note: Some("no data"),
    };
    let (Some(lefts), Some(rights)) = sides else { return check };
    let differences: Vec<f64> = lefts.iter().zip(&rights).map(|(l, r)| l - r).collect();
    let estimates = (Estimate::of(&lefts), Estimate::of(&rights), Estimate::of(&differences));
    if let (Some(left), Some(right), Some(difference)) = estimates {
        check.left = left.mean;
        check.right = right.mean;
        check.difference = difference.mean;
        check.margin = difference.ci95;
        let (verdict, note) = decide(*order, &difference);
        (check.verdict, check.note) = (Some(verdict), note);
        if verdict == Verdict::Undecided {
            check.seeds_needed = difference.needed();
        }
    }
    check
}

/// Whether `difference`, left − right, satisfies `order`, and what is to be said about it.
fn decide(order: Order, difference: &Estimate) -> (Verdict, Option<&'static str>) {
    let mean = difference.mean;
    let sign = if order.is_less() { mean < 0.0 } else { mean > 0.0 };
    let exact = sign || mean == 0.0 && order.allows_equal();
    let decided = |holds| if holds { Verdict::Holds } else { Verdict::DoesNotHold };
    match difference.ci95 {
        None => (decided(exact), Some("one seed")),
        Some(0.0) => (decided(exact), None),
        Some(margin) if libm::fabs(mean) <= margin => (Verdict::Undecided, None),
        Some(_) => (decided(sign), None),
    }
}

/// The value of `expr` for each seed; `None` if a run is missing or has no such data.
fn per_seed(expr: &Expr<Reference>, results: &Results, group: usize) -> Option<Vec<f64>> {
    let mut look_up = |reference: &Reference| {
        let group = results.group_beside(group, &reference.rows).ok_or(())?;
        Ok::<_, ()>((results.row(group, reference.policy).ok_or(())?, reference.column))
    };
    let found = expr.resolve(&mut look_up).ok()?;
    let value = |seed: usize| {
        let value = found.evaluate(&|&(row, column)| row.runs.get(seed)?.value(column));
        value.filter(|value| value.is_finite())
    };
    (0..results.seeds as usize).map(value).collect()
}

impl Expr<Reference> {
    /// Whether its value is a time in ns, as far as the names of its columns tell.
    fn is_time(&self) -> bool {
        match self {
            Expr::Number(_) => false,
            Expr::Reference(reference) => reference.column.is_time(),
            Expr::Minus(inner) => inner.is_time(),
            Expr::Binary(Operator::Divide, left, right) => left.is_time() && !right.is_time(),
            Expr::Binary(_, left, right) => left.is_time() || right.is_time(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{DoesNotHold, Holds, Undecided};

    fn decided(order: Order, differences: &[f64]) -> (Verdict, Option<&'static str>) {
        decide(order, &Estimate::of(differences).unwrap())
    }

    #[test]
    fn a_difference_has_to_exceed_its_interval() {
        // −1, −2, −3: mean −2, sd 1, s.e. 0.577; t for 2 degrees 4.303: ± 2.484.
        assert_eq!(decided(Order::Less, &[-1.0, -2.0, -3.0]), (Undecided, None));
        assert_eq!(decided(Order::Greater, &[-1.0, -2.0, -3.0]), (Undecided, None));
        // −2, −3, −4: mean −3.
        assert_eq!(decided(Order::Less, &[-2.0, -3.0, -4.0]), (Holds, None));
        assert_eq!(decided(Order::LessOrEqual, &[-2.0, -3.0, -4.0]), (Holds, None));
        assert_eq!(decided(Order::Greater, &[-2.0, -3.0, -4.0]), (DoesNotHold, None));
        assert_eq!(decided(Order::GreaterOrEqual, &[2.0, 3.0, 4.0]), (Holds, None));
    }

    #[test]
    fn certain_differences_are_compared_exactly() {
        assert_eq!(decided(Order::Less, &[-1e-9; 5]), (Holds, None));
        assert_eq!(decided(Order::Less, &[0.0; 5]), (DoesNotHold, None));
        assert_eq!(decided(Order::LessOrEqual, &[0.0; 5]), (Holds, None));
        assert_eq!(decided(Order::Greater, &[1.0]), (Holds, Some("one seed")));
        assert_eq!(decided(Order::GreaterOrEqual, &[0.0]), (Holds, Some("one seed")));
    }

    #[test]
    fn a_size_holds_where_the_whole_interval_lies_in_it() {
        let measured = |values: &[f64]| {
            let (axes, expression, unit) = (Vec::new(), String::new(), String::new());
            Measure { axes, expression, value: Estimate::of(values), unit }
        };
        let size = Size { low: 10.0, high: 16.0, expected: Holds };
        // ± 2.484 around the mean.
        let (within, across, outside) = ([12.0, 13.0, 14.0], [10.0, 11.0, 12.0], [5.0, 6.0, 7.0]);
        let judged = |all: &[&[f64]]| {
            judge_size(size, &all.iter().map(|values| measured(values)).collect::<Vec<_>>())
        };
        let of = |all: &[&[f64]]| judged(all).verdict;
        assert_eq!(of(&[&within]), Some(Holds));
        assert_eq!(of(&[&across]), Some(Undecided));
        assert_eq!(of(&[&outside]), Some(DoesNotHold));
        assert_eq!(of(&[&within, &across]), Some(Undecided));
        assert_eq!(of(&[&across, &outside]), Some(DoesNotHold));
        assert_eq!(of(&[&within, &[]]), None);
        assert_eq!(of(&[&[16.0]]), Some(Holds), "one seed");
        assert_eq!(of(&[]), None);
        // 11 is 1 above the lower end: with sd 1, t for 6 degrees 2.447 / √7 = 0.925.
        assert_eq!(judged(&[&across]).seeds_needed, Some(7));
        assert_eq!(judged(&[&within, &outside, &across]).seeds_needed, None);
    }
}
