//! The native part of the Python package `anysched`.
//!
//! | module | what it is |
//! |---|---|
//! | `plan` | experiments planned and run, by the same calls as the command |
//! | `frame` | columns, handed to Python by Arrow's C data interface |
//! | `policy` | policies written in Python |
//! | `host` | the simulator, ended by the first exception of such a policy |
//! | `timeline` | what each task did in a run |
//! | `import` | recordings and traces as frames |
//! | `toml` | experiments made in Python, as text |
//! | `errors` | errors as exceptions |
//!
//! What is pleasant in Python is written in Python, in `python/anysched`.

mod errors;
mod frame;
mod host;
mod import;
mod plan;
mod policy;
mod timeline;
mod toml;

use pyo3::prelude::*;

/// Of our own, for the C library's goes by what starts Python: Dask has workers give freed memory
/// back at once, and runs that ask for it again take 6 % longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A time with its unit, as experiments have it, in ns.
#[pyfunction]
fn parse_time(py: Python<'_>, text: &str) -> PyResult<u64> {
    let parsed = anysched_core::Span::parse(text).map(|span| span.0);
    parsed.map_err(|why| errors::usage(py, format!("\"{text}\" is no time: {why}")))
}

/// The JSON Schema of experiments.
#[pyfunction]
fn schema() -> String {
    anysched_lab::schema().to_string()
}

#[pymodule(name = "_core")]
mod core {
    #[pymodule_export]
    use super::frame::{Frame, restored};
    #[pymodule_export]
    use super::import::{ImportedTrace, import_trace, trace_formats};
    #[pymodule_export]
    use super::plan::{Plan, Results, write_report, write_results};
    #[pymodule_export]
    use super::policy::{Rule, Task, register};
    #[pymodule_export]
    use super::toml::{to_toml, to_toml_value};
    #[pymodule_export]
    use super::{parse_time, schema};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        anysched_lab::add_policies(&super::policy::POLICIES);
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
