//! The runs as a Parquet file, one line each.

use crate::output::runs::{Values, runs};
use crate::results::Results;
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// The runs as the bytes of a Parquet file, one line per run: the columns of [`runs()`], all
/// measured ones null where there is no data. The same results give the same bytes.
///
/// Errors: the writer's own; none are known.
pub fn parquet(results: &Results) -> Result<Vec<u8>> {
    write(&runs(results))
}

impl Values {
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
            Values::Whole(numbers) => {
                writer.typed::<Int64Type>().write_batch(numbers, None, None)?;
            }
            Values::Unsigned(numbers) => {
                // Parquet's unsigned integers are the same 64 bits.
                let bits: Vec<i64> = numbers.iter().map(|&number| number as i64).collect();
                writer.typed::<Int64Type>().write_batch(&bits, None, None)?;
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
