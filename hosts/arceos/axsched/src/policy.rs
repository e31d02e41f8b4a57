//! The policy that the host asked for.

use alloc::boxed::Box;
use alloc::vec::Vec;

use anysched_arceos_qemu::refuse;
use anysched_core::{Machine, Recorder, Scheduler};
use anysched_wire::boot::Boot;

use crate::log::Log;
use crate::timed::Timed;

/// The policy that the host asked for, of `machine`.
///
/// Refuses to run if there is none of that name or a parameter is wrong; `anysched boot` checks
/// both before it boots.
pub(crate) fn build(boot: &Boot, machine: &Machine) -> Box<dyn Scheduler> {
    let settings: Vec<(&str, &str)> =
        boot.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let Some(info) = anysched_policies::policy(&boot.policy) else {
        refuse(format_args!("there is no policy \"{}\" in this image", boot.policy));
    };
    let policy = match (info.build)(machine, &settings) {
        Ok(policy) => policy,
        Err(error) => refuse(format_args!("policy {}: {error}", boot.policy)),
    };
    let policy = if boot.timed { Box::new(Timed::new(policy)) } else { policy };
    if !boot.record {
        return policy;
    }
    Box::new(Recorder::new(policy, machine, &boot.policy, &settings, Log))
}
