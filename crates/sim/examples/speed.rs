use anysched_core::registry::build_rule;
use anysched_core::policy::fcfs::Fcfs;
use anysched_core::{Machine, Span, TaskId, Time};
use anysched_sim::{Setup, Sim};
use anysched_workload::{Load, NewTask, Op, Outside};

struct Periodic { tasks: Vec<(u64, u64, u64, bool)>, next: usize }
impl Load for Periodic {
    fn peek(&self) -> Time { if self.next < self.tasks.len() { Time(0) } else { Time::NEVER } }
    fn outside(&mut self) -> Outside { self.next += 1; Outside::Arrival(NewTask { period: Some(Span(1)), ..Default::default() }) }
    fn start(&mut self, _: TaskId, _: Time) {}
    fn step(&mut self, task: TaskId, _: Time) -> Op {
        let t = &mut self.tasks[task.index()];
        t.3 = !t.3;
        if t.3 { Op::Run(Span(t.1)) } else { t.2 += t.0; Op::Release { at: Time(t.2), deadline: Some(Time(t.2 + t.0)) } }
    }
}
struct Mm1 { n: u64, next: Time, seed: u64, mean: f64, rate: f64, ran: Vec<bool> }
impl Mm1 { fn draw(&mut self, mean: f64) -> u64 { self.seed ^= self.seed << 13; self.seed ^= self.seed >> 7; self.seed ^= self.seed << 17; let u = (self.seed >> 11) as f64 / (1u64 << 53) as f64; (-mean * libm::log(1.0 - u)) as u64 } }
impl Load for Mm1 {
    fn peek(&self) -> Time { self.next }
    fn outside(&mut self) -> Outside { self.n -= 1; let m = self.rate; self.next = if self.n > 0 { self.next + Span(self.draw(m)) } else { Time::NEVER }; Outside::Arrival(NewTask::default()) }
    fn start(&mut self, t: TaskId, _: Time) { if self.ran.len() <= t.index() { self.ran.resize(t.index() + 1, false); } self.ran[t.index()] = false; }
    fn step(&mut self, t: TaskId, _: Time) -> Op { if std::mem::replace(&mut self.ran[t.index()], true) { Op::Exit } else { let m = self.mean; Op::Run(Span(self.draw(m))) } }
}
fn main() {
    let only = std::env::args().nth(1);
    for _ in 0..3 {
    let machine = Machine::flat(4).unwrap();
    let n = 100;
    // U/m = 0.8: each task 3.2 % of a CPU; periods 1..=100 ms spread
    let tasks = (0..n).map(|i| { let p = 1_000_000 + i * 990_000; (p, p * 32 / 1000, 0, false) }).collect();
    let mut setup = Setup::new(machine.clone()); setup.until = Time(std::env::args().nth(2).map_or(300, |a| a.parse().unwrap()) * 1_000_000_000);
    let s = build_rule::<Fcfs>(&machine, &[]).unwrap();
    let t = std::time::Instant::now();
    let (m, ..) = Sim::new(setup, s, Periodic { tasks, next: 0 }).run().unwrap();
    let e = t.elapsed().as_secs_f64();
    println!("periodic: {} dispatches {} events {:.1} M dispatches/s {:.1} ns each", m.dispatches, m.events, m.dispatches as f64 / e / 1e6, e * 1e9 / m.dispatches as f64);
    if only.is_some() { continue }
    let machine = Machine::flat(1).unwrap();
    let s = build_rule::<Fcfs>(&machine, &[]).unwrap();
    let t = std::time::Instant::now();
    let (m, ..) = Sim::new(Setup::new(machine), s, Mm1 { n: 3_000_000, next: Time(0), seed: 88172645463325252, mean: 1e6, rate: 1.25e6, ran: vec![] }).run().unwrap();
    let e = t.elapsed().as_secs_f64();
    println!("mm1: {} events {:.1} ns each", m.events, e * 1e9 / m.events as f64);
    }
}
