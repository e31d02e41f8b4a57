// SPDX-License-Identifier: GPL-2.0
/* Tells an agent in user space (../agent) what sched_ext says, and does what that answers.
 *
 * Ready tasks wait in the queue HOLD. A CPU that wants a task asks, and gets none before the agent has
 * answered. What the policy has given a CPU, its place, waits in HOLD, too, while something above
 * the policy has the CPU, the agent for one: so that the agent can put another task in its place.
 *
 * A task has a sequence number that changes with each event that makes answers about it stale. */
#include "scx.h"
#include "agent.h"

char _license[] SEC("license") = "GPL";

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_QUEUE = 22, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0, BPF_RB_CONS_POS = 2 };
enum { BPF_F_TIMER_ABS = 1, CLOCK_MONOTONIC = 1 };

#define HOLD 0x100
#define NEVER (~0ULL)
#define MS 1000000ULL
/* How long a task runs that the policy has not picked. */
#define UNASKED_SLICE (5 * MS)
/* How often it is seen to that the agent answers; when an idle CPU helps itself; when that is the end. */
#define WATCH (25 * MS)
#define LATE (20 * MS)
#define DEAD (300 * MS)
/* So often it has to be seen: a machine that stands still as a whole, as emulated ones may, is no fault
 * of the agent's. */
#define MISSES 10

#define PF_KTHREAD 0x00200000
#define TASK_DEAD 0x80
#define SCHED_IDLE 5
#define MAX_RT_PRIO 100
#define SCX_WAKE_SYNC 0x10
#define SCX_KICK_IDLE 1
#define SCX_KICK_PREEMPT 2

struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));
struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));

struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;
void bpf_preempt_disable(void) __ksym;
void bpf_preempt_enable(void) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym;
int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, u64 flags) __ksym;
void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice) __ksym;
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
extern const int __preempt_count __ksym;

struct task {
	struct task_struct __kptr *task;
	u64 sequence;
	u32 home;	/* the CPU that was given it last */
	u32 from;	/* its waker's CPU, plus 1 */
	u32 sync;
	u32 parked;	/* it waits in HOLD, and the policy believes that it runs */
	u32 unasked;	/* it runs without having been given, and the agent knows */
};

/* What the policy has a CPU run. */
struct place {
	struct bpf_timer timer;
	u64 armed;	/* when the timer fires */
	u64 slice, slice_end, next_tick;
	u64 begun;	/* CPU time of the task when its slice began */
	u64 since, used;	/* when it came onto the CPU, and its CPU time then */
	u64 asked_at, asked_after;	/* when, and after how many arrivals */
	u64 empty_after;	/* after so many, there was nothing for it */
	u32 given;	/* the task, or NO_TASK */
	u32 started;
	u32 asked;	/* the agent owes an answer */
	u32 again;	/* was kicked before the task has started */
	u32 late;
	u32 offline;	/* or about to be */
};

struct watch {
	struct bpf_timer timer;
	u64 position, moved;	/* how far the agent has read, and since when */
	u64 misses;	/* how often in a row an answer was late */
};

struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 22); } events SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } ends SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct task); } tasks SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 1); __uint(value_size, 4); } numbers SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, MAX_CPUS); __type(key, u32); __type(value, struct place); } places SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct watch); } watches SEC(".maps");

struct shared shared SEC(".data.shared");
static u32 numbered;
/* How often a task has come to the policy. */
static u64 arrivals;

static struct task *task_of(u32 number) { return bpf_map_lookup_elem(&tasks, &number); }
static struct place *place_of(u32 cpu) { return bpf_map_lookup_elem(&places, &cpu); }

/* What p->scx.dsq_vtime holds, which sched_ext leaves to schedulers that use no such queues. */
static u32 number(struct task_struct *p) { return (u32)p->scx.dsq_vtime - 1; }

/* Kernel threads that are bound to a CPU go before everything, without the policy. */
static bool is_bound(struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

/* Ends the scheduler. */
#define FAIL(text) do { \
	static char format[] = text; \
	unsigned long long nothing[1] = {}; \
	scx_bpf_error_bstr(format, nothing, 0); \
} while (0)

