//! Whether claims hold.

use crate::results::Results;
use crate::results::stats::Estimate;
use crate::spec::claim::expr::{Comparison, Expr, Operator, Order};
use crate::spec::claim::{ClaimSpec, Reference, Verdict};
use crate::spec::scenario::{ALL, VM};
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
    /// The verdict that the file expects.
    pub expected: Verdict,
    /// The verdict; `None` if runs that it needs were not made or had no such data.
    pub verdict: Option<Verdict>,
    /// Its comparisons, each in every row that it is about.
    pub checks: Vec<Check>,
    /// What the file asks to be measured with it, in every row that it is about.
    pub measures: Vec<Measure>,
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
    /// Two standard errors of the difference; `None` for a single seed.
    pub margin: Option<f64>,
    /// Whether it holds; `None` without data.
    pub holds: Option<bool>,
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
    /// Whether the verdict is the one that the file expects.
    pub fn is_as_expected(&self) -> bool {
        self.verdict == Some(self.expected)
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
        } else if checks.iter().any(|check| check.holds == Some(false)) {
            Some(Verdict::DoesNotHold)
        } else if checks.is_empty() || checks.iter().any(|check| check.holds.is_none()) {
            None
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
            expected: self.expected,
            verdict,
            checks,
            measures,
        }
    }

    /// The groups of rows that the claim is about, with those of their axes that say which. Of
    /// groups that differ only in axes which every reference sets for itself, the first.
    fn groups(&self, results: &Results) -> Vec<(usize, Axes)> {
        let mut references = Vec::new();
        for comparison in &self.expect {
            comparison.left.references(&mut references);
            comparison.right.references(&mut references);
        }
        if let Some((_, expr)) = &self.measure {
            expr.references(&mut references);
        }
        let is_set = |axis: &str| {
            let sets = |reference: &&Reference| reference.rows.iter().any(|(set, _)| set == axis);
            references.iter().all(sets)
        };
        let mut about: Vec<(usize, Axes)> = Vec::new();
        for (index, group) in results.groups.iter().enumerate() {
            let mut free = group.axes.clone();
            let is_all = |value: &AxisValue| *value == AxisValue::Text(ALL.to_string());
            free.retain(|(axis, value)| !(is_set(axis) || axis == VM && is_all(value)));
            let matches = self.rows.iter().all(|(axis, value)| group.has(axis, value));
            if matches && about.iter().all(|(_, axes)| *axes != free) {
                about.push((index, free));
            }
        }
        about
    }
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
        holds: None,
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
        check.margin = difference.standard_error.map(|error| 2.0 * error);
        let (holds, note) = decide(*order, &difference);
        (check.holds, check.note) = (Some(holds), note);
    }
    check
}

/// Whether `difference`, left − right, satisfies `order`, and what is to be said about it.
fn decide(order: Order, difference: &Estimate) -> (bool, Option<&'static str>) {
    let mean = difference.mean;
    let sign = if order.is_less() { mean < 0.0 } else { mean > 0.0 };
    match difference.standard_error {
        None => (sign || mean == 0.0 && order.allows_equal(), Some("one seed")),
        Some(0.0) => (sign || mean == 0.0 && order.allows_equal(), None),
        Some(error) if libm::fabs(mean) <= 2.0 * error => (false, Some("difference within 2 s.e.")),
        Some(_) => (sign, None),
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

impl<R> Expr<R> {
    fn references<'a>(&'a self, found: &mut Vec<&'a R>) {
        match self {
            Expr::Number(_) => {}
            Expr::Reference(reference) => found.push(reference),
            Expr::Minus(inner) => inner.references(found),
            Expr::Binary(_, left, right) => {
                left.references(found);
                right.references(found);
            }
        }
    }
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

    fn decided(order: Order, differences: &[f64]) -> (bool, Option<&'static str>) {
        decide(order, &Estimate::of(differences).unwrap())
    }

    #[test]
    fn a_difference_has_to_exceed_two_standard_errors() {
        // −1, −2, −3: mean −2, sd 1, s.e. 0.577; 2 s.e. are 1.155.
        assert_eq!(decided(Order::Less, &[-1.0, -2.0, -3.0]), (true, None));
        assert_eq!(decided(Order::Greater, &[-1.0, -2.0, -3.0]), (false, None));
        // 1, −2, −3: mean −1.333, sd 2.082, s.e. 1.202; 2 s.e. are 2.404.
        let within = (false, Some("difference within 2 s.e."));
        assert_eq!(decided(Order::Less, &[1.0, -2.0, -3.0]), within);
        assert_eq!(decided(Order::LessOrEqual, &[1.0, -2.0, -3.0]), within);
        assert_eq!(decided(Order::GreaterOrEqual, &[1.0, 2.0, 3.0]), (true, None));
    }

    #[test]
    fn certain_differences_are_compared_exactly() {
        assert_eq!(decided(Order::Less, &[-1e-9; 5]), (true, None));
        assert_eq!(decided(Order::Less, &[0.0; 5]), (false, None));
        assert_eq!(decided(Order::LessOrEqual, &[0.0; 5]), (true, None));
        assert_eq!(decided(Order::Greater, &[1.0]), (true, Some("one seed")));
        assert_eq!(decided(Order::GreaterOrEqual, &[0.0]), (true, Some("one seed")));
    }
}
