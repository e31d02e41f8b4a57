//! How the time of an emulated machine passes.

use anysched_core::{Machine, Span};
use std::fmt;

/// How the time of an emulated machine passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Each instruction takes the same time, and idle time is skipped: a repeated run takes the
    /// same time.
    Instructions(InstructionTime),
    /// An instruction takes a nanosecond; while the machine is idle, time is real.
    Real,
    /// Each CPU runs as fast as it can, at the same time as the others; times mean nothing.
    Parallel,
}

/// How long an instruction of an emulated machine takes: 1, 2, 4, … or 1024 ns. A slower machine
/// takes fewer instructions, and so less of our time, for the same time of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstructionTime {
    shift: u8,
}

impl InstructionTime {
    /// The longest: 1024 ns.
    const MAX_SHIFT: u8 = 10;

    /// Reads a time, such as `8ns`.
    ///
    /// Errors: it is no time, or not one that an instruction can take.
    pub fn parse(text: &str) -> Result<InstructionTime, &'static str> {
        let Span(ns) = Span::parse(text)?;
        let shift = ns.trailing_zeros() as u8;
        if !ns.is_power_of_two() || shift > InstructionTime::MAX_SHIFT {
            return Err("an instruction takes 1ns, 2ns, 4ns, … or 1024ns");
        }
        Ok(InstructionTime { shift })
    }

    /// The base-2 logarithm of the nanoseconds, from 0 to 10.
    pub fn shift(self) -> u8 {
        self.shift
    }
}

impl fmt::Display for InstructionTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shift {
            0 => f.write_str("a nanosecond"),
            shift => write!(f, "{} nanoseconds", 1u64 << shift),
        }
    }
}

impl Clock {
    /// Each instruction takes a nanosecond.
    pub const COUNTED: Clock = Clock::Instructions(InstructionTime { shift: 0 });

    /// The clock that is `wanted`, or the usual one of a machine: several CPUs count no
    /// instructions unless they are told to.
    pub fn or_usual(wanted: Option<Clock>, machine: &Machine) -> Clock {
        let several = machine.cpus() > 1;
        wanted.unwrap_or(if several { Clock::Parallel } else { Clock::COUNTED })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_take_a_power_of_two() {
        assert_eq!(InstructionTime::parse("1ns"), Ok(InstructionTime::default()));
        for (text, shift) in [("8ns", 3), ("1.024us", 10)] {
            assert_eq!(InstructionTime::parse(text).map(InstructionTime::shift), Ok(shift));
        }
        assert_eq!(InstructionTime::parse("8ns").unwrap().to_string(), "8 nanoseconds");
        for text in ["0", "3ns", "2048ns", "1us", "8", "none"] {
            assert!(InstructionTime::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_cpu_counts_instructions_and_several_do_if_they_are_told_to() {
        let machine = |cpus| Machine::flat(cpus).unwrap();
        assert_eq!(Clock::or_usual(None, &machine(1)), Clock::COUNTED);
        assert_eq!(Clock::or_usual(None, &machine(2)), Clock::Parallel);
        let slow = Clock::Instructions(InstructionTime::parse("8ns").unwrap());
        assert_eq!(Clock::or_usual(Some(slow), &machine(2)), slow);
    }
}