static __noinline void full(void)
{
	FAIL("the agent is too slow: its buffer of events is full");
}

/* The agent says that it waits, and then looks whether there are events; here there is one, and then
 * it is seen whether the agent waits. An exchange is the barrier that this needs. */
static u64 wakes(void)
{
	return __sync_lock_test_and_set(&shared.waits, 0) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static void fill(struct event *e, u32 kind, u32 flags, u32 cpu, u32 task, u64 sequence, u64 runtime)
{
	e->kind = kind;
	e->flags = flags;
	e->cpu = cpu;
	e->task = task;
	e->sequence = sequence;
	e->now = bpf_ktime_get_ns();
	e->runtime = runtime;
	e->from = e->weight = 0;
}

/* The agent is woken but for what another event follows at once. */
static __noinline void tell(u32 kind, u32 flags, u32 cpu, u32 task, u64 runtime)
{
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	struct task *t = task_of(task);
	u64 wake;

	if (!e)
		return full();
	fill(e, kind, flags, cpu, task, t ? t->sequence : 0, runtime);
	if (t && (kind == ENQUEUE || kind == LEAVE || kind == DEQUEUE))
		t->unasked = 0;
	if (t && kind == ENQUEUE) {
		__sync_fetch_and_add(&arrivals, 1);
		e->from = t->from;
		e->flags |= t->sync ? EVENT_SYNC : 0;
		t->from = t->sync = 0;
	}
	wake = kind == LEAVE || kind == DEQUEUE ? BPF_RB_NO_WAKEUP : wakes();
	bpf_ringbuf_submit(e, wake);
}

static __noinline void describe(u32 kind, struct task_struct *p)
{
	struct description *d = bpf_ringbuf_reserve(&events, sizeof(*d), 0);
	struct task *t = task_of(number(p));

	if (!d)
		return full();
	fill(&d->event, kind, 0, 0, number(p), t ? t->sequence : 0, p->se.sum_exec_runtime);
	d->event.from = p->pid;
	d->event.weight = p->policy == SCHED_IDLE ? 40 : p->static_prio - MAX_RT_PRIO;
	bpf_probe_read_kernel(d->affinity, sizeof(d->affinity), p->cpus_ptr);
	bpf_ringbuf_submit(d, wakes());
}

/* The CPU time of the task that a CPU has been given. */
static u64 runtime_of(struct place *at, struct task *t, u64 now)
{
	u64 used = at->used;
	struct task_struct *p;

	if (!t || !t->parked)
		return used + (at->since < now ? now - at->since : 0);
	/* The verifier refuses a load that is from the map or from the task. */
	barrier_var(used);
	p = t->task;
	return p ? p->se.sum_exec_runtime : used;
}

/* The agent shall say what a CPU runs next. What it runs goes on until then, if it can. */
static __noinline void ask(u32 cpu, struct place *at, u32 flags)
{
	u64 now = bpf_ktime_get_ns(), runtime = 0;
	u32 given;

	if (__sync_val_compare_and_swap(&at->asked, 0, 1))
		return;
	at->asked_at = now;
	at->asked_after = arrivals;
	given = at->given;
	if (given != NO_TASK && at->started) {
		flags |= EVENT_STARTED;
		runtime = runtime_of(at, task_of(given), now);
	}
	tell(ASK, flags, cpu, given, runtime);
}

/* Sets the timer of a CPU to what is due next. One that is set to an earlier time stays: most slices
 * do not last. */
static void arm(struct place *at)
{
	u64 due = at->slice_end < at->next_tick ? at->slice_end : at->next_tick;

	if (due < at->armed) {
		at->armed = due;
		bpf_timer_start(&at->timer, due, BPF_F_TIMER_ABS);
	}
}

static int place_timer(void *map, u32 *cpu, struct place *at)
{
	u64 now = bpf_ktime_get_ns();
	u32 given = at->given;
	struct task *t = task_of(given);

	at->armed = NEVER;
	if (!t || !at->started || t->parked)
		return 0;
	if (now >= at->next_tick) {
		at->next_tick = now - now % shared.tick_period + shared.tick_period;
		tell(TICK, EVENT_STARTED, *cpu, given, runtime_of(at, t, now));
	}
	if (now >= at->slice_end) {
		at->slice_end = NEVER;
		ask(*cpu, at, EVENT_EXPIRED);
	}
	arm(at);
	return 0;
}

/* Sees to it that the agent answers. */
static int watch_timer(void *map, u32 *key, struct watch *watch)
{
	u64 now = bpf_ktime_get_ns();
	u64 position = bpf_ringbuf_query(&events, BPF_RB_CONS_POS);
	u64 oldest;
	int cpu;

	if (position != watch->position || !bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA)) {
		watch->position = position;
		watch->moved = now;
	}
	oldest = watch->moved;
	bpf_for(cpu, 0, shared.cpus) {
		struct place *at = place_of(cpu);

		if (!at || !at->asked || at->asked_at + LATE > now)
			continue;
		if (at->asked_at < oldest)
			oldest = at->asked_at;
		at->late = 1;
		scx_bpf_kick_cpu(cpu, 0);
	}
	watch->misses = oldest + LATE <= now ? watch->misses + 1 : 0;
	if (oldest + DEAD <= now && watch->misses >= MISSES) {
		static char text[512] = "the agent has not answered for 300 ms";

		/* To the thread that watches the other: one that computes for ever has to go first, as the
		 * kernel's way back to its own scheduler needs the CPU. */
		bpf_ringbuf_output(&ends, text, sizeof(text), BPF_RB_FORCE_WAKEUP);
		FAIL("the agent has not answered for 300 ms");
		return 0;
	}
	bpf_timer_start(&watch->timer, WATCH, 0);
	return 0;
}

