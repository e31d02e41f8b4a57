//! A figure of a kernel beside the simulator's, and whether they differ by more than they may.

use std::fmt::Write;

/// Differences of times that mean nothing, in nanoseconds: a load is not performed to the
/// instruction.
const NOTHING: f64 = 1000.0;

/// By how much the simulator's figure may be off.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance {
    /// Of the kernel's figure.
    Percent(f64),
    /// The same, or a few.
    Count { percent: f64, few: f64 },
    /// Both figures are percentages.
    Points(f64),
}

impl Tolerance {
    /// That of a quantity measured in boots: 5 % for means, extremes and counts, 10 % for
    /// percentiles.
    pub fn of(quantity: &str) -> Tolerance {
        let percentile = ["_p50", "_p95", "_p99"].iter().any(|end| quantity.ends_with(end));
        Tolerance::Percent(if percentile { 10.0 } else { 5.0 })
    }
}

/// A figure of a kernel and of its simulation.
#[derive(Clone, Debug)]
pub struct Row {
    pub load: String,
    /// The column of a report, or words; of percentages these end with `, %`.
    pub quantity: String,
    /// What experiments call the policy with the kernel's rule.
    pub kernel: &'static str,
    pub measured: f64,
    pub simulated: f64,
    pub tolerance: Tolerance,
}

impl Row {
    /// By how much the simulator's figure is off: in percent of the kernel's, or in points.
    fn off(&self) -> f64 {
        let difference = self.simulated - self.measured;
        match self.tolerance {
            Tolerance::Points(_) => difference,
            _ if difference == 0.0 => 0.0,
            _ => difference / self.measured * 100.0,
        }
    }

    fn is_time(&self) -> bool {
        self.quantity.contains("_ns")
    }

    pub fn is_within(&self) -> bool {
        let difference = (self.simulated - self.measured).abs();
        let is_nothing = self.is_time() && difference <= NOTHING;
        let of_measured = |percent: f64| percent / 100.0 * self.measured.abs();
        let most = match self.tolerance {
            Tolerance::Percent(percent) => of_measured(percent),
            Tolerance::Count { percent, few } => of_measured(percent).max(few),
            Tolerance::Points(points) => points,
        };
        is_nothing || difference <= most
    }

    /// Three cells: what the kernel gave, what the simulator gave, by how much that is off.
    pub fn cells(&self) -> String {
        let mut off = format!("{:+.1}", self.off());
        if let Tolerance::Points(_) = self.tolerance {
            off.push_str(" points");
        }
        let off = if self.is_within() { off } else { format!("**{off}**") };
        let [measured, simulated] = [self.measured, self.simulated].map(|n| self.number(n));
        format!(" {measured} | {simulated} | {off} |")
    }

    /// Times are in microseconds.
    fn number(&self, number: f64) -> String {
        let (number, digits) = match self.tolerance {
            _ if self.is_time() => (number / 1000.0, if number < 100_000.0 { 1 } else { 0 }),
            Tolerance::Points(_) => (number, 1),
            _ => (number, 0),
        };
        format!("{number:.digits$}")
    }

    /// What is off and by how much, in a list of such.
    fn complaint(&self) -> String {
        let unit = if let Tolerance::Points(_) = self.tolerance { "points" } else { "%" };
        format!("{} {:+.0} {unit}", words_of(&self.quantity), self.off())
    }
}

/// A quantity as the page calls it.
fn words_of(quantity: &str) -> String {
    quantity.replacen("_ns", "", 1).replace('_', " ").trim_end_matches(", %").to_string()
}

/// The same, with its unit.
pub fn named(quantity: &str) -> String {
    let words = words_of(quantity);
    match quantity {
        time if time.contains("_ns") => format!("{words}, us"),
        share if share.ends_with(", %") => format!("{words}, %"),
        _ => words,
    }
}

/// Why rows are off, a line for each load and kernel. `causes` has a load, a kernel and the cause
/// on each line.
pub fn causes_of(failed: &[Row], causes: &str) -> String {
    let mut text = String::from("| load | kernel | off | cause |\n|---|---|---|---|\n");
    let mut groups: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for row in failed {
        let word = row.complaint();
        match groups.iter_mut().find(|(load, kernel, _)| *load == row.load && *kernel == row.kernel)
        {
            Some((.., words)) => words.push(word),
            None => groups.push((&row.load, row.kernel, vec![word])),
        }
    }
    for (load, kernel, words) in groups {
        let known = causes.lines().find_map(|line| {
            let mut words = line.split('\t');
            let is_it = words.next() == Some(load) && words.next() == Some(kernel);
            words.next().filter(|_| is_it)
        });
        let cause = known.unwrap_or("not found");
        let _ = writeln!(text, "| {load} | {kernel} | {} | {cause} |", words.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(quantity: &str, measured: f64, simulated: f64) -> Row {
        let (load, quantity) = ("a".to_string(), quantity.to_string());
        let tolerance = Tolerance::of(&quantity);
        Row { load, quantity, kernel: "6.1", measured, simulated, tolerance }
    }

    #[test]
    fn the_tolerance_depends_on_the_quantity() {
        let is_within = |quantity, simulated| row(quantity, 100_000.0, simulated).is_within();
        assert!(is_within("turnaround_ns_mean", 105_000.0));
        assert!(!is_within("turnaround_ns_mean", 105_001.0));
        assert!(is_within("turnaround_ns_p99", 110_000.0));
        assert!(!is_within("turnaround_ns_p99", 89_999.0));
        assert!(!is_within("context_switches", 106_000.0));
        // A microsecond is nothing, a switch is something.
        assert!(row("turnaround_ns_p50", 900.0, 1_900.0).is_within());
        assert!(!row("context_switches", 9.0, 10.0).is_within());
        assert_eq!(row("context_switches", 200.0, 150.0).cells(), " 200 | 150 | **-25.0** |");
        assert_eq!(row("x_ns_mean", 5_000.0, 5_100.0).cells(), " 5.0 | 5.1 | +2.0 |");
    }

    #[test]
    fn few_are_not_many() {
        let count = |measured, simulated| Row {
            tolerance: Tolerance::Count { percent: 15.0, few: 5.0 },
            ..row("migrations", measured, simulated)
        };
        assert!(count(1.0, 6.0).is_within() && count(100.0, 115.0).is_within());
        assert!(!count(1.0, 7.0).is_within() && !count(100.0, 116.0).is_within());
    }

    #[test]
    fn nothing_is_not_off_from_nothing() {
        assert_eq!(row("migrations", 0.0, 0.0).cells(), " 0 | 0 | +0.0 |");
    }

    #[test]
    fn shares_are_off_by_points() {
        let points = |simulated| Row {
            tolerance: Tolerance::Points(5.0),
            ..row("on a busy CPU, %", 1.0, simulated)
        };
        assert_eq!(points(6.0).cells(), " 1.0 | 6.0 | +5.0 points |");
        assert_eq!(points(6.25).cells(), " 1.0 | 6.2 | **+5.2 points** |");
        assert_eq!(points(7.0).complaint(), "on a busy CPU +6 points");
        assert_eq!(named("on a busy CPU, %"), "on a busy CPU, %");
    }

    #[test]
    fn rows_that_are_off_have_a_cause_or_say_that_there_is_none() {
        let rows = [row("b", 1.0, 2.0), row("c", 1.0, 0.5)];
        let text = causes_of(&rows, "a\t6.12\tx\na\t6.1\ty\n");
        assert_eq!(text.lines().nth(2), Some("| a | 6.1 | b +100 %, c -50 % | y |"));
        assert!(causes_of(&rows, "").contains("| not found |"));
    }
}
