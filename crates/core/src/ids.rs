//! Identifiers of tasks, CPUs and domains, and sets of CPUs.

use alloc::boxed::Box;
use core::fmt;

/// A task. Hosts number tasks densely from 0, because policies use the number as an array index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

/// A CPU of the machine, `0 .. Machine::cpus()`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CpuId(pub u16);

/// A group of tasks that share a weight and a cap: a virtual machine, a control group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DomainId(pub u16);

impl TaskId {
    /// The index into per-task arrays.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl CpuId {
    /// The index into per-CPU arrays.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The most CPUs a machine may have.
pub const MAX_CPUS: usize = 1024;

/// A set of CPUs with room for every machine; one bit per CPU, 128 bytes.
///
/// Meant for the few masks that a scheduler keeps (idle, online, kicked); [`CpuSet`] is the small
/// form that each task carries.
#[derive(Clone, PartialEq, Eq)]
pub struct CpuMask {
    words: [u64; MAX_CPUS / 64],
    /// Which words are non-zero, one bit each.
    used: u16,
}

impl CpuMask {
    /// The empty set.
    pub const EMPTY: CpuMask = CpuMask { words: [0; MAX_CPUS / 64], used: 0 };

    /// The CPUs `0 .. cpus`; `cpus` is at most [`MAX_CPUS`].
    pub fn first(cpus: usize) -> CpuMask {
        CpuMask::of((0..cpus).map(|cpu| CpuId(cpu as u16)))
    }

    /// The set of these CPUs.
    pub fn of(cpus: impl IntoIterator<Item = CpuId>) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        cpus.into_iter().for_each(|cpu| mask.insert(cpu));
        mask
    }

    /// Whether no CPU is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether `cpu` is in the set.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words[cpu.index() / 64] >> (cpu.index() % 64) & 1 != 0
    }

    /// Adds `cpu`.
    #[inline]
    pub fn insert(&mut self, cpu: CpuId) {
        let index = cpu.index() / 64;
        self.words[index] |= 1 << (cpu.index() % 64);
        self.used |= 1 << index;
    }

    /// Removes `cpu`.
    #[inline]
    pub fn remove(&mut self, cpu: CpuId) {
        let index = cpu.index() / 64;
        self.words[index] &= !(1 << (cpu.index() % 64));
        self.used &= !(u16::from(self.words[index] == 0) << index);
    }

    /// The lowest CPU of the set, or `None` when it is empty.
    #[inline]
    pub fn lowest(&self) -> Option<CpuId> {
        let index = self.used.trailing_zeros() as usize;
        // For the empty set, the index is past the last word.
        let word = self.words.get(index)?;
        Some(CpuId((index * 64) as u16 + word.trailing_zeros() as u16))
    }

    /// Removes and returns the lowest CPU of the set.
    #[inline]
    pub fn take_lowest(&mut self) -> Option<CpuId> {
        let cpu = self.lowest()?;
        self.remove(cpu);
        Some(cpu)
    }

    /// Removes every CPU.
    pub fn clear(&mut self) {
        *self = CpuMask::EMPTY;
    }

    /// The CPUs of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| bits(index, word))
    }

    /// The lowest CPU that is in this set and in `allowed`.
    #[inline]
    pub fn lowest_of(&self, allowed: &CpuSet) -> Option<CpuId> {
        if self.used == 0 {
            return None;
        }
        match allowed {
            CpuSet::All => self.lowest(),
            CpuSet::Few(few) => bits(0, self.words[0] & few).next(),
            CpuSet::Many(many) => {
                let both = self.words.iter().zip(many.iter()).enumerate();
                both.flat_map(|(index, (a, b))| bits(index, a & b)).next()
            }
        }
    }

    /// The lowest CPU that is both in this set and in `wanted`, a function from an index to the
    /// CPUs `64 · index ..`, one bit each. It is called only for words in which this set has a CPU.
    #[inline]
    pub fn lowest_among(&self, wanted: impl Fn(usize) -> u64) -> Option<CpuId> {
        let mut used = self.used;
        while used != 0 {
            let index = used.trailing_zeros() as usize;
            let found = self.words[index] & wanted(index);
            if found != 0 {
                return Some(CpuId((index * 64) as u16 + found.trailing_zeros() as u16));
            }
            used &= used - 1;
        }
        None
    }

    /// The CPUs that are in this set and in `other`, in ascending order.
    pub fn iter_among<'a>(&'a self, other: &'a CpuMask) -> impl Iterator<Item = CpuId> + 'a {
        let mut used = self.used & other.used;
        let words = core::iter::from_fn(move || {
            let index = (used != 0).then(|| used.trailing_zeros() as usize)?;
            used &= used - 1;
            Some(index)
        });
        words.flat_map(|index| bits(index, self.words[index] & other.words[index]))
    }

    /// The CPUs `64 · index .. 64 · index + 64`, one bit each.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        self.words[index]
    }

    /// Adds the CPUs of `other`.
    pub fn insert_all(&mut self, other: &CpuMask) {
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine |= theirs);
        self.used |= other.used;
    }

    /// Removes the CPUs of `other`.
    pub fn remove_all(&mut self, other: &CpuMask) {
        for (index, (mine, theirs)) in self.words.iter_mut().zip(&other.words).enumerate() {
            *mine &= !theirs;
            self.used &= !(u16::from(*mine == 0) << index);
        }
    }

    /// Whether this set and `allowed` have a CPU in common.
    pub fn meets(&self, allowed: &CpuSet) -> bool {
        self.lowest_of(allowed).is_some()
    }
}

