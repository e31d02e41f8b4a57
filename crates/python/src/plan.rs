//! Experiments planned and run.

use crate::errors;
use crate::frame::Frame;
use crate::host::Watched;
use crate::policy::{Failure, take_failure};
use crate::timeline::Timeline;
use anysched_host::Watch;
use anysched_lab::output::report::{Origin, Told as Reported, report};
use anysched_lab::output::{self, Draft, Form, Inputs};
use anysched_lab::{
    Experiment, Journal, Plan as LabPlan, PolicyUsed, Progress, Results as LabResults, RunError,
    RunOptions, available_jobs,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::Write;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// All runs of an experiment, checked and ready to go.
#[pyclass(frozen, module = "anysched._core")]
#[derive(Debug)]
pub struct Plan(LabPlan);

/// What is different from what the experiment says.
#[derive(FromPyObject)]
pub struct Changes {
    /// A list in TOML.
    #[pyo3(item)]
    policies: Option<String>,
    #[pyo3(item)]
    settings: Vec<(String, String)>,
    #[pyo3(item)]
    sweep: Vec<(String, Vec<String>)>,
    #[pyo3(item)]
    by: Vec<String>,
    #[pyo3(item)]
    seeds: Option<u32>,
    #[pyo3(item)]
    quick: bool,
}

impl Changes {
    fn of(&self, mut experiment: Experiment) -> Result<Experiment, anysched_lab::Error> {
        if self.quick {
            experiment = experiment.quick()?;
        }
        if let Some(list) = &self.policies {
            experiment = experiment.with_policy_list(list)?;
        }
        for (key, value) in &self.settings {
            experiment = experiment.with_setting(key, value)?;
        }
        for (key, values) in &self.sweep {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            experiment = experiment.with_axis(key, &values)?;
        }
        if !self.by.is_empty() {
            let parts: Vec<&str> = self.by.iter().map(String::as_str).collect();
            experiment = experiment.with_rows_by(&parts)?;
        }
        if let Some(seeds) = self.seeds {
            experiment = experiment.with_seeds(seeds);
        }
        Ok(experiment)
    }
}

#[pymethods]
impl Plan {
    /// Reads an experiment as if it stood in a file, changes it and checks everything.
    #[new]
    fn new(py: Python<'_>, text: &str, path: PathBuf, changes: Changes) -> PyResult<Plan> {
        take_failure();
        let planned = py.detach(|| {
            let experiment = changes.of(Experiment::parse(text, &path)?)?;
            experiment.plan()
        });
        match (planned, take_failure()) {
            (_, Some(Failure::Raised(error))) => Err(error),
            (Err(error), _) => Err(errors::experiment(py, &error)),
            (Ok(plan), _) => Ok(Plan(plan)),
        }
    }

    /// The experiment's name.
    #[getter]
    fn experiment(&self) -> &str {
        self.0.experiment()
    }

    /// What it is to find out.
    #[getter]
    fn question(&self) -> &str {
        self.0.question()
    }

    /// How many runs there are.
    #[getter]
    fn runs(&self) -> usize {
        self.0.runs()
    }

    /// How many seeds each row has.
    #[getter]
    fn seeds(&self) -> u32 {
        self.0.seeds()
    }

    /// What the seeds of all runs derive from.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.experiment_seed()
    }

    /// The hash of the experiment and of the files that it names.
    #[getter]
    fn spec_hash(&self) -> &str {
        self.0.spec_hash()
    }

    /// The files that it was read from.
    #[getter]
    fn inputs(&self) -> Vec<PathBuf> {
        self.0.inputs().to_vec()
    }

    /// What the loads leave out.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings().to_vec()
    }

    /// The labels of the policies.
    #[getter]
    fn policies(&self) -> Vec<String> {
        self.0.policies().iter().map(|policy| policy.label.clone()).collect()
    }

    /// The axis values of each group, in words.
    #[getter]
    fn groups(&self) -> Vec<String> {
        self.0.groups().map(|group| group.title()).collect()
    }

    /// Makes all runs.
    #[pyo3(signature = (jobs=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        jobs: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Results> {
        self.run_with(py, jobs, progress, None)
    }

    /// Makes some of the runs, by their numbers, one after another.
    fn part<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        stop: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let host = Watched::default();
        let made = attended(py, None, |cancel, _| {
            let options =
                RunOptions { host: &host, jobs: 1, cancel, journal: None, progress: &|_| {} };
            self.0.part(&options, start..stop)
        })?;
        let made = made.map_err(|error| errors::run(py, &error, host.failure()))?;
        Ok(PyBytes::new(py, &made))
    }

    /// Puts parts together. Runs that none of them has are made.
    fn collect(&self, py: Python<'_>, parts: Vec<Vec<u8>>) -> PyResult<Results> {
        let parts = parts.iter().map(Vec::as_slice);
        let journal = Journal::of_parts(&self.0, parts);
        let journal = journal.map_err(|error| errors::usage(py, error.to_string()))?;
        self.run_with(py, None, None, Some(&journal))
    }

    /// What each task did in one run.
    fn timeline(&self, py: Python<'_>, group: usize, policy: usize, seed: u32) -> PyResult<Frame> {
        let groups = self.0.groups().len();
        for (what, number, all) in [
            ("group", group, groups),
            ("policy", policy, self.0.policies().len()),
            ("seed", seed as usize, self.0.seeds() as usize),
        ] {
            if number >= all {
                let why = format!("{what} = {number}: they go from 0 to {}", all.saturating_sub(1));
                return Err(errors::usage(py, why));
            }
        }
        let host = Watched::default();
        let ran = attended(py, None, |cancel, _| {
            let mut timeline = Timeline::default();
            let mut beat = |_| match cancel.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let watch =
                Watch { trace: Some(&mut timeline), beat: Some(&mut beat), ..Watch::default() };
            self.0.run_one(&host, group, policy, seed, watch).map(|_| timeline)
        })?;
        ran.map_err(|error: RunError| errors::run(py, &error, host.failure()))?.frame()
    }
}

