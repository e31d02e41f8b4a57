//! Tests of experiments as users write them, in one program: each would be linked with all policies.

mod chart;
mod claims;
mod errors;
mod files;
mod grid;
mod host;
mod keys;
mod look;
mod output;
mod parts;
mod rehearsal;
mod report;
mod runs;
mod shrink;
mod support;
mod vms;