/* A CPU's place becomes empty. Returns whether that was unexpected. */
static __noinline bool clear(struct place *at)
{
	bool given = at->given != NO_TASK && !at->started;

	at->given = NO_TASK;
	at->started = at->again = 0;
	at->slice_end = at->next_tick = NEVER;
	return given;
}

/* The place that p has, if it has one. */
static struct place *place_for(struct task *t, u32 number)
{
	struct place *at = place_of(t->home);

	return at && at->given == number ? at : NULL;
}

static bool in_task(void)
{
	/* NMI, interrupt, and softirq while one is handled. */
	return !(*(int *)bpf_this_cpu_ptr(&__preempt_count) & 0xff0100);
}

/* The policy places tasks, when they are enqueued. */
s32 OPS(g_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task *t = task_of(number(p));

	if (t) {
		t->from = in_task() ? bpf_get_smp_processor_id() + 1 : 0;
		t->sync = !!(wake_flags & SCX_WAKE_SYNC);
	}
	return prev_cpu;
}

/* A CPU that goes offline wakes tasks when it has handled its last interrupt. To wake the agent or to
 * kick a CPU takes an irq_work, which would stay in that CPU's list, also when it is back, as one raises
 * an interrupt only if the list was empty; and as the buffer of events has but one, the agent would sleep
 * for ever. So these tasks run first where the kernel has put them, and that CPU tells. */
void OPS(g_enqueue, struct task_struct *p, u64 flags)
{
	u32 self = number(p), told = flags & SCX_ENQ_WAKEUP ? EVENT_WAKEUP : 0, home;
	struct task *t = task_of(self);
	struct place *at, *here;

	if (!t || is_bound(p)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, flags | SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
		return;
	}
	here = place_of(bpf_get_smp_processor_id());
	if (here && here->offline) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, UNASKED_SLICE, flags | SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
		return;
	}
	at = place_for(t, self);
	home = t->home;
	scx_bpf_dsq_insert(p, HOLD, SCX_SLICE_INF, 0);
	if (at && at->started && bpf_cpumask_test_cpu(home, p->cpus_ptr)) {
		__sync_lock_test_and_set(&t->parked, 1);
		if (at->given == self) {
			if (home != bpf_get_smp_processor_id())
				scx_bpf_kick_cpu(home, SCX_KICK_IDLE);
			return;
		}
		/* An answer has put another task there meanwhile, and may have told. */
		if (!__sync_lock_test_and_set(&t->parked, 0))
			return;
		at = NULL;
	}
	if (at) {
		told |= at->started ? EVENT_STARTED : 0;
		clear(at);
	}
	t->sequence++;
	tell(ENQUEUE, told, home, self, p->se.sum_exec_runtime);
}

