// SPDX-License-Identifier: GPL-2.0
/* CPU scheduling policies written in Rust, as kfuncs for a sched_ext program (../bpf).
 *
 * One lock serialises all calls of the policy. It is taken with interrupts off, inside runqueue
 * locks, and nothing else is taken inside it but locks of timers.
 *
 * What only the kernel can know or do is here: which task a number is, the time, slices and ticks
 * by a timer on each CPU, kicks by interprocessor interrupts. Which state each task is in, and what
 * that makes of what sched_ext says, is the Rust side's (crate anysched-scx).
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/ext.h>
#include <linux/sched/rt.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>

#include "files.h"
#include "glue.h"

static ulong heap = 16UL << 20;
module_param(heap, ulong, 0444);
MODULE_PARM_DESC(heap, "memory for the policy in bytes (16 MiB: about 40,000 tasks)");
static uint max_tasks = 1 << 17;
module_param(max_tasks, uint, 0444);
MODULE_PARM_DESC(max_tasks, "the most tasks at a time (131072)");

u64 anysched_heap_size;
char *anysched_heap;

static DEFINE_RAW_SPINLOCK(lock);
/* There is a policy that decides; what is in its memory makes sense, even if it decides no more. */
static bool alive, intact;
/* Why there is none any more has not been said. */
static bool untold;
static u64 last, policy_due = U64_MAX, tick_period;
struct statistics anysched_statistics;

/* Tasks by number, and the way back: sched_ext forgets dsq_vtime (below) while a task is in another
 * class. Written under the lock. */
struct entry {
	struct task_struct *task;
	struct hlist_node node;
};
static struct entry *tasks;
static DECLARE_HASHTABLE(by_task, 12);
static struct hrtimer policy_timer;

/* What the policy has a CPU run, its place. Written under the lock. */
struct place {
	/* The task that the policy believes to run here. */
	struct task_struct *picked;
	bool started, expired, kicked;
	/* What runs has been made to give way for that. It is asked once: while sched_ext bypasses us
	 * it does not come to us for another task. */
	bool told;
	/* What becomes of a kick of this CPU by itself. */
	enum { AT_ONCE, AFTERWARDS, ANYWAY } picks;
	/* Its slice, and its CPU time when it was picked. */
	u64 slice, runtime;
	/* When the slice ends if nothing comes between; when the next tick is. */
	u64 slice_end, next_tick;
	/* For calls of the policy. */
	void *stack;
	/* When the timer fires. */
	u64 armed;
	struct hrtimer timer;
	call_single_data_t csd;
};
static DEFINE_PER_CPU(struct place, cpus);

/* What p->scx.dsq_vtime holds, which sched_ext leaves to schedulers that use no such queues:
 * bits 0-31 the task's number + 1, 32-47 the CPU that it was picked for last + 1, 48-62 its waker's
 * CPU + 1, 63 whether that will block at once. */
#define WAKER_SHIFT 48
#define HOME_SHIFT 32
#define SYNC_BIT (1ULL << 63)

static u32 number(struct task_struct *p) { return (u32)p->scx.dsq_vtime - 1; }
static u32 home(struct task_struct *p) { return (u16)(p->scx.dsq_vtime >> HOME_SHIFT) - 1; }
static void set_home(struct task_struct *p, u32 cpu)
{
	p->scx.dsq_vtime = (u32)p->scx.dsq_vtime | (u64)(cpu + 1) << HOME_SHIFT;
}

/* Whether the policy believes that p runs, or is about to. */
static bool is_picked(struct task_struct *p)
{
	return home(p) < nr_cpu_ids && READ_ONCE(per_cpu(cpus, home(p)).picked) == p;
}

