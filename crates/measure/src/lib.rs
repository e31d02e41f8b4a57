//! What a run is judged by: summaries of distributions, and the metrics of a run.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod benchmark;
mod metrics;

pub use benchmark::{Benchmark, TaskProgress, ThreadLatency};
pub use metrics::{EXACT_SAMPLES, Metrics, Summary, VmMetrics};