/* Whether p, in HOLD, may be moved to a CPU. If not, that would end the scheduler. */
static bool may_run(struct task_struct *p, u32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       (!p->migration_disabled || scx_bpf_task_cpu(p) == cpu);
}

/* Moves a task out of HOLD to a CPU, if it may run there and its sequence number is this. A task leaves
 * HOLD for a moment when its CPUs change, and the kernel moves none that has come there after the
 * iterator was made (nldsq_cursor_lost_task in kernel/sched/ext.c): what is seen then holds when it
 * moves. */
static __noinline bool move(struct task_struct *p, struct task *t, u64 sequence, u32 cpu, u64 flags)
{
	struct bpf_iter_scx_dsq it;
	bool moved = false;

	if (!bpf_iter_scx_dsq_new(&it, HOLD, 0) && t && t->sequence == sequence && may_run(p, cpu)) {
		scx_bpf_dsq_move_set_slice(&it, SCX_SLICE_INF);
		moved = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL_ON | cpu, flags);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return moved;
}

/* Moves a task out of HOLD to the CPU where the kernel has it, before what that has been given: behind
 * it, and all that comes after, it would wait for ever. */
static __noinline void stay(struct task_struct *p)
{
	struct bpf_iter_scx_dsq it;

	if (!bpf_iter_scx_dsq_new(&it, HOLD, 0)) {
		scx_bpf_dsq_move_set_slice(&it, UNASKED_SLICE);
		scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL_ON | scx_bpf_task_cpu(p),
				 SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
	}
	bpf_iter_scx_dsq_destroy(&it);
}

/* The agent is late: the first task that may run here does. */
static __noinline void help_yourself(u32 cpu)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	int i;

	if (!bpf_iter_scx_dsq_new(&it, HOLD, 0)) {
		bpf_for(i, 0, 1 << 16) {
			p = bpf_iter_scx_dsq_next(&it);
			if (!p)
				break;
			if (!may_run(p, cpu))
				continue;
			scx_bpf_dsq_move_set_slice(&it, UNASKED_SLICE);
			if (scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0))
				break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
}

void OPS(g_dispatch, s32 cpu, struct task_struct *prev)
{
	struct place *at = place_of(cpu);
	struct task_struct *p;
	struct task *t;

	if (!at)
		return;
	if (!at->asked && at->given != NO_TASK) {
		if (!at->started)
			return;	/* it is coming */
		if (prev && number(prev) == at->given) {
			scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
			return;
		}
		t = task_of(at->given);
		p = t && t->parked ? t->task : NULL;
		if (p)
			move(p, t, t->sequence, cpu, 0);
		return;
	}
	/* What has made a task of another CPU one for this is told by a kick. */
	if (at->given == NO_TASK && at->empty_after == arrivals)
		return;
	ask(cpu, at, 0);
	if (at->late)
		help_yourself(cpu);
}

