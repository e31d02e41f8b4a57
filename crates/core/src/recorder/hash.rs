//! A single number for a sequence of picks.

use crate::Pick;
use crate::ids::CpuId;
use crate::time::Time;

/// FNV-1a (64 bit) over the picks in order. Each contributes 22 bytes, all little-endian: time (8),
/// CPU (2), task (4), slice (8). Equal sequences have equal hashes on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickHash(u64);

impl Default for PickHash {
    /// The hash of no picks.
    fn default() -> PickHash {
        PickHash(0xcbf2_9ce4_8422_2325)
    }
}

impl PickHash {
    /// Adds the pick that `cpu` got at `now`.
    #[inline]
    pub fn add(&mut self, now: Time, cpu: CpuId, pick: Pick) {
        self.bytes(&now.0.to_le_bytes());
        self.bytes(&cpu.0.to_le_bytes());
        self.bytes(&pick.task.0.to_le_bytes());
        self.bytes(&pick.slice.0.to_le_bytes());
    }

    /// The hash of the picks so far.
    pub fn value(&self) -> u64 {
        self.0
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, TaskId};

    /// Test vectors of the FNV authors.
    #[test]
    fn it_is_fnv_1a() {
        for (text, value) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut hash = PickHash::default();
            hash.bytes(text.as_bytes());
            assert_eq!(hash.value(), value, "{text}");
        }
    }

    #[test]
    fn every_field_counts() {
        let hash = |time, cpu, task, slice| {
            let mut hash = PickHash::default();
            let pick = Pick { task: TaskId(task), slice: Span(slice) };
            hash.add(Time(time), CpuId(cpu), pick);
            hash.value()
        };
        let all = [hash(1, 2, 3, 4), hash(9, 2, 3, 4), hash(1, 9, 3, 4), hash(1, 2, 9, 4)];
        assert!(all.iter().all(|&other| other != hash(1, 2, 3, 9)));
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])));
    }
}
