//! Pages of the kernel's ring buffer, as far as times of events go, and the text of those events.
//!
//! A page begins with the time of its first event and the number of bytes that follow (8 bytes
//! each). An event begins with a word: 5 bits of type, 27 bits of time passed since the event
//! before it. tracefs describes that in `events/header_page` and `events/header_event`.

/// Bytes of a page.
pub const SIZE: usize = 4096;

/// Bytes before the first event.
const HEAD: usize = 16;

/// The bits of a page's number of bytes that are the number.
const LENGTH: u64 = (1 << 27) - 1;

/// Types of events: data of a length that follows; nothing; more bits of time; the lower bits of a
/// time. All others are data, and their own length in words.
const LONG: u32 = 0;
const NOTHING: u32 = 29;
const PASSED: u32 = 30;
const TIME: u32 = 31;

/// The bits that a type's word has of a time.
const TIME_BITS: u32 = 27;
/// The bits that it has with the word that follows.
const LOWER: u64 = (1 << (TIME_BITS + 32)) - 1;

/// Appends the times of the events of a page, in nanoseconds.
///
/// Errors: it is cut off.
pub fn times(page: &[u8], times: &mut Vec<u64>) -> Result<(), String> {
    let cut = || format!("a page of the ring buffer is cut off after {} bytes", page.len());
    let mut time = long(page, 0).ok_or_else(cut)?;
    let length = (long(page, 8).ok_or_else(cut)? & LENGTH) as usize;
    let events = page.get(HEAD..HEAD + length).ok_or_else(cut)?;
    let mut at = 0;
    while at < events.len() {
        let head = word(events, at).ok_or_else(cut)?;
        let (kind, passed) = (head & 31, u64::from(head >> 5));
        if kind == NOTHING && passed == 0 {
            return Ok(());
        }
        let next = || word(events, at + 4).ok_or_else(cut);
        let size = match kind {
            LONG | NOTHING => 4 + next()? as usize,
            PASSED | TIME => 8,
            words => 4 + 4 * words as usize,
        };
        match kind {
            PASSED => time += passed | u64::from(next()?) << TIME_BITS,
            TIME => time = time & !LOWER | passed | u64::from(next()?) << TIME_BITS,
            _ => time += passed,
        }
        if !matches!(kind, NOTHING | PASSED | TIME) {
            times.push(time);
        }
        at += size;
    }
    Ok(())
}

/// The lines of events in `text`, with the times given instead of their own.
///
/// Errors: there are more or fewer of them than times, or they are of other events.
pub fn timed(text: &[u8], times: &[u64]) -> Result<Vec<u8>, String> {
    // Names are right-aligned, and shorter than their column.
    let is_event = |line: &&[u8]| line.starts_with(b" ");
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(is_event).collect();
    if lines.len() != times.len() {
        let (lines, times) = (lines.len(), times.len());
        return Err(format!("{lines} lines of text are of {times} events"));
    }
    let mut all = Vec::with_capacity(text.len() + 3 * times.len());
    for (line, &time) in lines.into_iter().zip(times) {
        let shown = || String::from_utf8_lossy(line).into_owned();
        let (start, end) = place(line).ok_or_else(|| format!("a line has no time: {}", shown()))?;
        // The kernel rounds.
        let micros = (time + 500) / 1000;
        let expected = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        if &line[start..end] != expected.as_bytes() {
            return Err(format!("this should have been at {time} ns: {}", shown()));
        }
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        all.extend_from_slice(&line[..start]);
        all.extend_from_slice(format!("{seconds}.{rest:09}").as_bytes());
        all.extend_from_slice(&line[end..]);
        all.push(b'\n');
    }
    Ok(all)
}

/// Where a line has its time: `            name-12      [000] d..2.  1234.567890: event: …`.
fn place(line: &[u8]) -> Option<(usize, usize)> {
    // A name may be anything, but not longer than its column; so are process numbers.
    const NAME_AND_NUMBER: usize = 16 + 1 + 7;
    let after = |from: usize, byte: u8| {
        line.get(from..)?.iter().position(|other| *other == byte).map(|at| from + at + 1)
    };
    let flags = after(NAME_AND_NUMBER, b']')? + 1;
    let mut start = after(flags, b' ')?;
    while line.get(start) == Some(&b' ') {
        start += 1;
    }
    Some((start, after(start, b':')? - 1))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with these words behind its head, and as many that do not count.
    fn page(start: u64, words: &[u32]) -> Vec<u8> {
        let mut page = start.to_le_bytes().to_vec();
        // Events were lost before it.
        page.extend(((4 * words.len() as u64) | (1 << 31)).to_le_bytes());
        page.extend(words.iter().chain(words).flat_map(|word| word.to_le_bytes()));
        page
    }

    #[test]
    fn times_of_every_kind_of_event() {
        let start = (5 << 59) | 1_000_000_000;
        let words = [
            // Two words of data at once; none, 7 ns later, with a length of its own.
            2,
            0,
            0,
            7 << 5,
            8,
            0,
            // 1 << 27 and 3 ns pass, then 1 ns to the next event.
            3 << 5 | 30,
            1,
            1 << 5 | 1,
            0,
            // What was taken back.
            1 << 5 | 29,
            4,
            // From here on it is 1 << 28 | 9, with the upper bits of before.
            9 << 5 | 31,
            2,
            1,
            0,
            // The rest is empty.
            29,
            77,
        ];
        let mut read = vec![1];
        times(&page(start, &words), &mut read).unwrap();
        let third = start + 7 + (1 << 27) + 3 + 1;
        assert_eq!(read, [1, start, start + 7, third, (5 << 59) | (1 << 28) | 9]);
        for cut in [0, 8, 15, 16, 40] {
            let all = page(start, &words);
            assert!(times(&all[..cut], &mut Vec::new()).is_err(), "{cut}");
        }
    }

    const TEXT: &str = "# tracer: nop\n#\n\
        \x20         <idle>-0       [000] d..2.    10.000001: sched_switch: prev_comm=a\n\
        \x20#  [x] 1.5: b]c-4194303 [011] d.h3.  1234.567890: sched_waking: comm=d pid=1\n";

    #[test]
    fn lines_get_the_times_of_their_events() {
        let text = timed(TEXT.as_bytes(), &[10_000_000_500, 1_234_567_890_499]).unwrap();
        let expected =
            TEXT.replace("10.000001:", "10.000000500:").replace(".567890:", ".567890499:");
        let events = expected.strip_prefix("# tracer: nop\n#\n").unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), events);
        let error = timed(TEXT.as_bytes(), &[10_000_000_499, 1_234_567_890_499]).unwrap_err();
        assert!(error.starts_with("this should have been at 10000000499 ns:"), "{error}");
        let error = timed(TEXT.as_bytes(), &[1]).unwrap_err();
        assert_eq!(error, "2 lines of text are of 1 events");
        assert!(timed(b" short\n", &[1]).unwrap_err().starts_with("a line has no time"));
    }
}
