//! Explicit models; [`model`](crate::model) says what they are.

use super::{Imported, Importer, Input, ReadError, json_text};
use crate::kinds::{FileName, keys};
use crate::model::Model;

keys! {
    /// The keys of a load that is an explicit model.
    pub struct Explicit {
        /// The model, plain or packed.
        file: FileName = needed, eg "load.json";
    }
}

impl Importer for Explicit {
    const FORMAT: &'static str = "model";
    const ENDINGS: &'static [&'static str] = &[".json", ".json.gz"];

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(start: &[u8]) -> bool {
        json_text(start).is_some_and(|text| Model::begins(&text))
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        Ok(Imported::Model(Model::read(input)?))
    }
}
