//! The logs of decisions as the kernel sends them: in chunks, those of all CPUs mixed.

use crate::BootError;

/// The log of each CPU. A chunk is the CPU (one byte), its length (four bytes, little-endian) and
/// as many bytes.
///
/// Errors: the bytes end within a chunk, or a chunk is of no CPU.
pub(crate) fn split(mut sent: &[u8], cpus: usize) -> Result<Vec<Vec<u8>>, BootError> {
    let garbled = || BootError::Garbled { line: "(a part of its log of decisions)".into() };
    let mut logs = vec![Vec::new(); cpus];
    while let Some((head, rest)) = sent.split_first_chunk::<5>() {
        let [cpu, length @ ..] = *head;
        let length = u32::from_le_bytes(length) as usize;
        let (chunk, rest) = rest.split_at_checked(length).ok_or_else(garbled)?;
        logs.get_mut(usize::from(cpu)).ok_or_else(garbled)?.extend_from_slice(chunk);
        sent = rest;
    }
    if sent.is_empty() { Ok(logs) } else { Err(garbled()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_cpus_are_told_apart() {
        let sent = [&[0u8, 2, 0, 0, 0, 10, 11][..], &[1, 1, 0, 0, 0, 20], &[0, 1, 0, 0, 0, 12]];
        let sent = sent.concat();
        assert_eq!(split(&sent, 2).unwrap(), [vec![10, 11, 12], vec![20]]);
        assert!(split(&sent, 1).is_err());
        for cut in [3, 6, 9] {
            assert!(split(&sent[..cut], 2).is_err(), "{cut}");
        }
    }
}
