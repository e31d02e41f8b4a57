//! Domains that compress a text with DEFLATE, decompress it and compare the two.
//!
//! Arguments: `domains`, how many; `kib`, how long the text is; `rounds`, how often each does it.
//!
//! Values: `zipN.compressed`, bytes that the text becomes; `zipN.verified`, 1 if it was the same
//! again each time.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use anysched_core::random::SplitMix64;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec;

use super::{Arguments, Own, Plan, Work};
use crate::report;

/// As of `gzip`, unless it is told otherwise.
const LEVEL: u8 = 6;

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan<'static>>, String> {
    let domains = arguments.number("domains", 4)?;
    let length = arguments.number("kib", 64)?;
    let rounds = arguments.number("rounds", 4)?;
    if !(1..=4_096).contains(&length) {
        return Err(format!("`kib` = \"{length}\": from 1 to 4096 are wanted"));
    }
    let plan = |number| {
        let command = format!("zip kib={length} rounds={rounds}");
        Plan {
            heap: (2 << 20) + ((length as usize * 6) << 10),
            ..Plan::new(format!("zip{number}"), command)
        }
    };
    Ok((1..=domains).map(plan).collect())
}

/// Words that come again and again, as in a text.
fn text(length: usize) -> Vec<u8> {
    let mut random = SplitMix64(0);
    let mut text = Vec::with_capacity(length + 16);
    while text.len() < length {
        let word = random.below(512) * random.below(512) / 512;
        let mut letters = SplitMix64(word);
        for _ in 0..2 + word % 8 {
            text.push(b'a' + letters.below(26) as u8);
        }
        text.push(b' ');
    }
    text.truncate(length);
    text
}

/// Counts the bytes that it has compressed.
pub fn work(own: &Own<'_>) -> Work {
    let [kib, rounds] = ["kib", "rounds"].map(|name| own.number(name));
    let text = text((kib as usize) << 10);
    Box::new(move |_| {
        let (mut compressed, mut is_same) = (0, true);
        for _ in 0..rounds {
            let short = compress_to_vec(&text, LEVEL);
            compressed = short.len() as u64;
            is_same &= decompress_to_vec(&short).is_ok_and(|again| again == text);
        }
        report::value("compressed", compressed);
        report::value("verified", is_same.into());
        rounds * text.len() as u64
    })
}
