//! Random loads and costs.

#![allow(unused_imports)] // not each test draws some

pub use anysched_lab::swarm::random::*;
