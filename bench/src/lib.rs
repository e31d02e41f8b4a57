//! Loads that several benchmarks share.
