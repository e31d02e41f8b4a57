//! Experiments made in Python, as the text that a file would have.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml::{Table, Value};

/// A dictionary as TOML; None in it stands for a key that is left out.
#[pyfunction]
pub fn to_toml(experiment: &Bound<'_, PyDict>) -> PyResult<String> {
    let table = table(experiment, "")?;
    toml::to_string(&table).map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// A value as it stands behind a key in TOML.
#[pyfunction]
pub fn to_toml_value(value: &Bound<'_, PyAny>) -> PyResult<String> {
    read(value, "value").map(|value| value.to_string())
}

fn table(dict: &Bound<'_, PyDict>, path: &str) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in dict.iter().filter(|(_, value)| !value.is_none()) {
        let name = key.extract::<String>().map_err(|_| {
            PyTypeError::new_err(format!("a key of an experiment is a text, not {key}"))
        })?;
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        table.insert(name, read(&value, &path)?);
    }
    Ok(table)
}

fn read(value: &Bound<'_, PyAny>, path: &str) -> PyResult<Value> {
    let items = |items: Vec<Bound<'_, PyAny>>| -> PyResult<Vec<Value>> {
        let items = items.iter().enumerate();
        items.map(|(number, item)| read(item, &format!("{path}.{number}"))).collect()
    };
    // Before numbers: a bool is an int in Python.
    if value.is_instance_of::<PyBool>() {
        Ok(Value::Boolean(value.extract()?))
    } else if value.is_instance_of::<PyInt>() {
        Ok(Value::Integer(value.extract()?))
    } else if value.is_instance_of::<PyFloat>() {
        Ok(Value::Float(value.extract()?))
    } else if value.is_instance_of::<PyString>() {
        Ok(Value::String(value.extract()?))
    } else if let Ok(dict) = value.cast::<PyDict>() {
        Ok(Value::Table(table(dict, path)?))
    } else if let Ok(list) = value.cast::<PyList>() {
        Ok(Value::Array(items(list.iter().collect())?))
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        Ok(Value::Array(items(tuple.iter().collect())?))
    } else {
        let kind = value.get_type();
        Err(PyTypeError::new_err(format!(
            "`{path}` is {}: an experiment has texts, numbers, True and False, lists and dicts",
            kind.name()?
        )))
    }
}
