//! What Xen has recorded, of all pCPUs in one order and in Xen's time.

use anysched_core::{CpuId, Time};
use anysched_wire::vcpus::{Event, IDLE, Reader, Record, Runstate, Vcpu};
use std::collections::{HashMap, VecDeque};

/// What a pCPU runs; `None`: nothing.
pub(super) type Next = Option<Vcpu>;

/// What Xen has recorded.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// When the first record was made.
    pub begin: Time,
    /// In time order.
    pub happened: Vec<Happened>,
    /// Names of domains.
    pub names: HashMap<u16, String>,
    /// The vCPUs that have come to policies, in order: the instance's number, its number of the
    /// vCPU, and the vCPU.
    pub attached: Vec<(u32, u32, Vcpu)>,
    /// What followed when a policy was asked what a pCPU runs next, by that and when it was, in its
    /// own time; in order, since that may stand still.
    pub followed: HashMap<(CpuId, Time), VecDeque<Followed>>,
}

/// What a pCPU did after a policy was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// It switched to this vCPU, or became idle.
    Switched(Next, Time),
    /// It went on with this vCPU, or remained idle.
    WentOn(Next),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Happened {
    pub time: Time,
    pub cpu: CpuId,
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A pCPU switches between vCPUs, to or from nothing. `asked`: when its policy was asked for
    /// it, by the policy's time.
    Switch { prev: Option<Left>, next: Next, asked: Option<Time> },
    /// A vCPU that does not run changes its state.
    Runstate { vcpu: Vcpu, from: Runstate, to: Runstate },
    /// A vCPU that woke is put before others, or no more.
    Boost { vcpu: Vcpu, on: bool },
}

/// A vCPU that has left its pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub vcpu: Vcpu,
    /// What it does now.
    pub to: Runstate,
    pub has_yielded: bool,
}

impl Recorded {
    /// Reads the stream of each pCPU.
    ///
    /// Errors: one cannot be read, or records are lost.
    pub fn read(streams: &[Vec<u8>]) -> Result<Recorded, String> {
        let mut recorded = Recorded { begin: Time::NEVER, ..Recorded::default() };
        let mut attached = Vec::new();
        for (cpu, stream) in streams.iter().enumerate() {
            let fault = |error| format!("what Xen has recorded of pCPU {cpu}: {error}");
            let records: Result<Vec<Record>, _> = match Reader::new(stream) {
                Ok(reader) => reader.collect(),
                Err(error) => Err(error),
            };
            let records = records.map_err(fault)?;
            check_whole(cpu, &records)?;
            let clock = Clock::of(&records);
            let mut pcpu = Pcpu::new(CpuId(cpu as u16));
            for record in records {
                let time = clock.at(record.ticks);
                if record.ticks > 0 {
                    recorded.begin = recorded.begin.min(time);
                }
                match record.event {
                    Event::Name { domain, name } => {
                        recorded.names.insert(domain, name);
                    }
                    Event::Attach { pool, task, vcpu } => attached.push((time, pool, task, vcpu)),
                    event => pcpu.take(time, &event, &mut recorded),
                }
            }
            pcpu.settle(&mut recorded);
        }
        recorded.happened.sort_by_key(|event| (event.time, event.cpu));
        attached.sort_by_key(|(time, ..)| *time);
        recorded.attached =
            attached.into_iter().map(|(_, pool, task, vcpu)| (pool, task, vcpu)).collect();
        Ok(recorded)
    }
}

/// Errors: some of a pCPU's records found no room.
fn check_whole(cpu: usize, records: &[Record]) -> Result<(), String> {
    let lost: Vec<u64> = records
        .iter()
        .filter_map(|record| match record.event {
            Event::Lost(lost) => Some(lost),
            _ => None,
        })
        .collect();
    if lost.is_empty() {
        return Ok(());
    }
    let count = match lost.contains(&0) {
        true => "some".to_string(),
        false => lost.iter().sum::<u64>().to_string(),
    };
    Err(format!(
        "the trace is not whole: {count} of Xen's records of pCPU {cpu} found no room in its \
         buffer, since dom0 did not come to read it; trace a shorter run, or fewer domains"
    ))
}

/// Xen's time, by a pCPU's counter.
#[derive(Debug, Default)]
struct Clock {
    /// Counter and time, both growing.
    known: Vec<(u64, u64)>,
}

