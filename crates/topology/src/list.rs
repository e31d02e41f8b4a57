//! Sets of CPUs by their operating-system numbers, which may have gaps.

/// The highest number that a CPU may have.
pub(super) const LAST: u32 = 65_535;

/// Reads the kernel's list format, `"0-3,8"`; a text without any number is the empty set. The
/// numbers ascend.
///
/// Errors: what is wrong, as text.
pub(super) fn parse(text: &str) -> Result<Vec<u32>, String> {
    let mut cpus: Vec<u32> = Vec::new();
    if text.trim().is_empty() {
        return Ok(cpus);
    }
    for part in text.trim().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| match text.trim().parse::<u32>() {
            Ok(number) if number <= LAST => Ok(number),
            _ => Err(format!("\"{}\" is not a CPU from 0 to {LAST}", text.trim())),
        };
        let (low, high) = (number(low)?, number(high)?);
        if low > high || cpus.last().is_some_and(|&last| last >= low) {
            return Err(format!("\"{}\" is not in ascending order", part.trim()));
        }
        cpus.extend(low..=high);
    }
    Ok(cpus)
}

/// Writes ascending numbers in the kernel's list format.
pub(super) fn show(cpus: &[u32]) -> String {
    let mut text = String::new();
    for run in cpus.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        text += &match run {
            [only] => format!("{comma}{only}"),
            [first, .., last] => format!("{comma}{first}-{last}"),
            [] => String::new(),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_back_as_written() {
        for text in ["", "0", "0-3,8", "5,63-64,1023,65535"] {
            assert_eq!(show(&parse(text).unwrap()), text);
        }
        assert_eq!(parse(" 0-1, 4\n").unwrap(), [0, 1, 4]);
    }

    #[test]
    fn wrong_lists_say_where() {
        for (text, part) in
            [("1,", "\"\""), ("3-1", "\"3-1\""), ("0-3,3", "\"3\""), ("65536", "65536"), ("x", "x")]
        {
            let why = parse(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