impl Plan {
    fn run_with(
        &self,
        py: Python<'_>,
        jobs: Option<usize>,
        progress: Option<Py<PyAny>>,
        journal: Option<&Journal>,
    ) -> PyResult<Results> {
        let jobs = jobs.unwrap_or_else(available_jobs).max(1);
        let host = Watched::default();
        let ran = attended(py, progress, |cancel, told| {
            let progress = |progress: &Progress<'_>| told.tell(progress.done, progress.total);
            let options = RunOptions { host: &host, jobs, cancel, journal, progress: &progress };
            self.0.run(&options)
        })?;
        ran.map(Results).map_err(|error| errors::run(py, &error, host.failure()))
    }
}

/// What the runs have shown.
#[pyclass(frozen, module = "anysched._core")]
#[derive(Debug)]
pub struct Results(LabResults);

#[pymethods]
impl Results {
    /// As `anysched run --format json` prints them.
    fn json(&self) -> String {
        output::json(&self.0)
    }

    /// As `anysched run` prints them.
    fn table(&self) -> String {
        output::table(&self.0)
    }

    /// As `anysched run --format csv` prints them.
    fn csv(&self) -> String {
        output::csv(&self.0)
    }

    /// As `anysched run --out` writes them.
    fn parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = output::parquet(&self.0);
        bytes
            .map(|bytes| PyBytes::new(py, &bytes))
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// A line for each run.
    fn frame(&self) -> PyResult<Frame> {
        Frame::of_runs(output::runs(&self.0))
    }

    /// Of each policy its label, its name, its settings, and whether it is told bursts.
    #[expect(clippy::type_complexity, reason = "a tuple in Python")]
    fn policies(&self) -> Vec<(String, String, Vec<(String, String)>, bool)> {
        let told = |policy: &PolicyUsed| {
            let PolicyUsed { label, name, settings, nature } = policy.clone();
            (label, name, settings, nature.clairvoyant)
        };
        self.0.policies.iter().map(told).collect()
    }
}