impl Clock {
    fn of(records: &[Record]) -> Clock {
        let mut known: Vec<(u64, u64)> = records
            .iter()
            .filter_map(|record| match record.event {
                Event::Clock { ticks, now } => Some((ticks, now)),
                _ => None,
            })
            .collect();
        // Where clocks of pCPUs differ, the earlier is right until the later one passes it.
        known.sort_unstable();
        let mut last = None;
        known.retain(|&(ticks, now)| {
            let grows = last.is_none_or(|(before, then)| ticks > before && now > then);
            if grows {
                last = Some((ticks, now));
            }
            grows
        });
        Clock { known }
    }

    /// The time when the counter was there: between two times that are known as if it had been
    /// even, before and after as fast as on the whole.
    fn at(&self, ticks: u64) -> Time {
        let (Some(&first), Some(&last)) = (self.known.first(), self.known.last()) else {
            return Time(ticks);
        };
        let after = self.known.partition_point(|(known, _)| *known <= ticks);
        let (from, slope) = match (after.checked_sub(1), self.known.get(after)) {
            (Some(before), Some(&to)) => (self.known[before], (self.known[before], to)),
            (Some(before), None) => (self.known[before], (first, last)),
            (None, _) => (first, (first, last)),
        };
        let (begin, end) = slope;
        let [run, rise] = [end.0 - begin.0, end.1 - begin.1].map(i128::from);
        let away = i128::from(ticks) - i128::from(from.0);
        let passed = if run == 0 { away } else { away * rise / run };
        Time(u64::try_from(i128::from(from.1) + passed).unwrap_or(0))
    }
}

/// A pCPU, while its records are read.
struct Pcpu {
    cpu: CpuId,
    /// Who has left, as long as it is open who follows; records of one switch follow each other.
    left: Option<(Time, Left)>,
    has_yielded: bool,
    /// When the policy was asked last, by its time, as long as it is open what follows.
    asked: Option<Time>,
    /// What follows is not earlier: a policy's time does not go back, so that it may be ahead of a
    /// pCPU whose clock is behind.
    earliest: Time,
}

impl Pcpu {
    fn new(cpu: CpuId) -> Pcpu {
        let earliest = Time::ZERO;
        Pcpu { cpu, left: None, has_yielded: false, asked: None, earliest }
    }

    fn take(&mut self, time: Time, event: &Event, all: &mut Recorded) {
        let time = time.max(self.earliest);
        let to_running = matches!(event, Event::Runstate { to: Runstate::Running, .. });
        if !to_running {
            self.settle(all);
        }
        match *event {
            Event::Runstate { vcpu, to: Runstate::Running, .. } => {
                self.switch(time, Some(vcpu).filter(is_real), all);
            }
            Event::Runstate { vcpu, from: Runstate::Running, to } => {
                let has_yielded = std::mem::take(&mut self.has_yielded);
                if is_real(&vcpu) {
                    self.left = Some((time, Left { vcpu, to, has_yielded }));
                }
            }
            Event::Runstate { vcpu, from, to } if is_real(&vcpu) => {
                self.add(time, What::Runstate { vcpu, from, to }, all);
            }
            Event::Boost { vcpu, on } => self.add(time, What::Boost { vcpu, on }, all),
            Event::Yield(_) => self.has_yielded = true,
            Event::Asked { now, .. } => {
                self.asked = Some(Time(now));
                self.earliest = self.earliest.max(Time(now));
            }
            Event::Continue(vcpu) => {
                if let Some(asked) = self.asked.take() {
                    self.follow(asked, Followed::WentOn(Some(vcpu).filter(is_real)), all);
                }
                self.has_yielded = false;
            }
            _ => {}
        }
    }

    fn switch(&mut self, time: Time, next: Next, all: &mut Recorded) {
        let (time, left) = match self.left.take() {
            Some((time, left)) => (time, Some(left)),
            None => (time, None),
        };
        let asked = self.asked.take();
        if let Some(asked) = asked {
            self.follow(asked, Followed::Switched(next, time), all);
        }
        if left.is_some() || next.is_some() {
            self.add(time, What::Switch { prev: left, next, asked }, all);
        }
    }

    /// Who has left was followed by nobody.
    fn settle(&mut self, all: &mut Recorded) {
        if let Some((time, _)) = self.left {
            self.switch(time, None, all);
        }
    }

    fn follow(&self, asked: Time, followed: Followed, all: &mut Recorded) {
        all.followed.entry((self.cpu, asked)).or_default().push_back(followed);
    }