/* p begins to run, or goes on after something above the policy has taken its CPU. */
void OPS(g_running, struct task_struct *p)
{
	u32 self = number(p), cpu = bpf_get_smp_processor_id();
	struct task *t = task_of(self);
	struct place *here = place_of(cpu), *at;
	u64 now, spent;

	if (!t || !here)
		return;
	if (here->given == self) {
		now = bpf_ktime_get_ns();
		t->parked = 0;
		if (p->scx.slice != SCX_SLICE_INF)
			scx_bpf_task_set_slice(p, SCX_SLICE_INF);
		here->since = now;
		here->used = p->se.sum_exec_runtime;
		if (!here->started) {
			here->begun = here->used;
			here->started = 1;
			if (shared.tick_period)
				here->next_tick = now - now % shared.tick_period + shared.tick_period;
		}
		spent = here->used - here->begun;
		if (here->asked)
			return;
		here->slice_end = now + (here->slice > spent ? here->slice - spent : 0);
		if (here->slice_end < now)
			here->slice_end = NEVER;
		arm(here);
		if (__sync_lock_test_and_set(&here->again, 0))
			ask(cpu, here, 0);
		return;
	}
	at = place_for(t, self);
	if (is_bound(p) && !at)
		return;
	if (p->scx.slice == SCX_SLICE_INF)
		scx_bpf_task_set_slice(p, UNASKED_SLICE);
	/* Once: the agent, which takes the CPU to hear it, would be told again when it has gone. */
	if (t->unasked && !at)
		return;
	if (at)
		clear(at);
	t->unasked = 1;
	t->parked = 0;
	t->sequence++;
	tell(UNASKED, 0, cpu, self, p->se.sum_exec_runtime);
}

/* Without a slice it is parked when something above the policy takes its CPU. */
void OPS(g_stopping, struct task_struct *p, bool runnable)
{
	struct place *here = place_of(bpf_get_smp_processor_id());

	if (runnable && here && here->given == number(p))
		scx_bpf_task_set_slice(p, 0);
}

static __noinline void leaves(struct task_struct *p, bool sleeps, u32 told)
{
	u32 self = number(p);
	struct task *t = task_of(self);
	struct place *at;
	bool lost = false;

	if (!t)
		return;
	at = place_for(t, self);
	if (at && at->started && !sleeps)
		return;	/* it goes on */
	if (is_bound(p) && !at)
		return;
	if (at) {
		told |= at->started ? EVENT_STARTED : 0;
		lost = clear(at);
	}
	t->parked = 0;
	t->sequence++;
	tell(sleeps ? LEAVE : DEQUEUE, told, t->home, self, p->se.sum_exec_runtime);
	if (lost)
		ask(t->home, at, 0);
}

void OPS(g_quiescent, struct task_struct *p, u64 flags)
{
	leaves(p, flags & SCX_DEQ_SLEEP, p->__state == TASK_DEAD ? EVENT_DEAD : 0);
}

/* Policies with a tick of their own get that, by the CPU's timer. */
void OPS(g_tick, struct task_struct *p)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct place *here = place_of(cpu);

	if (!shared.tick_period && here && here->given == number(p))
		tell(TICK, EVENT_STARTED, cpu, here->given, p->se.sum_exec_runtime);
}

/* Yielding to a certain task is no policy's business. */
bool OPS(g_yield, struct task_struct *from, struct task_struct *to)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct place *here = place_of(cpu);

	if (to || !here)
		return 0;
	scx_bpf_task_set_slice(from, 0);
	if (here->given == number(from))
		ask(cpu, here, EVENT_YIELDED);
	return 0;
}

void OPS(g_set_weight, struct task_struct *p, u32 weight) { describe(UPDATE, p); }
void OPS(g_set_cpumask, struct task_struct *p, const struct cpumask *mask) { describe(UPDATE, p); }

/* The agent knows a task for as long as it is of this class: of another, its number would be lost. */
void OPS(g_enable, struct task_struct *p)
{
	struct task_struct *old, *own;
	struct task *t;
	u32 free;

	if (bpf_map_pop_elem(&numbers, &free))
		free = __sync_fetch_and_add(&numbered, 1);
	t = task_of(free);
	if (!t) {
		FAIL("there are too many tasks; start the agent with a larger --tasks");
		return;
	}
	own = bpf_task_acquire(p);
	if (!own)
		return;
	old = bpf_kptr_xchg(&t->task, own);
	if (old)
		bpf_task_release(old);
	t->sequence++;
	t->home = t->from = t->sync = t->parked = t->unasked = 0;
	/* The function for it wants a task that is ours already. */
	p->scx.dsq_vtime = (u64)free + 1;
	describe(ATTACH, p);
}

