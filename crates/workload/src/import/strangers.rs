//! Files of another kind than they are taken for.

use super::{ImporterInfo, text};

/// How a kind of file begins, what it is, and what can be done about it.
type Other = (fn(&[u8]) -> bool, &'static str, &'static str);

const OTHERS: [Other; 8] = [
    (
        |start| start.starts_with(b"anysched"),
        "a log of decisions",
        "replay it: `anysched replay FILE`",
    ),
    (
        |start| starts_with_text(start, &["question =", "question=", "[machine]"]),
        "an experiment",
        "run it: `anysched run FILE`",
    ),
    (
        |start| text(start).is_some_and(|text| text.contains("<topology")),
        "a machine as lstopo writes it",
        "show it: `anysched topology FILE`",
    ),
    (
        |start| start.starts_with(b"PAR1"),
        "a table in Parquet",
        "write it as CSV, and import that: `anysched import csv`",
    ),
    (
        |start| start.starts_with(b"version https://git-lfs"),
        "a pointer of Git LFS and not the file itself",
        "get the file: `git lfs pull`",
    ),
    (
        |start| {
            start.starts_with(&[0xc1, 0x1f, 0xfc, 0xc1])
                || start.starts_with(&[0xc1, 0xfc, 0x1f, 0xc1])
        },
        "a trace of LTTng",
        "record with trace-cmd, perf or `anysched record` instead",
    ),
    (
        |start| start.starts_with(b"7z\xbc\xaf\x27\x1c") || start.starts_with(b"BZh"),
        "packed in a way that is not read here",
        "unpack it, or pack it with gzip, zstd, xz, zip or tar",
    ),
    (
        |start| start.starts_with(b"\x7fELF"),
        "a program",
        "record it while it runs: `anysched record`",
    ),
];

fn starts_with_text(start: &[u8], any: &[&str]) -> bool {
    let text = text(start);
    let line = text.as_deref().and_then(super::first_line);
    line.is_some_and(|line| any.iter().any(|begins| line.starts_with(begins)))
}

/// What a file that begins like this is, if it is not in `format`, and what to do with it.
pub(super) fn other_than(format: &str, start: &[u8]) -> Option<String> {
    match ImporterInfo::recognise(start) {
        Some(known) if known.name == format => return None,
        Some(known) => {
            let (summary, kind) = (known.summary, known.aliases[0]);
            return Some(format!(
                "this is not {format} but {} ({}{}); import it with `{}`, or name it in an \
                 experiment with kind = \"{kind}\"",
                known.name,
                summary[..1].to_lowercase(),
                &summary[1..],
                known.command(),
            ));
        }
        None => {}
    }
    let (_, what, remedy) = OTHERS.iter().find(|(begins, ..)| begins(start))?;
    Some(format!("this is {what}; {remedy}"))
}
