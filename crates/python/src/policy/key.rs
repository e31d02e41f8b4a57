//! What a class in Python orders tasks by: numbers, and tuples of them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyTuple};
use std::cmp::Ordering;

/// A key; the least goes first. A tuple is compared from its first part on, as in Python.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Vec<Part>);

#[derive(Clone, Copy, Debug)]
enum Part {
    Whole(i128),
    /// Not a NaN.
    Real(f64),
}

impl Key {
    /// Reads what `key` returned.
    ///
    /// Errors: it is neither a number nor a tuple of numbers, or a NaN.
    pub fn read(value: &Bound<'_, PyAny>) -> PyResult<Key> {
        let parts = match value.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().map(|part| Part::read(&part)).collect::<PyResult<_>>()?,
            Err(_) => vec![Part::read(value)?],
        };
        Ok(Key(parts))
    }

    /// By how much this is more than `other`, at least 1; of keys that are not one whole number
    /// each it is not known by how much.
    pub fn excess(&self, other: &Key) -> Option<u64> {
        if self <= other {
            return None;
        }
        match (&self.0[..], &other.0[..]) {
            ([Part::Whole(a)], [Part::Whole(b)]) => {
                Some(u64::try_from(a.saturating_sub(*b)).unwrap_or(u64::MAX))
            }
            _ => Some(1),
        }
    }
}

impl Part {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Part> {
        if value.is_instance_of::<PyInt>() {
            return value.extract().map(Part::Whole);
        }
        if let Ok(number) = value.cast::<PyFloat>() {
            let number = number.value();
            return match number.is_nan() {
                false => Ok(Part::Real(number)),
                true => Err(PyValueError::new_err("`key` returned NaN, which has no order")),
            };
        }
        let kind = value.get_type();
        let name = kind.name()?;
        let hint = match value.is_none() {
            true => "; has it no `return`?",
            false => "",
        };
        Err(PyTypeError::new_err(format!(
            "`key` returns a number or a tuple of numbers, not {name}{hint}"
        )))
    }
}

impl Ord for Part {
    fn cmp(&self, other: &Part) -> Ordering {
        match (*self, *other) {
            (Part::Whole(a), Part::Whole(b)) => a.cmp(&b),
            (Part::Real(a), Part::Real(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Part::Whole(a), Part::Real(b)) => compare(a, b),
            (Part::Real(a), Part::Whole(b)) => compare(b, a).reverse(),
        }
    }
}

/// Exactly: rounding would make an order that is none.
fn compare(whole: i128, real: f64) -> Ordering {
    // 2^127, of which a float has the exact value.
    const END: f64 = 170141183460469231731687303715884105728.0;
    if real >= END {
        return Ordering::Less;
    }
    if real < -END {
        return Ordering::Greater;
    }
    let floor = real.floor();
    whole.cmp(&(floor as i128)).then(if real > floor { Ordering::Less } else { Ordering::Equal })
}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Part) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Part) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Part {}
