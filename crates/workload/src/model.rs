//! Explicit models: every task with the list of what it does. Importers make them.

use crate::{Channel, Load, NewTask, Op, Outside, Sizes};
use anysched_core::{Span, TaskId, Time};
use std::sync::Arc;

/// A complete, explicit load.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Its tasks; the index is what [`Op::Spawn`] means here.
    pub tasks: Vec<ModelTask>,
    /// Signals from timers and devices, by time.
    pub signals: Vec<(Time, Channel)>,
    /// How many objects it uses.
    pub sizes: Sizes,
    /// CPUs of the machine it was recorded on, if it was.
    pub cpus: Option<u32>,
    /// What the source said that the model leaves out, one line each.
    pub warnings: Vec<String>,
}

/// One task of a [`Model`].
#[derive(Clone, Debug, Default)]
pub struct ModelTask {
    /// Its parameters and name.
    pub new: NewTask,
    /// When it arrives; `None`: another task spawns it.
    pub arrives: Option<Time>,
    /// What it does.
    pub script: Arc<Script>,
}

/// A list of operations, of which the last part may be repeated.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// What is done; [`Op::Exit`] follows the last one.
    pub ops: Vec<Op>,
    /// Where a repetition begins.
    pub repeat_from: usize,
    /// How often the part from `repeat_from` is done; at least 1, `u64::MAX` is for ever.
    pub rounds: u64,
}
