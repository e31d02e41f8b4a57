//! The `anysched` command: its hosts, a line each.

#![forbid(unsafe_code)]

use anysched_host::HostInfo;
use std::process::ExitCode;

/// All hosts. The first is where runs are made unless another is named.
static HOSTS: &[&HostInfo] =
    &[&anysched_sim::HOST, &anysched_arceos::HOST, &anysched_linux::HOST, &anysched_xen::HOST];

/// The static program's: with musl's own, short runs take half as long again.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    anysched_cli::main(HOSTS)
}
