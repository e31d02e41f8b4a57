//! A parameter that [changes](anysched_wire::change) while the policy runs.

use alloc::string::{String, ToString};

use anysched_core::{Scheduler, Time};
use anysched_scx::Adapter;
use anysched_wire::change::Change;

/// Does what `text` asks for, and returns the answer.
pub fn change<P: Scheduler>(
    now: Time,
    text: &[u8],
    name: &str,
    adapter: &mut Adapter<P>,
) -> String {
    let refused = |why: String| Change::Refused(why);
    let answer = match Change::read(text) {
        Ok(Change::Set(parameter, value)) => match adapter.set_param(now, &parameter, &value) {
            Ok(()) => Change::Done,
            Err(error) => refused(alloc::format!("{name}: {error}")),
        },
        Ok(Change::Done | Change::Refused(_)) => refused("nothing is asked".into()),
        Err(error) => refused(error.to_string()),
    };
    answer.write().unwrap_or_else(|error| error.to_string())
}
