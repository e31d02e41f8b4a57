//! `anysched workloads`: what an experiment can be given to run.

use crate::output::{self, Failure};
use std::fmt::Write;

pub fn workloads() -> Result<(), Failure> {
    let mut text = String::new();
    for kind in anysched_lab::workload_kinds() {
        let _ = writeln!(text, "{:12}  {}", kind.name, kind.summary);
        for line in wrap(&kind.keys(), 64) {
            let _ = writeln!(text, "{:14}{line}", "");
        }
    }
    text.push_str("\ndistributions, wherever a time is drawn (service, run, sleep, think, …):\n");
    for example in DISTRIBUTIONS {
        let _ = writeln!(text, "  {example}");
    }
    output::print(&text)
}

/// One of each that [`Dist::parse`](anysched_workload::dist::Dist::parse) knows.
const DISTRIBUTIONS: [&str; 8] = [
    "10ms",
    "uniform(1ms, 5ms)",
    "exp(10ms)",
    "lognormal(10ms, 1.0)",
    "pareto(1.5, 1ms, 10s)",
    "hyperexp(0.9: 1ms, 0.1: 50ms)",
    "hyperexp(10ms, cv2=4)",
    "empirical(file.csv)",
];

/// A list of words in lines of at most `width` characters, besides a comma at their ends.
fn wrap(words: &[&str], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.len() + 2 + word.len() <= width => {
                line.push_str(", ");
                line.push_str(word);
            }
            last => {
                if let Some(line) = last {
                    line.push(',');
                }
                lines.push((*word).to_owned());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_workload::dist::Dist;

    #[test]
    fn lists_are_broken_after_commas() {
        assert_eq!(wrap(&["ab", "cd", "ef"], 6), ["ab, cd,", "ef"]);
        assert!(wrap(&[], 6).is_empty());
    }

    #[test]
    fn every_example_is_a_distribution() {
        for example in &DISTRIBUTIONS[..DISTRIBUTIONS.len() - 1] {
            assert!(Dist::parse(example, ".".as_ref()).is_ok(), "{example}");
        }
    }
}
