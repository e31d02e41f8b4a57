//! Whether a program needs libraries.

use super::about;
use crate::run::Failed;
use std::fs;
use std::path::Path;

/// Refuses a program that asks for an interpreter, which loads libraries.
pub(super) fn require_static(program: &Path) -> Result<(), Failed> {
    let bytes = fs::read(program).map_err(|error| about(program, &error))?;
    match interpreter(&bytes) {
        Some(false) => Ok(()),
        Some(true) => Err(Failed(format!("{} needs libraries of the system", program.display()))),
        None => Err(Failed(format!("{} is no program for 64 bits", program.display()))),
    }
}

/// Whether an ELF file of 64 bits has a program header of the type `PT_INTERP`; `None`: it is no
/// such file.
///
/// Source: elf(5).
fn interpreter(bytes: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize, size: usize| -> Option<u64> {
        let mut whole = [0; 8];
        whole[..size].copy_from_slice(bytes.get(at..at + size)?);
        Some(u64::from_le_bytes(whole))
    };
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut is_there = false;
    for header in 0..count {
        let at = usize::try_from(start + header * size).ok()?;
        is_there |= number(at, 4)? == u64::from(INTERPRETER);
    }
    Some(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these types of program headers.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 * types.len()];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = types.len() as u8;
        for (number, kind) in types.iter().enumerate() {
            let at = 64 + 56 * number;
            bytes[at..at + 4].copy_from_slice(&kind.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn programs_that_need_libraries_are_found() {
        assert_eq!(interpreter(&elf(&[1, 2])), Some(false));
        assert_eq!(interpreter(&elf(&[1, 3, 2])), Some(true));
        assert_eq!(interpreter(b"#!/bin/sh\n"), None);
        assert_eq!(interpreter(&elf(&[1, 1])[..80]), None, "cut off");
        // This test needs libraries, or none; either way it is a program.
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(interpreter(&own).is_some());
    }
}
