//! What the playground's page asks of the simulator: a request as JSON, an answer as JSON.
//!
//! Compiled to WebAssembly this is the whole of anysched that a browser needs: the same policies,
//! simulator, loads, importers and reports as those of the command, from the same crates.
//!
//! # What crosses
//!
//! The page and this module share memory, two imports and three exports (`page`, which exists in
//! WebAssembly only). That is few enough to be written by hand: `wasm-bindgen` would add a program
//! that has to be built in the version of the library, for minutes wherever the page is built, and
//! glue larger than this crate. A request is an object with `op`, see [`Request`]. An answer is a
//! list of parts, the first of which is JSON; the others are the blocks of timelines, as they are
//! in a report. Of a request that cannot be met, the JSON is `{"error": …}`: `text` as the command
//! says it, and where known `line` and `column` from 1 and `remedy`.

#![deny(missing_docs)]

mod lists;
#[cfg(target_family = "wasm")]
pub mod page;
mod request;
mod session;

pub use request::Request;
pub use session::{Answer, Session};
