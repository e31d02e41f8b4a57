//! A yield and the pick behind it in one call decide as the two calls do, for every policy.

use std::cell::Cell;

use anysched_core::call::Call;
use anysched_core::registry::PolicyInfo;
use anysched_core::{
    CpuId, CpuMask, Cx, Machine, Off, Pick, Scheduler, Span, TaskId, Work, scheduler_by_call,
};
use anysched_oracle::random::{Host, Load};
use anysched_oracle::rehearsal::{rehearsed, text};
use anysched_policies::POLICIES;

/// A policy by single calls, and beside it the same one to which yields are told with the pick that
/// follows.
struct Twins {
    policy: Box<dyn Scheduler>,
    other: Box<dyn Scheduler>,
    /// A yield that the other has not been told of.
    yielded: Option<(CpuId, TaskId, Span)>,
    /// What they have asked for since they were last compared.
    kicks: [CpuMask; 2],
    /// Yields told with a pick.
    compared: Cell<u64>,
}

impl Twins {
    fn call(&mut self, cx: &mut Cx<'_>, call: Call<'_>) -> Option<Pick> {
        let mut own = Cx::new(cx.now, &mut self.kicks[0]);
        let pick = call.make(&mut *self.policy, &mut own);
        cx.work = own.work;
        self.kicks[0].iter().for_each(|cpu| cx.kick(cpu));
        if let Call::PutPrev { cpu, task, ran, why: Off::Yielded } = call {
            self.yielded = Some((cpu, task, ran));
            return pick;
        }
        let (other_pick, work) = self.tell_other(cx, &call);
        assert_eq!((pick, cx.work), (other_pick, work), "{call}");
        assert_eq!(self.kicks[0], self.kicks[1], "{call}");
        self.kicks = [CpuMask::EMPTY, CpuMask::EMPTY];
        pick
    }

    fn tell_other(&mut self, cx: &Cx<'_>, call: &Call<'_>) -> (Option<Pick>, Work) {
        let mut other = Cx::new(cx.now, &mut self.kicks[1]);
        let pick = match (self.yielded.take(), call) {
            (Some((cpu, task, ran)), Call::PickNext { cpu: picks }) if cpu == *picks => {
                self.compared.set(self.compared.get() + 1);
                self.other.yield_and_pick(&mut other, cpu, task, ran).into()
            }
            (Some((cpu, task, ran)), _) => {
                self.other.put_prev(&mut other, cpu, task, ran, Off::Yielded);
                other.work = Work::default();
                call.make(&mut *self.other, &mut other)
            }
            (None, _) => call.make(&mut *self.other, &mut other),
        };
        (pick, other.work)
    }
}

scheduler_by_call!([] Twins);

/// Yields that were told with the pick behind them.
fn play(policy: &PolicyInfo, cpus: usize) -> u64 {
    let machine = Machine::flat(cpus).unwrap();
    let load = Load {
        tasks: 7,
        burst: Span::from_us(300),
        pause: Span::from_us(500),
        pinned: false,
        hotplug: true,
    };
    let settings = rehearsed(policy, &[], &machine, load, 1);
    let build = || (policy.build)(&machine, &text(&settings)).unwrap();
    let twins = Twins {
        policy: build(),
        other: build(),
        yielded: None,
        kicks: [CpuMask::EMPTY, CpuMask::EMPTY],
        compared: Cell::new(0),
    };
    let mut host = Host::new(twins, &machine, load, 1);
    // Under some policies few slices are long enough for a yield.
    while host.picks < 5_000 || host.policy.compared.get() <= 100 && host.picks < 50_000 {
        host.step();
    }
    host.drain();
    host.policy.compared.get()
}

#[test]
fn a_yield_with_its_pick_decides_as_the_two_calls() {
    for policy in POLICIES {
        for cpus in [1, 3] {
            let compared = play(policy, cpus);
            assert!(compared > 100, "{} on {cpus} CPUs: {compared} yields", policy.name);
        }
    }
}
