//! What the C side asks, and the answer.

use anysched_core::{CpuId, CpuSet, TaskId};

/// What is asked. The numbers are those of `enum op` in `glue.h`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Start,
    Attach,
    Detach,
    Update,
    Enqueue,
    Dequeue,
    Dispatch,
    Unasked,
    Refuse,
    Leave,
    Yield,
    Tick,
    Timer,
    Online,
    Weight,
    Cap,
    Disband,
    Join,
    Change,
    Status,
    State,
}

impl Op {
    const ALL: [Op; 21] = [
        Op::Start,
        Op::Attach,
        Op::Detach,
        Op::Update,
        Op::Enqueue,
        Op::Dequeue,
        Op::Dispatch,
        Op::Unasked,
        Op::Refuse,
        Op::Leave,
        Op::Yield,
        Op::Tick,
        Op::Timer,
        Op::Online,
        Op::Weight,
        Op::Cap,
        Op::Disband,
        Op::Join,
        Op::Change,
        Op::Status,
        Op::State,
    ];

    pub fn of(number: u32) -> Op {
        match Op::ALL.get(number as usize) {
            Some(op) => *op,
            None => panic!("there is no call {number}: module and policies differ"),
        }
    }
}

/// No task.
const NONE: u32 = u32::MAX;

/// A call. The layout is that of `struct call` in `glue.h`.
#[repr(C)]
pub struct Call {
    pub op: u32,
    pub flags: u32,
    /// The CPU that it is about.
    pub cpu: u32,
    /// The CPU that the task was picked for, if it is there.
    home: u32,
    /// The task that it is about; of a dispatch the answer.
    task: u32,
    /// The CPU of a waker, plus 1.
    from: u32,
    /// Nanoseconds.
    pub now: u64,
    /// CPU time in nanoseconds of the task, or of the task that the policy believes to run on the
    /// CPU.
    pub runtime: u64,
    /// Of a task its nice value + 20, 40 for `SCHED_IDLE`.
    pub niceness: u32,
    /// The length of `text`, in the answer too.
    pub text_len: u32,
    /// The CPUs that the task may run on, one bit each; null: all.
    affinity: *const u64,
    text: *mut u8,
    /// The cgroup, as the kernel calls it.
    pub group: u64,
    /// Its weight, of 100 without a setting, or its cap in percent of a CPU, 0 for none; of a
    /// change, room for `text` in bytes.
    pub amount: u64,
    /// In the answer: the slice in nanoseconds, `u64::MAX` without limit.
    pub slice: u64,
    /// In the answer: when the policy's timer is due, in nanoseconds; `u64::MAX` never. Of a start
    /// the period of the policy's tick, 0 if it has none.
    pub timer: u64,
}

impl Call {
    /// It was blocked; of a leaving task, it ends.
    pub const WAKEUP: u32 = 1;
    pub const SYNC: u32 = 2;
    /// It has ended.
    pub const DEAD: u32 = 8;
    /// The task that the policy believes to run has begun to run.
    pub const STARTED: u32 = 16;
    /// Its slice has ended.
    pub const EXPIRED: u32 = 32;
    /// Its CPU has been kicked.
    pub const KICKED: u32 = 64;
    /// What ran could go on.
    pub const RUNNABLE: u32 = 128;
    /// The CPU comes into use.
    pub const ONLINE: u32 = 256;
    /// In the answer: the policy still believes that the task runs at home.
    pub const RUNS: u32 = 512;

    /// The CPU that the task was picked for, if it is there.
    pub fn home(&self) -> Option<CpuId> {
        (self.home != NONE).then_some(CpuId(self.home as u16))
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    pub fn cpu(&self) -> CpuId {
        CpuId(self.cpu as u16)
    }

    pub fn task(&self) -> TaskId {
        TaskId(self.task)
    }

    /// The task, if there is one.
    pub fn prev(&self) -> Option<TaskId> {
        (self.task != NONE).then_some(TaskId(self.task))
    }

    pub fn answer(&mut self, task: Option<TaskId>) {
        self.task = task.map_or(NONE, |task| task.0);
    }

    pub fn from(&self) -> Option<CpuId> {
        Some(CpuId(self.from.checked_sub(1)? as u16))
    }

    /// The text that came with it.
    ///
    /// # Safety
    ///
    /// The C side gave a text.
    pub unsafe fn text(&self) -> &'static [u8] {
        // SAFETY: by the contract of this function; it stays for the time of the call.
        unsafe { core::slice::from_raw_parts(self.text, self.text_len as usize) }
    }

    /// Room for a text that is the answer.
    ///
    /// # Safety
    ///
    /// The C side gave room.
    pub unsafe fn room(&mut self) -> &'static mut [u8] {
        // SAFETY: by the contract of this function; it stays for the time of the call.
        unsafe { core::slice::from_raw_parts_mut(self.text, self.text_len as usize) }
    }

    /// The affinity of the task, on a machine of `cpus` CPUs.
    ///
    /// # Safety
    ///
    /// The C side gave null, or a mask of at least so many CPUs.
    pub unsafe fn affinity(&self, cpus: usize) -> CpuSet {
        if self.affinity.is_null() {
            return CpuSet::All;
        }
        // SAFETY: by the contract of this function.
        let words = unsafe { core::slice::from_raw_parts(self.affinity, cpus.div_ceil(64)) };
        anysched_linux_start::affinity(words, cpus)
    }
}