    fn add(&self, time: Time, what: What, all: &mut Recorded) {
        all.happened.push(Happened { time, cpu: self.cpu, what });
    }
}

/// Whether it is not what a pCPU runs while it has nothing to run.
fn is_real(vcpu: &Vcpu) -> bool {
    vcpu.domain != IDLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_wire::vcpus::Writer;

    const FIRST: Vcpu = Vcpu { domain: 1, number: 0 };
    const SECOND: Vcpu = Vcpu { domain: 2, number: 3 };
    const NOTHING: Vcpu = Vcpu { domain: IDLE, number: 0 };

    fn stream(records: &[(u64, Event)]) -> Vec<u8> {
        let mut writer = Writer::default();
        let mut bytes = Vec::new();
        for (ticks, event) in records.iter().cloned() {
            writer.add(&Record { ticks, event });
        }
        writer.take(|all| bytes.extend_from_slice(all));
        bytes
    }

    fn change(vcpu: Vcpu, from: Runstate, to: Runstate) -> Event {
        Event::Runstate { vcpu, from, to }
    }

    #[test]
    fn records_of_a_switch_are_one() {
        use Runstate::{Blocked, Runnable, Running};
        let bytes = stream(&[
            (0, Event::Clock { ticks: 100, now: 1_000 }),
            (100, Event::Clock { ticks: 200, now: 1_050 }),
            (110, change(NOTHING, Running, Runnable)),
            (112, change(FIRST, Runnable, Running)),
            (120, Event::Asked { pool: 1, now: 1_022 }),
            (140, change(FIRST, Running, Blocked)),
            (142, change(SECOND, Runnable, Running)),
            (150, Event::Yield(SECOND)),
            (152, Event::Asked { pool: 1, now: 1_024 }),
            (160, Event::Continue(SECOND)),
            (170, change(SECOND, Running, Runnable)),
            (172, change(NOTHING, Runnable, Running)),
            (180, change(SECOND, Runnable, Running)),
            (190, change(SECOND, Running, Runnable)),
        ]);
        let recorded = Recorded::read(&[bytes]).unwrap();
        let left = |vcpu, to| Some(Left { vcpu, to, has_yielded: false });
        let switch = |time, prev, next, asked: Option<u64>| Happened {
            time: Time(time),
            cpu: CpuId(0),
            what: What::Switch { prev, next, asked: asked.map(Time) },
        };
        let expected = [
            switch(1_006, None, Some(FIRST), None),
            // The pCPU's clock is behind that of the policy.
            switch(1_022, left(FIRST, Blocked), Some(SECOND), Some(1_022)),
            switch(1_035, left(SECOND, Runnable), None, None),
            switch(1_040, None, Some(SECOND), None),
            switch(1_045, left(SECOND, Runnable), None, None),
        ];
        assert_eq!(recorded.happened, expected);
        let followed = |now| recorded.followed[&(CpuId(0), Time(now))][0];
        assert_eq!(followed(1_022), Followed::Switched(Some(SECOND), Time(1_022)));
        assert_eq!(followed(1_024), Followed::WentOn(Some(SECOND)));
    }

    #[test]
    fn times_are_those_of_xen() {
        let clock = |known: &[(u64, u64)]| {
            let at = |&(ticks, now)| Record { ticks: 0, event: Event::Clock { ticks, now } };
            Clock::of(&known.iter().map(at).collect::<Vec<_>>())
        };
        // A clock that has gone back does not count.
        let two = clock(&[(3_000, 1_000), (1_000, 0), (3_500, 900), (5_000, 3_000)]);
        let at = |ticks| two.at(ticks).0;
        assert_eq!([at(1_000), at(2_000), at(3_000), at(4_000)], [0, 500, 1_000, 2_000]);
        assert_eq!((at(7_000), at(0)), (4_500, 0));
        assert_eq!(clock(&[(10, 100)]).at(15), Time(105));
        assert_eq!(clock(&[]).at(15), Time(15));
    }

    #[test]
    fn lost_records_are_an_error() {
        let error = |lost: &[u64]| {
            let records: Vec<_> = lost.iter().map(|lost| (0, Event::Lost(*lost))).collect();
            Recorded::read(&[Vec::new(), stream(&records)]).unwrap_err()
        };
        assert!(error(&[3, 4]).contains("7 of Xen's records of pCPU 1 found no room"));
        assert!(error(&[3, 0]).contains("some of Xen's records"));
    }
}
