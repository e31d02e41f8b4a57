//! The runs as a Parquet file, one line each.

use crate::results::{Results, Row, Run, measured};
use crate::spec::columns::{Column, columns};
use crate::spec::sweep::AxisValue;
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// The runs as the bytes of a Parquet file, one line per run, in the order of rows and seeds.
///
/// The columns are `experiment`, `spec_hash`, `host`, `policy` (label), one per axis,
/// `seed_index`, `seed`, all of [`columns`], and what benchmarks measured and policies counted, all
/// of which are null where there is no data. An axis is whole numbers, numbers or texts, whichever
/// holds all its values. The same results give the same bytes.
///
/// Errors: the writer's own; none are known.
pub fn parquet(results: &Results) -> Result<Vec<u8>> {
    let runs: Vec<(&Row, &Run)> =
        results.rows.iter().flat_map(|row| row.runs.iter().map(move |run| (row, run))).collect();
    let mut all = Vec::new();
    let text = |name: &str, value: &dyn Fn(&Row, &Run) -> String| {
        let values = runs.iter().map(|(row, run)| value(row, run)).collect();
        (name.to_string(), Values::Text(values))
    };
    all.push(text("experiment", &|_, _| results.experiment.clone()));
    all.push(text("spec_hash", &|_, _| results.spec_hash.clone()));
    all.push(text("host", &|_, _| results.host.to_string()));
    all.push(text("policy", &|row, _| results.policies[row.policy].label.clone()));
    let axes = results.groups.first().map_or(0, |group| group.axes.len());
    for axis in 0..axes {
        let name = results.groups[0].axes[axis].0.clone();
        let value = |&(row, _): &(&Row, &Run)| &results.groups[row.group].axes[axis].1;
        let is_free = all.iter().all(|(taken, _)| *taken != name);
        all.push((if is_free { name } else { format!("axis.{name}") }, {
            let all_values = results.groups.iter().map(|group| &group.axes[axis].1);
            Values::of_axis(all_values.collect(), runs.iter().map(value).collect())
        }));
    }
    let numbers = runs.iter().map(|(_, run)| i64::from(run.index)).collect();
    all.push(("seed_index".to_string(), Values::Whole(numbers)));
    // Parquet's unsigned integers are the same 64 bits.
    let seeds = runs.iter().map(|(_, run)| run.seed as i64).collect();
    all.push(("seed".to_string(), Values::Unsigned(seeds)));
    for column in columns_of(results) {
        let values = runs.iter().map(|(_, run)| run.value(column)).collect();
        all.push((column.to_string(), Values::Optional(values)));
    }
    write(&all)
}

/// The columns of every run, then those of the benchmarks and policies that there are.
fn columns_of(results: &Results) -> Vec<Column> {
    let others = measured(&results.rows).into_iter().filter(|metric| !metric.is_general());
    columns().iter().copied().chain(others.flat_map(Column::of)).collect()
}

/// What a column holds.
enum Values {
    Text(Vec<String>),
    Whole(Vec<i64>),
    Unsigned(Vec<i64>),
    Number(Vec<f64>),
    Optional(Vec<Option<f64>>),
}

impl Values {
    /// `values` in the narrowest type that holds `all`.
    fn of_axis(all: Vec<&AxisValue>, values: Vec<&AxisValue>) -> Values {
        let whole = |value: &&AxisValue| match value {
            AxisValue::Integer(number) => Some(*number),
            _ => None,
        };
        let number = |value: &&AxisValue| match value {
            AxisValue::Integer(number) => Some(*number as f64),
            AxisValue::Real(number) => Some(*number),
            _ => None,
        };
        if all.iter().all(|value| whole(value).is_some()) {
            return Values::Whole(values.iter().filter_map(whole).collect());
        }
        if all.iter().all(|value| number(value).is_some()) {
            return Values::Number(values.iter().filter_map(number).collect());
        }
        Values::Text(values.iter().map(|value| value.to_string()).collect())
    }

    fn schema(&self, name: &str) -> Result<TypePtr> {
        let (physical, logical) = match self {
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Whole(_) => (Physical::INT64, None),
            Values::Unsigned(_) => {
                let unsigned = LogicalType::integer(64, false);
                (Physical::INT64, Some(unsigned))
            }
            Values::Number(_) | Values::Optional(_) => (Physical::DOUBLE, None),
        };
        let repetition = match self {
            Values::Optional(_) => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        Ok(Arc::new(builder.with_logical_type(logical).build()?))
    }

    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            Values::Text(texts) => {
                let bytes: Vec<ByteArray> =
                    texts.iter().map(|text| ByteArray::from(text.as_str())).collect();
                writer.typed::<ByteArrayType>().write_batch(&bytes, None, None)?;
            }
            Values::Whole(numbers) | Values::Unsigned(numbers) => {
                writer.typed::<Int64Type>().write_batch(numbers, None, None)?;
            }
            Values::Number(numbers) => {
                writer.typed::<DoubleType>().write_batch(numbers, None, None)?;
            }
            Values::Optional(numbers) => {
                let known: Vec<f64> = numbers.iter().flatten().copied().collect();
                let levels: Vec<i16> = numbers.iter().map(|n| i16::from(n.is_some())).collect();
                writer.typed::<DoubleType>().write_batch(&known, Some(&levels), None)?;
            }
        }
        Ok(())
    }
}

fn write(all: &[(String, Values)]) -> Result<Vec<u8>> {
    let fields = all.iter().map(|(name, values)| values.schema(name)).collect::<Result<_>>()?;
    let schema = Arc::new(Type::group_type_builder("runs").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_created_by("anysched".to_string())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, values) in all {
        if let Some(mut column) = group.next_column()? {
            values.write(&mut column)?;
            column.close()?;
        }
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}