/* Kernel threads that are bound to a CPU go before everything, without the policy. */
static bool is_bound(struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

static u64 clock(void) { return ktime_get_mono_fast_ns(); }

/* Has this CPU, whose interrupts are off, ask for another task. Without a slice sched_ext does not
 * go on with what runs. */
static void pick_here(void)
{
	struct task_struct *p = current;

	if (!rt_or_dl_prio(p->prio) && !is_bound(p)) {
		p->scx.slice = 0;
		this_cpu_write(cpus.told, true);
	}
	set_tsk_need_resched(p);
	set_preempt_need_resched();
}

static void kicked(void *unused) { pick_here(); }

/* Has this CPU's timer fire at once, and no later than it would. */
static void fire(struct place *here)
{
	if (here->armed) {
		here->armed = 0;
		hrtimer_start(&here->timer, 0, HRTIMER_MODE_ABS_PINNED_HARD);
	}
}

void anysched_kick(u32 cpu)
{
	struct place *at;

	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		return;
	at = per_cpu_ptr(&cpus, cpu);
	at->told = false;
	WRITE_ONCE(at->kicked, true);
	if (cpu != smp_processor_id())
		/* One that has been told and has not looked is not told again. */
		smp_call_function_single_async(cpu, &at->csd);
	else if (at->picks == AFTERWARDS)
		/* The scheduler is at work here, and forgets what it is told meanwhile. */
		fire(at);
	else if (at->picks == AT_ONCE)
		pick_here();
}

/* Makes a call. The lock is held. Returns false if there is no policy (any more). */
static bool make(struct call *c)
{
	u64 start, time;
	bool ok;

	if (!(c->op >= OP_STATUS ? intact : alive || c->op == OP_START))
		return false;
	/* Clocks of CPUs may differ by little; a policy's time never goes back. */
	last = c->now = max(last, clock());
	c->timer = U64_MAX;
	start = get_cycles();
	ok = !anysched_try(c, this_cpu_read(cpus.stack) + ANYSCHED_STACK - 16);
	time = get_cycles() - start;
	anysched_statistics.calls++;
	anysched_statistics.time += time;
	anysched_statistics.longest = max(anysched_statistics.longest, time);
	if (c->op == OP_START)
		alive = intact = ok;
	if (!ok) {
		alive = intact = false;
		untold = true;
		anysched_log_ends();
		/* The next dispatch says why. */
		pick_here();
		return false;
	}
	if (c->op != OP_START && c->timer != policy_due) {
		policy_due = c->timer;
		if (policy_due != U64_MAX)
			hrtimer_start(&policy_timer, ns_to_ktime(policy_due), HRTIMER_MODE_ABS_PINNED_HARD);
	}
	return true;
}

void anysched_too_much(unsigned long place)
{
	snprintf(anysched_message, sizeof(anysched_message),
		 "the policy does not return: %d blocks of code in one call, the last in %pS",
		 ANYSCHED_BLOCKS, (void *)place);
}

void anysched_too_deep(unsigned long place)
{
	snprintf(anysched_message, sizeof(anysched_message),
		 "the policy's calls are too deep for its stack, the last in %pS", (void *)place);
}

static bool run(struct call *c)
{
	unsigned long flags;
	bool ok;

	raw_spin_lock_irqsave(&lock, flags);
	ok = make(c);
	raw_spin_unlock_irqrestore(&lock, flags);
	return ok;
}

/* What is known of the task that the policy believes to run on a CPU. The lock is held. */
static u32 facts(const struct place *at)
{
	return (at->started ? CALL_STARTED : 0) | (at->expired ? CALL_EXPIRED : 0) |
	       (at->kicked ? CALL_KICKED : 0);
}

/* The CPU time of a task that runs on this CPU, up to now. The kernel itself counts at ticks, and when
 * it picks. Where it leaves interrupts out of the count, what is told too much here is told less the
 * next time. */
static u64 runtime_now(struct task_struct *p)
{
	s64 since = local_clock() - p->se.exec_start;

	return p->se.sum_exec_runtime + max(since, 0LL);
}

/* Makes a call about a task. */
static bool ask(struct call *c, struct task_struct *p)
{
	struct place *at, *here;
	unsigned long flags;
	bool ok;

	c->task = number(p);
	c->runtime = p == current && c->op == OP_LEAVE ? runtime_now(p) : p->se.sum_exec_runtime;
	raw_spin_lock_irqsave(&lock, flags);
	at = is_picked(p) ? per_cpu_ptr(&cpus, home(p)) : NULL;
	c->home = at ? home(p) : NO_CPU;
	c->flags |= at ? facts(at) : 0;
	here = this_cpu_ptr(&cpus);
	if (p == current)
		here->picks = c->op == OP_ENQUEUE ? AFTERWARDS : c->op == OP_LEAVE ? ANYWAY : AT_ONCE;
	ok = make(c);
	here->picks = AT_ONCE;
	if (at && !(c->flags & CALL_RUNS))
		WRITE_ONCE(at->picked, NULL);
	raw_spin_unlock_irqrestore(&lock, flags);
	return ok;
}

static s32 tell(u32 op, struct task_struct *p, u32 flags)
{
	struct call c = { .op = op, .flags = flags };

	return number(p) == NO_TASK || ask(&c, p) ? 0 : -1;
}

static enum hrtimer_restart policy_timer_fires(struct hrtimer *t)
{
	struct call c = { .op = OP_TIMER, .home = NO_CPU };
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	policy_due = U64_MAX;
	make(&c);
	raw_spin_unlock_irqrestore(&lock, flags);
	return HRTIMER_NORESTART;
}

/* Sets this CPU's timer to what is due next. One that is set to an earlier time stays: most slices
 * do not last. */
static void arm(struct place *here)
{
	u64 due = min(here->slice_end, here->next_tick);

	if (due < here->armed) {
		here->armed = due;
		hrtimer_start(&here->timer, ns_to_ktime(due), HRTIMER_MODE_ABS_PINNED_HARD);
	}
}

static enum hrtimer_restart cpu_timer_fires(struct hrtimer *t)
{
	struct place *here = container_of(t, struct place, timer);
	struct task_struct *p;
	unsigned long flags;
	u64 now;

	raw_spin_lock_irqsave(&lock, flags);
	here->armed = U64_MAX;
	p = here->picked;
	if (here->kicked && !here->told) {
		pick_here();
	} else if (alive && p && p == current && here->started) {
		now = clock();
		if (now >= here->next_tick) {
			struct call c = { .op = OP_TICK, .home = smp_processor_id(), .task = number(p),
					  .runtime = runtime_now(p), .flags = CALL_STARTED };

			here->next_tick = roundup(now + 1, tick_period);
			make(&c);
		}
		if (here->expired || now >= here->slice_end) {
			here->expired = true;
			here->slice_end = here->next_tick = U64_MAX;
			if (!here->told)
				pick_here();
		} else {
			arm(here);
		}
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return HRTIMER_NORESTART;
}

static void describe(struct call *c, struct task_struct *p)
{
	bool all = cpumask_subset(cpu_possible_mask, p->cpus_ptr);

	c->affinity = all ? NULL : cpumask_bits(p->cpus_ptr);
	c->niceness = p->policy == SCHED_IDLE ? 40 : p->static_prio - MAX_RT_PRIO;
}

/* p is new to the policy. */
static s32 attach(struct task_struct *p, u64 group)
{
	struct call c = { .op = OP_ATTACH, .home = NO_CPU, .group = group };
	unsigned long flags;
	s32 err = -1;

	describe(&c, p);
	raw_spin_lock_irqsave(&lock, flags);
	if (!make(&c))
		goto out;
	if (c.task >= max_tasks) {
		strscpy(anysched_message, "there are too many tasks; load the module with a larger max_tasks=N");
		alive = false;
		untold = true;
		goto out;
	}
	err = 0;
	tasks[c.task].task = p;
	hash_add(by_task, &tasks[c.task].node, (unsigned long)p);
	p->scx.dsq_vtime = c.task + 1;
out:
	raw_spin_unlock_irqrestore(&lock, flags);
	return err;
}

__bpf_kfunc_start_defs();

/* All return less than 0 when there is no policy (any more): the program then ends the scheduler. */

__bpf_kfunc s32 anysched_start(void)
{
	struct call c = { .op = OP_START, .cpu = nr_cpu_ids };
	unsigned long flags;
	bool ok;
	int cpu;

	if (anysched_files_prepare(&c))
		return -EINVAL;
	raw_spin_lock_irqsave(&lock, flags);
	policy_due = U64_MAX;
	memset(&anysched_statistics, 0, sizeof(anysched_statistics));
	hash_init(by_task);
	memset(tasks, 0, array_size(max_tasks, sizeof(*tasks)));
	for_each_possible_cpu(cpu) {
		struct place *at = per_cpu_ptr(&cpus, cpu);

		at->picked = NULL;
		at->started = at->expired = at->kicked = at->told = false;
		at->slice_end = at->next_tick = U64_MAX;
	}
	ok = make(&c);
	tick_period = ok ? c.timer : 0;
	for_each_possible_cpu(cpu) {
		struct call off = { .op = OP_ONLINE, .cpu = cpu, .home = cpu };

		if (ok && !cpu_online(cpu))
			ok = make(&off);
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return ok ? 0 : -EINVAL;
}

/* The entry of p, if it has one. The lock is held. */
static struct entry *entry(struct task_struct *p)
{
	struct entry *e;

	hash_for_each_possible(by_task, e, node, (unsigned long)p)
		if (e->task == p)
			return e;
	return NULL;
}

/* Finds p's number again. */
static void remember(struct task_struct *p)
{
	unsigned long flags;
	struct entry *e;

	raw_spin_lock_irqsave(&lock, flags);
	e = entry(p);
	if (e && number(p) == NO_TASK)
		p->scx.dsq_vtime = e - tasks + 1;
	raw_spin_unlock_irqrestore(&lock, flags);
}

__bpf_kfunc s32 anysched_update(struct task_struct *p)
{
	struct call c = { .op = OP_UPDATE };

	if (number(p) == NO_TASK)
		return 0;	/* in another class; told of when it comes back */
	describe(&c, p);
	return ask(&c, p) ? 0 : -1;
}

/* p comes, or comes back, from another class. */
__bpf_kfunc s32 anysched_enable(struct task_struct *p, u64 group)
{
	remember(p);
	return number(p) == NO_TASK ? attach(p, group) : anysched_update(p);
}

__bpf_kfunc s32 anysched_detach(struct task_struct *p)
{
	unsigned long flags;
	struct entry *e;
	s32 err;

	remember(p);
	err = tell(OP_DETACH, p, 0);
	raw_spin_lock_irqsave(&lock, flags);
	e = entry(p);
	if (e) {
		hash_del(&e->node);
		e->task = NULL;
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	p->scx.dsq_vtime = 0;
	return err;
}

/* Notes who wakes or creates p. */
__bpf_kfunc s32 anysched_select(struct task_struct *p, u64 wake_flags)
{
	u64 waker = in_task() ? raw_smp_processor_id() + 1 : 0;

	/* SCX_WAKE_SYNC is the scheduler's WF_SYNC. */
	p->scx.dsq_vtime = (p->scx.dsq_vtime & ((1ULL << WAKER_SHIFT) - 1)) | waker << WAKER_SHIFT |
			   (wake_flags & 0x10 ? SYNC_BIT : 0);
	return 0;
}

/* 0: it waits in the policy. 1: the program shall insert it into its CPU's local queue, before what
 * runs; 2: at its head, with the slice that it has. */
__bpf_kfunc s32 anysched_enqueue(struct task_struct *p, u64 flags)
{
	struct call c = { .op = OP_ENQUEUE };
	u64 note = p->scx.dsq_vtime >> WAKER_SHIFT;

	if (number(p) == NO_TASK || is_bound(p) || !READ_ONCE(alive))
		return READ_ONCE(untold) ? -1 : 1;
	c.from = note & 0x7fff;
	c.flags = (flags & 1 ? CALL_WAKEUP : 0) | (note >> 15 ? CALL_SYNC : 0);
	p->scx.dsq_vtime &= (1ULL << WAKER_SHIFT) - 1;
	if (!ask(&c, p))
		return -1;
	if (!c.slice)
		return 0;
	/* Without a slice it was to make room, for a bound task perhaps that waits in the local queue and
	 * of which the policy does not know. With one it would be kept. */
	if (p->scx.slice)
		p->scx.slice = SCX_SLICE_INF;
	return 2;
}

/* p is taken out for a moment. */
__bpf_kfunc s32 anysched_dequeue(struct task_struct *p)
{
	return tell(OP_DEQUEUE, p, 0);
}

/* A policy may believe otherwise: it does not know of disabled migration. */
static bool may_run(struct task_struct *p, s32 cpu)
{
	return cpumask_test_cpu(cpu, p->cpus_ptr) && (!p->migration_disabled || task_cpu(p) == cpu);
}

static struct task_struct *dispatch(s32 cpu, struct task_struct *prev)
{
	struct call c = { .op = OP_DISPATCH, .cpu = cpu, .home = cpu,
			  .task = prev ? number(prev) : NO_TASK };
	struct place *here = per_cpu_ptr(&cpus, cpu);
	struct task_struct *p = NULL;
	unsigned long flags;
	u64 due;

	raw_spin_lock_irqsave(&lock, flags);
	if (here->picked) {
		c.runtime = here->picked->se.sum_exec_runtime;
		c.flags = facts(here);
	}
	/* Bit 0 is SCX_TASK_QUEUED: it has not gone to sleep. */
	if (prev && prev->on_rq && (prev->scx.flags & 1))
		c.flags |= CALL_RUNNABLE;
	here->kicked = here->expired = here->told = false;
	here->picks = AFTERWARDS;
	if (!make(&c))
		goto out;
	here->picked = NULL;
	here->slice_end = here->next_tick = U64_MAX;
	if (c.task == NO_TASK)
		goto out;
	p = tasks[c.task].task;
	here->picked = p;
	here->started = p == prev;
	here->slice = c.slice;
	here->runtime = p->se.sum_exec_runtime;
	due = c.now + c.slice;
	here->slice_end = due < c.now ? U64_MAX : due;
	if (tick_period)
		here->next_tick = roundup(c.now + 1, tick_period);
	arm(here);
	set_home(p, cpu);
	p->scx.slice = SCX_SLICE_INF;
	if (p == prev) {
		p = NULL;	/* with a slice it is kept */
	} else if (!may_run(p, cpu)) {
		c.op = OP_REFUSE;
		make(&c);
		here->picked = NULL;
		p->scx.slice = SCX_SLICE_DFL;
	}
out:
	here->picks = AT_ONCE;
	raw_spin_unlock_irqrestore(&lock, flags);
	return p;
}

/* The task that the program shall insert into its local queue; if its slice is finite, into that of
 * the CPU where it is. Two functions, because the verifier lets no task be NULL that a program passes on. */
__bpf_kfunc struct task_struct *anysched_dispatch(s32 cpu)
{
	return dispatch(cpu, NULL);
}

__bpf_kfunc struct task_struct *anysched_dispatch_after(s32 cpu, struct task_struct *prev)
{
	return dispatch(cpu, prev);
}

/* Whether p may still be inserted into cpu's local queue, for which it was picked if `picked`. It may
 * have been taken out and put back since the policy was asked, with other CPUs than it had. What comes
 * after the insertion sched_ext notices by itself; what came before makes sched_ext end the scheduler. */
__bpf_kfunc bool anysched_stands(struct task_struct *p, s32 cpu, bool picked)
{
	struct place *here = this_cpu_ptr(&cpus);

	/* sched_ext has just read how often p was put back. */
	smp_rmb();
	if (may_run(p, cpu) && (picked ? READ_ONCE(here->picked) == p : task_cpu(p) == cpu))
		return true;
	/* There may be others that wait. */
	WRITE_ONCE(here->kicked, true);
	here->told = false;
	fire(here);
	return false;
}

/* p begins to run, or goes on after something above the policy has taken its CPU. */
__bpf_kfunc s32 anysched_running(struct task_struct *p)
{
	struct place *here = this_cpu_ptr(&cpus);
	struct call c = { .op = OP_UNASKED, .cpu = raw_smp_processor_id() };
	u64 used, end;
	s32 err = 0;

	if (here->picked != p) {
		if (number(p) == NO_TASK || (is_bound(p) && !is_picked(p)))
			return 0;
		if (p->scx.slice == SCX_SLICE_INF)
			p->scx.slice = SCX_SLICE_DFL;
		err = ask(&c, p) ? 0 : -1;
	} else if (!here->started) {
		here->started = true;
	} else if (here->slice_end != U64_MAX) {
		/* It was interrupted for a while. */
		used = p->se.sum_exec_runtime - here->runtime;
		end = clock() + (here->slice > used ? here->slice - used : 0);
		here->slice_end = max(end, here->slice_end);
		arm(here);
	}
	/* A kick may have found another task than the one that it was meant for. */
	if ((READ_ONCE(here->kicked) || here->expired) && !here->told)
		fire(here);
	return err;
}

/* p has stopped being runnable; it sleeps or has ended. */
__bpf_kfunc s32 anysched_quiescent(struct task_struct *p)
{
	if (is_bound(p) && !is_picked(p))
		return 0;
	return tell(OP_LEAVE, p, READ_ONCE(p->__state) == TASK_DEAD ? CALL_DEAD : 0);
}

__bpf_kfunc s32 anysched_tick(struct task_struct *p)
{
	struct place *here = this_cpu_ptr(&cpus);

	/* Policies with a tick of their own get that, by the CPU's timer. */
	if (tick_period || here->picked != p)
		return 0;
	return tell(OP_TICK, p, 0);
}

__bpf_kfunc s32 anysched_yield(struct task_struct *p)
{
	p->scx.slice = 0;
	return tell(OP_YIELD, p, 0);
}

__bpf_kfunc s32 anysched_online(s32 cpu, bool online)
{
	struct call c = { .op = OP_ONLINE, .cpu = cpu, .home = cpu,
			  .flags = online ? CALL_ONLINE : 0 };
	struct place *at = per_cpu_ptr(&cpus, cpu);
	unsigned long flags;
	bool ok;

	raw_spin_lock_irqsave(&lock, flags);
	if (at->picked) {
		c.runtime = at->picked->se.sum_exec_runtime;
		c.flags |= facts(at);
	}
	ok = make(&c);
	at->picked = NULL;
	raw_spin_unlock_irqrestore(&lock, flags);
	return ok ? 0 : -1;
}

/* A cgroup has this weight, or this much CPU time in each period, all in microseconds. One that is not
 * known has come. */
__bpf_kfunc s32 anysched_weight(u64 group, u32 weight)
{
	struct call c = { .op = OP_WEIGHT, .home = NO_CPU, .group = group, .amount = weight };

	return run(&c) ? 0 : -1;
}

__bpf_kfunc s32 anysched_bandwidth(u64 group, u64 period, u64 quota)
{
	struct call c = { .op = OP_CAP, .home = NO_CPU, .group = group };

	/* Without a limit the kernel has all ones here. */
	if (period && quota < U64_MAX / 1000)
		c.amount = max(quota * 100 / period, 1ULL);
	return run(&c) ? 0 : -1;
}

__bpf_kfunc s32 anysched_disband(u64 group)
{
	struct call c = { .op = OP_DISBAND, .home = NO_CPU, .group = group };

	return run(&c) ? 0 : -1;
}

__bpf_kfunc s32 anysched_join(struct task_struct *p, u64 group)
{
	struct call c = { .op = OP_JOIN, .home = NO_CPU, .group = group };
	unsigned long flags;
	struct entry *e;

	/* In another class, its number is not where it usually is. */
	raw_spin_lock_irqsave(&lock, flags);
	e = entry(p);
	c.task = e ? e - tasks : NO_TASK;
	raw_spin_unlock_irqrestore(&lock, flags);
	return c.task == NO_TASK || run(&c) ? 0 : -1;
}

/* Why the policy has died, once. Returns 0 if it has not, or that was said. */
__bpf_kfunc s32 anysched_why(char *text, u32 text__sz)
{
	unsigned long flags;
	s32 said = 0;

	if (!READ_ONCE(untold))
		return 0;
	raw_spin_lock_irqsave(&lock, flags);
	if (untold) {
		untold = false;
		said = 1;
		strscpy(text, anysched_message, text__sz);
		anysched_files_died(anysched_message);
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return said;
}

/* sched_ext has ended the scheduler. The arguments are strings of the kernel's: why, or 0 if it was
 * asked to, and what it has dumped of all CPUs and tasks, or 0. */
__bpf_kfunc s32 anysched_ended(u64 why, u64 dump)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	alive = untold = false;
	anysched_log_ends();
	if (why)
		anysched_files_died((const char *)why);
	raw_spin_unlock_irqrestore(&lock, flags);
	if (why && dump)
		anysched_files_dump((const char *)dump);
	return 0;
}

/* For dumps: the state of p (status.rs), or -1. */
__bpf_kfunc s64 anysched_state(struct task_struct *p)
{
	struct call c = { .op = OP_STATE, .home = NO_CPU, .task = number(p) };

	return number(p) != NO_TASK && run(&c) ? c.slice : -1;
}

/* For dumps: the number of the task that the policy believes to run on cpu, or -1, and from bit 32
 * on whether it has started, its slice has ended, the CPU was kicked, and what ran told. */
__bpf_kfunc s64 anysched_place(s32 cpu)
{
	struct place *at = cpu < nr_cpu_ids ? per_cpu_ptr(&cpus, cpu) : NULL;
	struct task_struct *p = at ? READ_ONCE(at->picked) : NULL;
	u64 what;

	if (!at)
		return -1;
	what = at->started | at->expired << 1 | at->kicked << 2 | at->told << 3;
	return what << 32 | (p ? number(p) : NO_TASK);
}

__bpf_kfunc_end_defs();

BTF_KFUNCS_START(ids)
BTF_ID_FLAGS(func, anysched_start)
BTF_ID_FLAGS(func, anysched_detach)
BTF_ID_FLAGS(func, anysched_enable)
BTF_ID_FLAGS(func, anysched_update)
BTF_ID_FLAGS(func, anysched_select)
BTF_ID_FLAGS(func, anysched_enqueue)
BTF_ID_FLAGS(func, anysched_dequeue)
BTF_ID_FLAGS(func, anysched_dispatch, KF_RET_NULL | KF_RCU_PROTECTED)
BTF_ID_FLAGS(func, anysched_dispatch_after, KF_RET_NULL | KF_RCU_PROTECTED)
BTF_ID_FLAGS(func, anysched_stands, KF_RCU)
BTF_ID_FLAGS(func, anysched_running)
BTF_ID_FLAGS(func, anysched_quiescent)
BTF_ID_FLAGS(func, anysched_tick)
BTF_ID_FLAGS(func, anysched_yield)
BTF_ID_FLAGS(func, anysched_online)
BTF_ID_FLAGS(func, anysched_weight)
BTF_ID_FLAGS(func, anysched_bandwidth)
BTF_ID_FLAGS(func, anysched_disband)
BTF_ID_FLAGS(func, anysched_join)
BTF_ID_FLAGS(func, anysched_why)
BTF_ID_FLAGS(func, anysched_ended)
BTF_ID_FLAGS(func, anysched_state)
BTF_ID_FLAGS(func, anysched_place)
BTF_KFUNCS_END(ids)
static const struct btf_kfunc_id_set kfuncs = { .owner = THIS_MODULE, .set = &ids };

/* A part of the policy's status: Rust writes it into text, of which there are *length bytes, and
 * leaves its length there. False: there are no more parts. */
bool anysched_status(u32 part, char *text, u32 *length)
{
	struct call c = { .op = OP_STATUS, .cpu = part, .text = text, .text_len = *length };
	unsigned long flags;
	bool ok;

	raw_spin_lock_irqsave(&lock, flags);
	ok = make(&c) && c.slice;
	raw_spin_unlock_irqrestore(&lock, flags);
	*length = ok ? c.text_len : 0;
	return ok;
}

bool anysched_change(char *text, u32 *length, u32 room)
{
	struct call c = { .op = OP_CHANGE, .home = NO_CPU, .text = text, .text_len = *length, .amount = room };
	bool ok = run(&c);

	*length = ok ? c.text_len : 0;
	return ok;
}

bool anysched_running_on(u32 cpu, struct running *r)
{
	struct task_struct *p;
	unsigned long flags;

	/* A task leaves its place under the lock before it ends. */
	raw_spin_lock_irqsave(&lock, flags);
	p = alive ? per_cpu(cpus, cpu).picked : NULL;
	if (p) {
		r->task = number(p);
		r->pid = task_pid_nr(p);
		strscpy(r->name, p->comm);
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return p;
}

static void free_memory(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		vfree(per_cpu(cpus, cpu).stack);
	vfree(tasks);
	vfree(anysched_heap);
}

static int __init anysched_load(void)
{
	int cpu, err = -ENOMEM;

	anysched_heap_size = heap & PAGE_MASK;
	if (anysched_heap_size < PAGE_SIZE || !max_tasks)
		return -EINVAL;
	anysched_heap = vzalloc(anysched_heap_size);
	tasks = vzalloc(array_size(max_tasks, sizeof(*tasks)));
	if (!anysched_heap || !tasks)
		goto free;
	hrtimer_setup(&policy_timer, policy_timer_fires, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	for_each_possible_cpu(cpu) {
		struct place *at = per_cpu_ptr(&cpus, cpu);

		at->stack = vmalloc_node(ANYSCHED_STACK, cpu_to_node(cpu));
		if (!at->stack)
			goto free;
		at->armed = U64_MAX;
		INIT_CSD(&at->csd, kicked, NULL);
		hrtimer_setup(&at->timer, cpu_timer_fires, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	}
	err = anysched_files_make();
	if (err)
		goto free;
	err = register_btf_kfunc_id_set(BPF_PROG_TYPE_STRUCT_OPS, &kfuncs);
	if (!err)
		return 0;
	anysched_files_remove();
free:
	free_memory();
	return err;
}

static void __exit anysched_unload(void)
{
	int cpu;

	anysched_files_remove();
	hrtimer_cancel(&policy_timer);
	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu_ptr(&cpus, cpu)->timer);
	free_memory();
}

module_init(anysched_load);
module_exit(anysched_unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("CPU scheduling policies of anysched for sched_ext");