void OPS(g_disable, struct task_struct *p)
{
	u32 self = number(p);
	struct task *t = task_of(self);
	struct task_struct *old;

	if (!t)
		return;
	leaves(p, true, EVENT_DEAD);
	tell(DETACH, 0, t->home, self, p->se.sum_exec_runtime);
	old = bpf_kptr_xchg(&t->task, NULL);
	if (old)
		bpf_task_release(old);
	bpf_map_push_elem(&numbers, &self, 0);
}

/* Where others may be preempted, this may not: the agent, which runs before all else, would wait for
 * ever for an event that this has begun. */
static void turn(u32 cpu, bool online)
{
	struct place *at = place_of(cpu);
	struct task *t;
	u32 given;
	u64 runtime = 0;

	if (!at)
		return;
	at->offline = !online;
	given = at->given;
	t = task_of(given);
	if (t && at->started)
		runtime = runtime_of(at, t, bpf_ktime_get_ns());
	clear(at);
	tell(ONLINE, online ? EVENT_ONLINE : 0, cpu, NO_TASK, runtime);
	if (t && __sync_lock_test_and_set(&t->parked, 0)) {
		t->sequence++;
		tell(ENQUEUE, 0, cpu, given, runtime);
	}
}

void OPS_SLEEPABLE(g_cpu_online, s32 cpu)
{
	bpf_rcu_read_lock();
	bpf_preempt_disable();
	turn(cpu, true);
	bpf_preempt_enable();
	bpf_rcu_read_unlock();
}

void OPS_SLEEPABLE(g_cpu_offline, s32 cpu)
{
	bpf_rcu_read_lock();
	bpf_preempt_disable();
	turn(cpu, false);
	bpf_preempt_enable();
	bpf_rcu_read_unlock();
}

/* What was in a place has to leave it: it is parked, and tells so, or has to be taken off. */
static __noinline void put_back(u32 cpu, u32 number, bool on_its_way_off)
{
	struct task *t = task_of(number);
	struct task_struct *p;

	if (!t)
		return;
	if (!__sync_lock_test_and_set(&t->parked, 0)) {
		if (!on_its_way_off)
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return;
	}
	p = t->task;
	t->sequence++;
	tell(ENQUEUE, 0, cpu, number, p ? p->se.sum_exec_runtime : 0);
}

/* An answer that cannot be carried out. */
static __noinline u32 stale(struct answer *a, struct place *at)
{
	u32 old = at->given;

	clear(at);
	at->asked = at->late = 0;
	if (old != a->task)
		put_back(a->cpu, old, false);
	ask(a->cpu, at, 0);
	return STALE;
}

/* The task goes on. */
static __noinline u32 keep(struct answer *a, struct place *at, struct task *t)
{
	u64 now = bpf_ktime_get_ns();
	struct task_struct *p = t->task;

	at->begun = runtime_of(at, t, now);
	at->slice = a->slice;
	at->slice_end = now + a->slice < now ? NEVER : now + a->slice;
	at->asked = at->late = at->again = 0;
	if (!t->parked)
		arm(at);
	else if (p)
		move(p, t, a->sequence, a->cpu, SCX_ENQ_HEAD);
	return DONE;
}

static __noinline u32 give(struct answer *a, struct place *at)
{
	struct task *t = task_of(a->task), *other;
	struct scx_dispatch_q *queue;
	struct task_struct *p;
	u32 old = at->given, cpu = a->cpu;
	bool runs;

	p = t ? t->task : NULL;
	if (!p || t->sequence != a->sequence)
		return stale(a, at);
	if (old == a->task)
		return keep(a, at, t);
	queue = p->scx.dsq;
	if (!queue || queue->id != HOLD) {
		/* A CPU that has helped itself to it may have been given another since, behind which it
		 * would wait for ever: it has to run there to come back. */
		if (queue)
			scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
		return LATER;
	}
	if (!may_run(p, cpu)) {
		clear(at);
		at->asked = at->late = 0;
		put_back(cpu, old, false);
		stay(p);
		return REFUSED;
	}
	other = task_of(old);
	runs = other && !other->parked;
	t->home = cpu;
	at->slice = a->slice;
	at->started = at->again = 0;
	at->slice_end = at->next_tick = NEVER;
	at->given = a->task;
	at->asked = at->late = 0;
	if (!move(p, t, a->sequence, cpu, runs ? SCX_ENQ_HEAD | SCX_ENQ_PREEMPT : SCX_ENQ_HEAD)) {
		at->given = old;
		return stale(a, at);
	}
	put_back(cpu, old, true);
	return DONE;
}