/// Writes forms of results into a folder under the experiment's name, all or none of them.
#[pyfunction]
pub fn write_results(
    py: Python<'_>,
    folder: PathBuf,
    experiment: &str,
    question: &str,
    inputs: Vec<PathBuf>,
    forms: Vec<(String, Vec<u8>)>,
) -> PyResult<Vec<PathBuf>> {
    let inputs = Inputs::of(inputs);
    let written = || -> std::io::Result<Vec<PathBuf>> {
        std::fs::create_dir_all(&folder)?;
        output::require_folder(experiment, question, &inputs, &folder, &Form::built())?;
        let drafts = forms.iter().map(|(extension, bytes)| {
            let path = folder.join(format!("{experiment}.{extension}"));
            Draft::write(&path, &inputs, |out| out.write_all(bytes))
        });
        let drafts = drafts.collect::<std::io::Result<Vec<_>>>()?;
        drafts.into_iter().map(Draft::publish).collect()
    };
    written().map_err(|error| errors::usage(py, error.to_string()))
}

/// Writes the page that `anysched run --report` writes. The runs are made again, with each load
/// measured apart. `said` is what makes them, and what of a command changes the experiment.
#[pyfunction]
pub fn write_report(
    py: Python<'_>,
    path: PathBuf,
    text: &str,
    source: PathBuf,
    changes: Changes,
    said: (String, String),
    events: u64,
) -> PyResult<()> {
    let Plan(plan) = Plan::new(py, text, source.clone(), changes)?;
    let plan = Plan(plan.with_loads_apart().0);
    let Results(results) = plan.run_with(py, None, None, None)?;
    let (command, changes) = said;
    let origin =
        Origin { file: source.display().to_string(), text: text.to_string(), command, changes };
    let host = Watched::default();
    let told =
        attended(py, None, |_, _| Reported::of_run(&results, &plan.0, &host, &origin, events))?;
    let page = report(&[told.map_err(|error| errors::usage(py, error.to_string()))?]);
    let draft = Draft::write(&path, &Inputs::of(plan.0.inputs()), |out| out.write_all(&page));
    let written = draft.and_then(Draft::publish);
    written.map(drop).map_err(|error| errors::usage(py, error.to_string()))
}

/// How far a run is, from the threads that make it to the one that tells.
#[derive(Default)]
struct Told(Mutex<Option<(usize, usize)>>);

impl Told {
    fn tell(&self, done: usize, total: usize) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((done, total));
    }

    fn take(&self) -> Option<(usize, usize)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether this is the thread that is told of signals.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let [main, this] = ["main_thread", "current_thread"].map(|name| threading.call_method0(name));
    Ok(main?.is(this?))
}

/// Does `work` without Python's lock, on another thread, and looks for Ctrl-C meanwhile: it sets
/// the flag that `work` gets. An exception of `progress` does so, too. On any but Python's main
/// thread, which alone is told of signals, and with nobody to tell, there is nothing to look for.
///
/// Errors: that of the signal or of `progress`, once the work has ended; a panic.
fn attended<R: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&AtomicBool, &Told) -> R + Send,
) -> PyResult<R> {
    let (cancel, told) = (AtomicBool::new(false), Told::default());
    if progress.is_none() && !is_main_thread(py)? {
        let work = AssertUnwindSafe(|| work(&cancel, &told));
        return py.detach(|| catch_unwind(work)).map_err(errors::panicked);
    }
    let look = |interrupted: &mut Option<PyErr>| {
        if interrupted.is_some() {
            return;
        }
        let looked = Python::attach(|py| {
            py.check_signals()?;
            match (&progress, told.take()) {
                (Some(progress), Some(far)) => progress.call1(py, far).map(drop),
                _ => Ok(()),
            }
        });
        if let Err(error) = looked {
            cancel.store(true, Ordering::Relaxed);
            *interrupted = Some(error);
        }
    };
    let mut interrupted = None;
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (say, said) = channel();
            let (cancel, told) = (&cancel, &told);
            let worker = scope.spawn(move || {
                let done = work(cancel, told);
                let _ = say.send(());
                done
            });
            while let Err(RecvTimeoutError::Timeout) = said.recv_timeout(LOOK) {
                look(&mut interrupted);
            }
            worker.join()
        })
    });
    if interrupted.is_none() {
        look(&mut interrupted);
    }
    match (interrupted, done) {
        (Some(error), _) => Err(error),
        (None, Ok(done)) => Ok(done),
        (None, Err(panic)) => Err(errors::panicked(panic)),
    }
}
