//! Errors as the exceptions of the package.

use crate::policy::Failure;
use anysched_lab::{Error, RunError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// An exception of `anysched.errors`; if the package cannot make it, why.
fn raise<'py>(py: Python<'py>, class: &str, args: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made = py.import("anysched.errors").and_then(|errors| errors.getattr(class)?.call1(args));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// What is wrong with an experiment.
pub fn experiment(py: Python<'_>, error: &Error) -> PyErr {
    let (line, column) = error.location().unzip();
    let args = (error.to_snippet(false), error.to_plain(), line, column, error.remedy());
    raise(py, "ExperimentError", args)
}

/// What is wrong with how something is called.
pub fn usage(py: Python<'_>, why: String) -> PyErr {
    raise(py, "UsageError", (why,))
}

/// Why a file cannot be read or written.
pub fn import(py: Python<'_>, why: String) -> PyErr {
    raise(py, "TraceError", (why,))
}

/// Why a run could not be finished; a policy in Python has failed if `failure` says so.
pub fn run(py: Python<'_>, error: &RunError, failure: Option<Failure>) -> PyErr {
    let RunError { policy, group, seed, why } = error;
    let class = if failure.is_some() { "PolicyError" } else { "RunError" };
    let raised = raise(py, class, (error.to_string(), policy, group, seed, why));
    if let Some(Failure::Raised(cause)) = failure {
        raised.set_cause(py, Some(cause));
    }
    raised
}

/// Something that should not happen.
pub fn panicked(panic: Box<dyn std::any::Any + Send>) -> PyErr {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text.as_str(),
        _ => "no message",
    };
    PyRuntimeError::new_err(format!("anysched has panicked, which is a fault of its own: {text}"))
}
