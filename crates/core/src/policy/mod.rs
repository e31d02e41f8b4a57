//! The policies, one file each: the rule in a sentence, its source, its order key, where it
//! deviates from its source and why, its cost; then parameters, rule and unit tests.

use crate::registry::policies;

policies! {
    "fcfs" fcfs => Fcfs: RunQueue, "First come, first served, each task to completion";
    "rr" rr => RoundRobin: RunQueue, "Round robin with a fixed quantum";
}
