//! Explicit models; [`model`](crate::model) says what they are.

use super::{Imported, Importer, ReadError};
use crate::kinds::{FileName, keys};
use crate::model::Model;
use std::io::Read;

keys! {
    /// The keys of a load that is an explicit model.
    pub struct Explicit {
        /// The model, plain or compressed with gzip.
        file: FileName = needed, eg "load.json";
    }
}

impl Importer for Explicit {
    const FORMAT: &'static str = "model";
    const ENDINGS: &'static [&'static str] = &[".json", ".json.gz"];

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(text: &str) -> bool {
        Model::begins(text)
    }

    fn import(&self, input: &mut dyn Read, _: &str) -> Result<Imported, ReadError> {
        Ok(Imported::Model(Model::read(input)?))
    }
}
