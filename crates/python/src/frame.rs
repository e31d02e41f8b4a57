//! Columns that Python takes over without copying them, by Arrow's C data interface.

use anysched_lab::output::Values;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array, make_array,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use std::sync::Arc;

/// A table in memory, which Arrow's libraries take over as it is.
#[pyclass(frozen, module = "anysched._core")]
#[derive(Debug)]
pub struct Frame(RecordBatch);

/// Builds a frame column by column.
#[derive(Default)]
pub struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    pub fn add(mut self, name: &str, array: impl Array + 'static) -> Columns {
        let is_optional = array.null_count() > 0;
        self.fields.push(Field::new(name, array.data_type().clone(), is_optional));
        self.arrays.push(Arc::new(array));
        self
    }

    fn optional(mut self, name: &str, array: impl Array + 'static) -> Columns {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(Arc::new(array));
        self
    }

    pub fn frame(self) -> PyResult<Frame> {
        let schema = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.arrays).map(Frame).map_err(refused)
    }
}

fn refused(error: arrow_schema::ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

impl Frame {
    /// The runs of an experiment.
    pub fn of_runs(runs: Vec<(String, Values)>) -> PyResult<Frame> {
        let columns =
            runs.into_iter().fold(Columns::default(), |columns, (name, values)| match values {
                Values::Text(texts) => columns.add(&name, StringArray::from(texts)),
                Values::Whole(numbers) => columns.add(&name, Int64Array::from(numbers)),
                Values::Unsigned(numbers) => columns.add(&name, UInt64Array::from(numbers)),
                Values::Number(numbers) => columns.add(&name, Float64Array::from(numbers)),
                Values::Optional(numbers) => columns.optional(&name, Float64Array::from(numbers)),
            });
        columns.frame()
    }
}

#[pymethods]
impl Frame {
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The names of its columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Where the values of a column begin in memory.
    fn address(&self, column: &str) -> PyResult<usize> {
        let array = self.0.column_by_name(column);
        let array = array.ok_or_else(|| PyValueError::new_err(format!("no column {column}")))?;
        let data = array.to_data();
        Ok(data.buffers().last().map_or(0, |buffer| buffer.as_ptr() as usize))
    }

    /// For Arrow's libraries.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.0.schema()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// For Arrow's libraries.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may ask for other types; a producer need not comply.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyTuple>,))> {
        let restore = py.import("anysched._core")?.getattr("_frame")?;
        let schema = self.0.schema();
        let columns = schema.fields().iter().zip(self.0.columns()).map(|(field, array)| {
            let data = array.to_data();
            let nulls = data.nulls().map(|nulls| {
                let bits: Vec<u8> = nulls.iter().map(u8::from).collect();
                PyBytes::new(py, &bits)
            });
            let buffers = data.buffers().iter().map(|buffer| PyBytes::new(py, buffer.as_slice()));
            let buffers = PyTuple::new(py, buffers)?;
            (
                field.name(),
                kind(field.data_type())?,
                field.is_nullable(),
                data.len(),
                nulls,
                buffers,
            )
                .into_pyobject(py)
        });
        let columns = PyTuple::new(py, columns.collect::<PyResult<Vec<_>>>()?)?;
        Ok((restore, (columns,)))
    }
}

/// A column as it is pickled: name, type, whether it has gaps, length, gaps, buffers.
type Pickled = (String, String, bool, usize, Option<Vec<u8>>, Vec<Vec<u8>>);

/// The frame of pickled columns.
#[pyfunction]
#[pyo3(name = "_frame")]
pub fn restored(columns: Vec<Pickled>) -> PyResult<Frame> {
    let restored = columns.into_iter().map(|(name, kind, nullable, len, nulls, buffers)| {
        let nulls = nulls.map(|bits| bits.iter().map(|&bit| bit != 0).collect::<NullBuffer>());
        let typed = TYPES.iter().find(|(_, known)| *known == kind);
        let (data_type, _) = typed.ok_or_else(|| unknown(&kind))?;
        let mut data = ArrayData::builder(data_type.clone()).len(len).nulls(nulls);
        for buffer in buffers {
            data = data.add_buffer(Buffer::from_vec(buffer));
        }
        // Checked: a pickle may be damaged. Realigned: bytes are not where numbers are.
        let data = data.align_buffers(true).build().map_err(refused)?;
        Ok((Field::new(name, data_type.clone(), nullable), make_array(data)))
    });
    let (fields, arrays): (Vec<_>, _) = restored.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
    Columns { fields, arrays }.frame()
}

/// The types that columns have, by the names under which they are pickled.
const TYPES: [(DataType, &str); 4] = [
    (DataType::Utf8, "text"),
    (DataType::Int64, "whole"),
    (DataType::UInt64, "unsigned"),
    (DataType::Float64, "number"),
];

fn kind(data_type: &DataType) -> PyResult<&'static str> {
    let found = TYPES.iter().find(|(known, _)| known == data_type).map(|(_, name)| *name);
    found.ok_or_else(|| unknown(&data_type.to_string()))
}

fn unknown(kind: &str) -> PyErr {
    PyValueError::new_err(format!("a frame has no columns of type {kind}"))
}
