//! A machine's CPUs in QEMU's words.

use crate::BootError;
use anysched_core::machine::Level;
use anysched_core::{CpuId, Machine};

/// QEMU's words for the CPUs of a machine, and for so much memory if it is in several nodes.
///
/// Errors: packages, caches, cores or nodes are of different sizes, or QEMU has no numbers for all
/// CPUs.
pub fn cpus(machine: &Machine, memory: u64) -> Result<Vec<String>, BootError> {
    let uneven = || BootError::Missing {
        what: "QEMU has no machine whose packages or cores are of different sizes".into(),
        remedy: "take a regular one, such as \"2 packages x 4 cores x 2 threads\"".into(),
    };
    let each = |level| {
        let groups = machine.groups(level);
        let size = machine.cpus() / groups;
        let members = |group| machine.members(level, group as u16);
        // CPUs of a group have to follow each other.
        let is_even = |group: usize| {
            let expected = (group * size..(group + 1) * size).map(|cpu| CpuId(cpu as u16));
            members(group).iter().copied().eq(expected)
        };
        (0..groups).all(is_even).then_some(size).ok_or_else(uneven)
    };
    let (threads, package, node) = (each(Level::Core)?, each(Level::Package)?, each(Level::Node)?);
    let (all, sockets) = (machine.cpus(), machine.groups(Level::Package));
    if machine.groups(Level::Llc) != sockets {
        return Err(BootError::Missing {
            what: "QEMU has no machine whose packages have several last-level caches".into(),
            remedy: "take packages instead of llcs, such as \"2 packages x 4 cores\"".into(),
        });
    }
    let cores = package / threads;
    require_numbers(sockets, cores, threads)?;
    let mut words = vec![
        "-smp".to_string(),
        format!("{all},sockets={sockets},cores={cores},threads={threads}"),
    ];
    if node < all {
        let nodes = all / node;
        let mib = (memory >> 20) as usize;
        for number in 0..nodes {
            // All of it has to be in a node.
            let size = mib / nodes + if number == 0 { mib % nodes } else { 0 };
            let (first, last) = (number * node, (number + 1) * node - 1);
            words.extend([
                "-object".to_string(),
                format!("memory-backend-ram,id=memory{number},size={size}M"),
                "-numa".to_string(),
                format!("node,nodeid={number},cpus={first}-{last},memdev=memory{number}"),
            ]);
        }
    }
    Ok(words)
}

/// The highest number that a CPU of QEMU's can have: that of an xAPIC, in 8 bits, of which 255
/// means all. Where QEMU interprets instructions itself, it has x2APIC from 9.0 on only.
const HIGHEST: usize = 254;

/// Errors: a CPU's number is too high. It has a field of whole bits for each level (Intel SDM,
/// volume 3, chapter "Multiple-Processor Management", "Hierarchical Mapping of Shared Resources").
fn require_numbers(sockets: usize, cores: usize, threads: usize) -> Result<(), BootError> {
    let room = |count: usize| count.next_power_of_two();
    let last = ((sockets - 1) * room(cores) + cores - 1) * room(threads) + threads - 1;
    if last <= HIGHEST {
        return Ok(());
    }
    Err(BootError::Missing {
        what: format!(
            "QEMU would give the last of {} CPUs the number {last}, and {HIGHEST} is the highest: \
             each level takes the next power of two",
            sockets * cores * threads
        ),
        remedy: "take at most 255 CPUs, as powers of two on each level but the first, such as \"7 \
                 packages x 16 cores x 2 threads\""
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(machine: &str) -> Result<String, BootError> {
        cpus(&Machine::parse(machine).unwrap(), 1 << 30).map(|words| words.join(" "))
    }

    #[test]
    fn machines_in_qemus_words() {
        assert_eq!(words("4 cpus").unwrap(), "-smp 4,sockets=1,cores=4,threads=1");
        let words = words("2 nodes x 1 package x 2 cores x 2 threads").unwrap();
        assert_eq!(
            words,
            "-smp 8,sockets=2,cores=2,threads=2 \
             -object memory-backend-ram,id=memory0,size=512M \
             -numa node,nodeid=0,cpus=0-3,memdev=memory0 \
             -object memory-backend-ram,id=memory1,size=512M \
             -numa node,nodeid=1,cpus=4-7,memdev=memory1"
        );
    }

    #[test]
    fn machines_that_qemu_does_not_have() {
        let cpu = |core| anysched_core::machine::Cpu {
            core,
            llc: 0,
            package: 0,
            node: 0,
            capacity: 1024,
        };
        let machine = Machine::new([0, 0, 1].map(cpu).to_vec()).unwrap();
        let error = cpus(&machine, 1 << 30).unwrap_err().to_string();
        assert!(error.starts_with("QEMU has no machine whose"), "{error}");
        for (machine, last) in [("256 cpus", 255), ("5 packages x 20 cores x 2 threads", 295)] {
            let error = words(machine).unwrap_err().to_string();
            assert!(
                error.contains(&format!("the number {last}, and 254 is the highest")),
                "{error}"
            );
        }
        for machine in ["255 cpus", "2 packages x 24 cores x 2 threads", "7 packages x 32 cores"] {
            words(machine).unwrap();
        }
        let error = words("2 llcs x 2 cores").unwrap_err().to_string();
        assert!(error.contains("several last-level caches"), "{error}");
    }
}
