//! Containers for ready tasks, linked by index.
//!
//! All per-task links live in one arena that grows when a task is attached; a queue is a handful of
//! indices. Many queues share an arena, moving a task between them never allocates, and removing a
//! task needs only its id.

mod levels;
mod list;
mod tournament;
mod tree;
mod wide;

pub use levels::Levels;
pub use list::{Links, List};
pub use tournament::Tournament;
pub use tree::{Forest, Summary, Tree};
pub use wide::{WideForest, WideTree};

/// "No task" in a link.
pub const NONE: u32 = u32::MAX;
