//! What the files of results have in them, by name.

/// A column or a key of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputField {
    /// Its name. Capital letters stand for what differs.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
}

const fn field(name: &'static str, what: &'static str) -> OutputField {
    OutputField { name, what }
}

const EXPERIMENT: OutputField = field("experiment", "The experiment's name: that of its file.");
const HASH: OutputField =
    field("spec_hash", "BLAKE3 of the experiment's values and of the files that it names, in hex.");
const HOST: OutputField = field("host", "Where the runs were made.");
const POLICY: OutputField = field("policy", "The policy's label.");
const CLAIRVOYANT: OutputField =
    field("clairvoyant", "Whether it was told how long tasks run, which no kernel knows.");
const REHEARSED: OutputField =
    field("rehearsed", "Whether it goes by an earlier run of the same load.");
const AXIS: OutputField = field(
    "AXIS",
    "The row's value of each axis: `scenario`, `machine.cpus`; `vm`, `workload` and `task`, where \
     rows are parted by them, with `all` for those of all.",
);

/// A line of the CSV file, before the metrics.
pub(crate) const CSV: &[OutputField] = &[
    EXPERIMENT,
    HASH,
    HOST,
    POLICY,
    CLAIRVOYANT,
    REHEARSED,
    AXIS,
    field("seeds", "How many runs the row has."),
    field("METRIC_mean", "Mean over seeds; of a distribution, of the runs' means."),
    field("METRIC_ci95", "Half the width of the 95 % confidence interval of that."),
    field(
        "METRIC_sd",
        "Standard deviation: of a distribution the mean of the runs', else over seeds.",
    ),
    field("METRIC_min", "The smallest of all."),
    field("METRIC_p50", "Median; of a distribution, the mean of the runs', as the next two."),
    field("METRIC_p95", "95th percentile."),
    field("METRIC_p99", "99th percentile."),
    field("METRIC_max", "The largest of all."),
];

/// A line of the files of runs.
const RUNS: &[OutputField] = &[
    EXPERIMENT,
    HASH,
    HOST,
    POLICY,
    AXIS,
    field("seed_index", "Which of the row's seeds, from 0."),
    field("seed", "The seed of the run."),
    field(
        "COLUMN",
        "Each column of the metrics, `waiting_time_ns_p99` or `makespan_ns`; empty without data.",
    ),
];

/// The JSON file, and what is in its lists.
const JSON: &[OutputField] = &[
    EXPERIMENT,
    field("title", "The experiment's title, if it has one."),
    field("question", "What it is to find out."),
    HASH,
    HOST,
    field("seed", "The experiment's own seed."),
    field("complete", "Whether no row is missing."),
    field("rows", "A list: what follows, for each policy and combination of axis values."),
    field("rows.policy", "The policy's label."),
    field("rows.clairvoyant", "As in CSV."),
    field("rows.rehearsed", "As in CSV."),
    field("rows.axes", "The values of the axes by name."),
    field("rows.seeds", "How many runs the row has."),
    field(
        "rows.metrics",
        "By metric: `mean`, `ci95`, `sd`, `min`, `p50`, `p95`, `p99`, `max`, as in CSV.",
    ),
    field("claims", "A list: what follows, for each claim."),
    field("claims.id", "Its id."),
    field("claims.text", "What is claimed."),
    field("claims.paper", "What the paper says; `null`: nothing."),
    field("claims.reading", "The reading under which it is judged; `null`: as it stands."),
    field("claims.because", "Why, in a phrase; `null`: not said."),
    field("claims.details", "What there is to say beyond a phrase; `null`: nothing."),
    field("claims.expected", "The verdict that the file expects."),
    field("claims.verdict", "The verdict; `null`: what it needs was not measured."),
    field("claims.as_expected", "Whether both are the same, of the size too."),
    field("claims.seeds_needed", "How many seeds would about decide it; `null`: it is decided."),
    field("claims.size", "`low`, `high`, `expected`, `verdict`, `seeds_needed` of its size."),
    field(
        "claims.checks",
        "Each comparison in each row: `axes`, `expression`, `left`, `right`, `difference`, `ci95`, \
         `verdict`, `seeds_needed`, `note`.",
    ),
    field(
        "claims.measures",
        "What is measured with it, in each row: `axes`, `expression`, `mean`, `ci95`, `unit`.",
    ),
];

/// The outputs of `anysched run`, with what they have.
pub static OUTPUTS: &[(&str, &[OutputField])] =
    &[("CSV, a line per row", CSV), ("CSV and Parquet, a line per run", RUNS), ("JSON", JSON)];
