//! What a run is judged by: summaries of distributions, and the tables of metrics.
//!
//! A metric is a line of a table: in `metrics.rs` if every run has it, in `benchmark.rs` if only
//! those of some benchmarks do. The line names the field, the column and its unit, and says what it
//! is; the structure, the columns and the addition of two machines are generated from it. The only
//! other place is where the metric is recorded.
//!
//! What was not measured is absent, never 0: see [`Total`].

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod benchmark;
mod metric;
mod metrics;
mod summary;
mod table;
mod total;

pub use benchmark::{BENCHMARK_METRICS, Benchmark, TASK_METRICS, TaskProgress, ThreadLatency};
pub use metric::{Metric, TALLY_METRICS, metric_infos};
pub use metrics::{Apart, METRICS, Metrics, PART_TASKS, Part, PartMetrics, VmMetrics};
pub use summary::{EXACT_SAMPLES, Moments, Summary};
pub use table::{Kind, Measured, MetricInfo};
pub use total::{Amount, Total};
