//! What an experiment file says: read into a tree of values that know their place in it, and from
//! there into typed parts. Nothing here is built or run.

pub(crate) mod claim;
pub(crate) mod columns;
pub(crate) mod error;
pub(crate) mod experiment;
pub(crate) mod fields;
pub(crate) mod files;
pub mod keys;
pub(crate) mod known;
pub(crate) mod overrides;
pub(crate) mod parts;
pub(crate) mod report;
pub(crate) mod scenario;
pub(crate) mod sweep;
pub(crate) mod tree;