fn bits(index: usize, mut word: u64) -> impl Iterator<Item = CpuId> {
    core::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let bit = word.trailing_zeros() as usize;
        word &= word - 1;
        Some(CpuId((index * 64 + bit) as u16))
    })
}

impl fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|cpu| cpu.0)).finish()
    }
}

/// The CPUs a task may run on. 16 bytes; machines of up to 64 CPUs need no allocation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum CpuSet {
    /// Every CPU of the machine.
    #[default]
    All,
    /// A set within the CPUs 0 to 63, one bit each.
    Few(u64),
    /// Any other set.
    Many(Box<[u64; MAX_CPUS / 64]>),
}

impl CpuSet {
    /// The set of these CPUs, in its smallest form.
    pub fn of(cpus: impl IntoIterator<Item = CpuId>) -> CpuSet {
        let mut words = [0u64; MAX_CPUS / 64];
        for cpu in cpus {
            words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
        }
        if words[1..].iter().all(|&word| word == 0) {
            CpuSet::Few(words[0])
        } else {
            CpuSet::Many(Box::new(words))
        }
    }

    /// Whether a task with this affinity may run on `cpu`.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        match self {
            CpuSet::All => true,
            CpuSet::Few(word) => cpu.index() < 64 && word >> cpu.index() & 1 != 0,
            CpuSet::Many(words) => words[cpu.index() / 64] >> (cpu.index() % 64) & 1 != 0,
        }
    }

    /// The CPUs of the set in ascending order; for the set of all CPUs, all 1024 that a machine may
    /// have.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0..MAX_CPUS / 64).flat_map(|index| bits(index, self.word(index)))
    }

    /// Whether this is the set of all CPUs.
    #[inline]
    pub fn is_all(&self) -> bool {
        matches!(self, CpuSet::All)
    }

    /// The CPUs `64 · index .. 64 · index + 64`, one bit each.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        match self {
            CpuSet::All => u64::MAX,
            CpuSet::Few(word) => u64::from(index == 0) * word,
            CpuSet::Many(words) => words[index],
        }
    }

    /// Reads the kernel's list format, `"0-3,8"`, or `"all"`.
    ///
    /// Errors: what is wrong, as text; CPUs from [`MAX_CPUS`] on are rejected.
    pub fn parse(text: &str) -> Result<CpuSet, &'static str> {
        if text.trim() == "all" {
            return Ok(CpuSet::All);
        }
        let number = |text: &str| match text.trim().parse::<u16>() {
            Ok(cpu) if usize::from(cpu) < MAX_CPUS => Ok(cpu),
            Ok(_) => Err("CPUs are numbered 0 to 1023"),
            Err(_) => Err("a CPU list looks like \"0-3,8\", or is \"all\""),
        };
        let mut set = CpuMask::EMPTY;
        for part in text.split(',') {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high) = (number(low)?, number(high)?);
            if low > high {
                return Err("a range of CPUs goes from the lower to the higher");
            }
            for cpu in low..=high {
                set.insert(CpuId(cpu));
            }
        }
        Ok(CpuSet::of(set.iter()))
    }
}

impl fmt::Display for CpuSet {
    /// The kernel's list format, which [`CpuSet::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_all() {
            return f.write_str("all");
        }
        let mut cpus = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|next| next.0 == last.0 + 1) {
                last = next;
            }
            write!(f, "{comma}{}", first.0)?;
            if last != first {
                write!(f, "-{}", last.0)?;
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn lists_read_back_as_written() {
        for text in ["all", "0", "0-3,8", "5,63-64,1023"] {
            assert_eq!(CpuSet::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn wrong_lists_say_why() {
        for (text, why) in [
            ("3-1", "a range of CPUs goes from the lower to the higher"),
            ("1024", "CPUs are numbered 0 to 1023"),
            ("", "a CPU list looks like \"0-3,8\", or is \"all\""),
        ] {
            assert_eq!(CpuSet::parse(text), Err(why));
        }
    }

    #[test]
    fn a_mask_counts_and_walks_upwards() {
        let mut mask = CpuMask::EMPTY;
        for cpu in [700, 3, 64, 3] {
            mask.insert(CpuId(cpu));
        }
        mask.remove(CpuId(9));
        assert_eq!(mask.len(), 3);
        assert_eq!(mask.iter().map(|cpu| cpu.0).collect::<Vec<_>>(), [3, 64, 700]);
        assert_eq!(mask.lowest_of(&CpuSet::parse("60-800").unwrap()), Some(CpuId(64)));
        assert_eq!(mask.lowest_of(&CpuSet::Few(0b111)), None);
        assert_eq!(mask.take_lowest(), Some(CpuId(3)));
    }
}