static __noinline u32 nothing(struct answer *a, struct place *at)
{
	u32 old = at->given;

	clear(at);
	at->empty_after = at->asked_after;
	at->asked = at->late = 0;
	put_back(a->cpu, old, false);
	return DONE;
}

static __noinline u32 kick(struct answer *a, struct place *at)
{
	if (at->given != NO_TASK && !at->started) {
		__sync_lock_test_and_set(&at->again, 1);
		if (!at->started || !__sync_lock_test_and_set(&at->again, 0))
			return DONE;
	}
	ask(a->cpu, at, 0);
	return DONE;
}

/* The agent's answers, in shared. */
SEC("syscall") int answer(void *context)
{
	int i;

	bpf_rcu_read_lock();
	bpf_for(i, 0, MOST_ANSWERS) {
		struct answer *a;
		struct place *at;

		if (i >= shared.count)
			break;
		a = &shared.answers[i & (MOST_ANSWERS - 1)];
		at = place_of(a->cpu);
		if (!at)
			continue;
		if (a->what == GIVE)
			a->result = give(a, at);
		else if (a->what == KICK)
			a->result = kick(a, at);
		else
			a->result = nothing(a, at);
	}
	bpf_rcu_read_unlock();
	return 0;
}

s32 OPS_SLEEPABLE(g_init)
{
	struct watch *watch;
	u32 zero = 0;
	int cpu;

	bpf_for(cpu, 0, MAX_CPUS) {
		struct place *at = place_of(cpu);

		if (!at)
			return -22;
		at->given = NO_TASK;
		at->empty_after = NEVER;
		at->armed = at->slice_end = at->next_tick = NEVER;
		bpf_timer_init(&at->timer, &places, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&at->timer, place_timer);
	}
	watch = bpf_map_lookup_elem(&watches, &zero);
	if (!watch)
		return -22;
	watch->moved = bpf_ktime_get_ns();
	bpf_timer_init(&watch->timer, &watches, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&watch->timer, watch_timer);
	bpf_timer_start(&watch->timer, WATCH, 0);
	return scx_bpf_create_dsq(HOLD, -1);
}

void OPS_SLEEPABLE(g_exit, struct scx_exit_info *info)
{
	static char text[512];

	text[0] = 0;
	if (info->kind != SCX_EXIT_UNREG)
		bpf_probe_read_kernel_str(text, sizeof(text), info->msg[0] ? info->msg : info->reason);
	bpf_ringbuf_output(&ends, text, sizeof(text), BPF_RB_FORCE_WAKEUP);
}

SEC(".struct_ops.link")
struct sched_ext_ops agent = {
	.select_cpu = (void *)g_select_cpu,
	.enqueue = (void *)g_enqueue,
	.dispatch = (void *)g_dispatch,
	.running = (void *)g_running,
	.stopping = (void *)g_stopping,
	.quiescent = (void *)g_quiescent,
	.tick = (void *)g_tick,
	.yield = (void *)g_yield,
	.set_weight = (void *)g_set_weight,
	.set_cpumask = (void *)g_set_cpumask,
	.enable = (void *)g_enable,
	.disable = (void *)g_disable,
	.cpu_online = (void *)g_cpu_online,
	.cpu_offline = (void *)g_cpu_offline,
	.init = (void *)g_init,
	.exit = (void *)g_exit,
	/* An exiting task has its place in tasks, and needs no process ID to be found. */
	.flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING,
	.timeout_ms = 5000,
	.name = "anysched_agent",
};
