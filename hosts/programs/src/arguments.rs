//! Arguments of a program, as the host gives them.

use alloc::vec::Vec;
use core::str::FromStr;

use anysched_wire::program;

use crate::Kernel;

/// The text of an argument, if it is given.
///
/// Refuses to run if it is none of the [arguments](program) of the program.
pub fn text<K: Kernel>(name: &str) -> Option<&'static str> {
    let boot = K::boot();
    if !program::find(&boot.program).is_some_and(|program| program.has(name)) {
        K::refuse(format_args!("`{name}` is not in the list of arguments of `{}`", boot.program));
    }
    boot.argument(name)
}

/// An argument of the program, a whole number from 0, with its default.
///
/// Refuses to run if it is not a number.
pub fn argument<K: Kernel>(name: &str, default: u64) -> u64 {
    whole::<K, u64>(name, default)
}

/// The same, in another range.
pub fn whole<K: Kernel, N: FromStr>(name: &str, default: N) -> N {
    let Some(text) = text::<K>(name) else { return default };
    match text.parse() {
        Ok(number) => number,
        Err(_) => K::refuse(format_args!("`{name}` = \"{text}\": a whole number is wanted")),
    }
}

/// The numbers of an argument, with commas between, if it is given.
///
/// Refuses to run if they are not numbers.
pub fn numbers<K: Kernel, N: FromStr>(name: &str) -> Option<Vec<N>> {
    let text = text::<K>(name)?;
    let numbers = text.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers {
        Some(numbers) => Some(numbers),
        None => {
            K::refuse(format_args!("`{name}` = \"{text}\": whole numbers with commas are wanted"))
        }
    }
}
