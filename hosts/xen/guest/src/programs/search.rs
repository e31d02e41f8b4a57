//! A search service: a domain asks another for documents that have all of some words, beside others
//! that compute.
//!
//! The service has an inverted index of documents of random words, short words being more common
//! than long ones, as in a language: for each word the documents that have it and how often. An
//! answer are the ten best of the documents that have all words of the question, by how often they
//! have them.
//!
//! Arguments: those of `echo` but `work_ns`; `documents`, how many there are.
//!
//! Values: those of `echo`; `server.found`, how many documents were found for all questions;
//! `server.verified`, 1 if that of the first questions is what reading all documents gives.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anysched_core::random::SplitMix64;

use super::echo::{answering, asked};
use super::{Arguments, Own, Plan, Work};
use crate::report;

/// Words of a document, and words that there are.
const LENGTH: usize = 64;
const WORDS: u64 = 2_000;

/// Answers to so many questions are verified.
const VERIFIED: u64 = 8;

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan<'static>>, String> {
    let documents = arguments.number("documents", 1_000)?;
    if !(1..=4_000).contains(&documents) {
        return Err(format!("`documents` = \"{documents}\": from 1 to 4000 are wanted"));
    }
    let mut plans = asked(arguments, &format!("search-server documents={documents}"))?;
    plans[0].heap = (2 << 20) + documents as usize * LENGTH * 32;
    Ok(plans)
}

/// A word: the lower, the more often.
fn word(random: &mut SplitMix64) -> u16 {
    let [one, other] = [random.below(WORDS), random.below(WORDS)];
    (one * other / WORDS) as u16
}

/// How often a word is in a document.
#[derive(Clone, Copy)]
struct Posting {
    document: u32,
    times: u32,
}

/// The documents of each word, in order.
#[derive(Default)]
struct Index(BTreeMap<u16, Vec<Posting>>);

impl Index {
    fn add(&mut self, document: u32, words: &[u16]) {
        for word in words {
            let postings = self.0.entry(*word).or_default();
            match postings.last_mut() {
                Some(last) if last.document == document => last.times += 1,
                _ => postings.push(Posting { document, times: 1 }),
            }
        }
    }

    /// The documents that have all of `words`, and how often in all.
    fn find(&self, words: &[u16]) -> Vec<Posting> {
        let mut lists: Vec<&[Posting]> =
            words.iter().map(|word| self.0.get(word).map_or(&[][..], Vec::as_slice)).collect();
        lists.sort_by_key(|list| list.len());
        let Some((shortest, others)) = lists.split_first() else { return Vec::new() };
        let all = shortest.iter().filter_map(|first| {
            let in_others = others.iter().map(|list| {
                let place = list.binary_search_by_key(&first.document, |posting| posting.document);
                place.ok().map(|place| list[place].times)
            });
            let times: u32 = in_others.sum::<Option<u32>>()?;
            Some(Posting { times: times + first.times, ..*first })
        });
        all.collect()
    }
}

/// The words of a question.
fn question(number: u64) -> Vec<u16> {
    let mut random = SplitMix64(number);
    let count = 2 + random.below(2);
    let mut words: Vec<u16> = (0..count).map(|_| word(&mut random)).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The best ten.
fn best(mut found: Vec<Posting>) -> Vec<u32> {
    found.sort_unstable_by_key(|posting| (u32::MAX - posting.times, posting.document));
    found.iter().take(10).map(|posting| posting.document).collect()
}

/// The same by reading all documents.
fn read_all(documents: &[Vec<u16>], words: &[u16]) -> Vec<Posting> {
    let times = |document: &[u16], word: u16| document.iter().filter(|one| **one == word).count();
    let all = documents.iter().enumerate().filter_map(|(number, document)| {
        let each = words.iter().map(|word| times(document, *word) as u32);
        let each: Option<Vec<u32>> = each.map(|times| Some(times).filter(|n| *n > 0)).collect();
        Some(Posting { document: number as u32, times: each?.iter().sum() })
    });
    all.collect()
}

/// Builds the index, and answers.
pub fn serve(own: &Own<'_>) -> Work {
    let [count, documents] = ["count", "documents"].map(|name| own.number(name));
    // Other numbers than those of questions.
    let mut random = SplitMix64(u64::MAX);
    let mut document = |_| (0..LENGTH).map(|_| word(&mut random)).collect();
    let documents: Vec<Vec<u16>> = (0..documents).map(&mut document).collect();
    let mut index = Index::default();
    for (number, words) in documents.iter().enumerate() {
        index.add(number as u32, words);
    }
    let is_right = (0..VERIFIED)
        .map(question)
        .all(|words| best(index.find(&words)) == best(read_all(&documents, &words)));
    drop(documents);
    let found = AtomicU64::new(0);
    let work = answering(own, move |number| {
        let documents = best(index.find(&question(number)));
        let all = found.fetch_add(documents.len() as u64, Relaxed) + documents.len() as u64;
        if number + 1 == count {
            report::value("found", all);
        }
    });
    report::value("verified", is_right.into());
    Box::new(work)
}
