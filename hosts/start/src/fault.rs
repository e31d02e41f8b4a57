//! A policy that goes wrong when it is told to, for tests of what becomes of the machine.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;

use anysched_core::call::Call;
use anysched_core::{CpuId, Cx, Pick, Scheduler, Span, scheduler_by_call};

/// How it goes wrong.
#[derive(Clone, Copy)]
enum Kind {
    /// Panics.
    Panic,
    /// Picks nothing.
    Idle,
    /// Does not return.
    Loop,
    /// Calls itself without end.
    Recursion,
    /// Picks tasks for no time at all.
    Contract,
    /// Allocates until there is no memory.
    Memory,
}

/// A policy that goes wrong from a pick on.
pub struct Faulty {
    policy: Box<dyn Scheduler>,
    kind: Kind,
    left: u64,
}

impl Faulty {
    /// Goes wrong as `kind` says, at pick `at`.
    ///
    /// Errors: there is no such kind.
    pub fn new(policy: Box<dyn Scheduler>, kind: &str, at: u64) -> Result<Faulty, String> {
        let kind = match kind {
            "panic" => Kind::Panic,
            "idle" => Kind::Idle,
            "loop" => Kind::Loop,
            "recursion" => Kind::Recursion,
            "contract" => Kind::Contract,
            "memory" => Kind::Memory,
            _ => {
                return Err(format!(
                    "there is no fault \"{kind}\", but panic, idle, loop, recursion, contract, \
                     memory"
                ));
            }
        };
        Ok(Faulty { policy, kind, left: at })
    }

    fn call(&mut self, cx: &mut Cx<'_>, call: Call<'_>) -> Option<Pick> {
        if let Call::PickNext { cpu } = call {
            match self.left.checked_sub(1) {
                Some(left) => self.left = left,
                None => return self.go_wrong(cx, cpu),
            }
        }
        call.make(&mut self.policy, cx)
    }

    fn go_wrong(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        match self.kind {
            Kind::Panic => panic!("asked to panic"),
            Kind::Idle => None,
            // With the hint for spinning, time of QEMU that counts instructions would all but
            // stand.
            Kind::Loop => loop {
                black_box(());
            },
            Kind::Recursion => {
                deeper(0);
                None
            }
            Kind::Contract => {
                let pick = self.policy.pick_next(cx, cpu)?;
                Some(Pick { slice: Span::ZERO, ..pick })
            }
            Kind::Memory => {
                let mut all: Vec<Vec<u8>> = Vec::new();
                loop {
                    all.push(Vec::with_capacity(1 << 16));
                }
            }
        }
    }
}

/// Uses more stack with each call.
fn deeper(depth: u64) -> u64 {
    let frame = black_box([depth; 8]);
    if black_box(true) { frame[7] + deeper(depth + 1) } else { depth }
}

scheduler_by_call!([] Faulty);
