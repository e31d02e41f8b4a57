//! Parameters that change while a policy runs.

use anysched_wire::change::Change;

/// The text that asks for it.
///
/// Errors: the name is none, or the value is too long.
pub(crate) fn request(name: &str, value: &str) -> Result<String, String> {
    Change::Set(name.into(), value.into()).write().map_err(|error| error.to_string())
}

/// What an answer says.
///
/// Errors: nothing has changed, and why.
pub(crate) fn outcome(answer: &[u8]) -> Result<(), String> {
    match Change::read(answer) {
        Ok(Change::Done) => Ok(()),
        Ok(Change::Refused(why)) => Err(why),
        Ok(Change::Set(..)) => Err("the answer is a question".into()),
        Err(error) => Err(error.to_string()),
    }
}
