/* SPDX-License-Identifier: GPL-2.0 */
/* What agent.bpf.c and the agent in user space (../agent) tell each other. The other side of each is
 * in ../agent/src/protocol.rs. */
#ifndef ANYSCHED_AGENT_H
#define ANYSCHED_AGENT_H

#define MAX_CPUS 1024
#define NO_TASK (~0u)

enum kind {
	ATTACH,
	DETACH,
	UPDATE,
	ENQUEUE,
	DEQUEUE,	/* taken out for a moment */
	LEAVE,		/* sleeps, or has ended */
	ASK,		/* the CPU wants a task */
	UNASKED,	/* the task runs without having been given */
	TICK,
	ONLINE,
};

enum event_flags {
	EVENT_WAKEUP = 1,	/* the task was blocked */
	EVENT_SYNC = 2,
	EVENT_DEAD = 4,
	EVENT_STARTED = 8,	/* what the policy has given its CPU has begun to run */
	EVENT_EXPIRED = 16,	/* its slice has ended */
	EVENT_YIELDED = 32,
	EVENT_ONLINE = 64,
};

/* The buffer of events. Those of ATTACH and UPDATE are followed by the CPUs that the task may run on,
 * a bit each. */
struct event {
	u32 kind, flags;
	u32 cpu;		/* that it is about, or for which the task was given */
	u32 task;		/* of ASK what the policy has the CPU run */
	u64 sequence;		/* of the task: answers with another are stale */
	u64 now;		/* ns of CLOCK_MONOTONIC */
	u64 runtime;		/* CPU time of the task in ns */
	u32 from;		/* the waker's CPU, plus 1; of ATTACH the task's pid */
	u32 weight;		/* nice value + 20, 40 for SCHED_IDLE */
};
struct description {
	struct event event;
	u64 affinity[MAX_CPUS / 64];
};

enum what { GIVE, NOTHING, KICK };

enum result {
	DONE,
	STALE,		/* something has happened to the task, of which events tell */
	LATER,		/* the task is on its way: again, please */
	REFUSED,	/* it may not run there; it runs where it may, once */
};

struct answer {
	u32 what, cpu, task, result;
	u64 sequence;
	u64 slice;		/* ns; all bits set: without limit */
};

#define MOST_ANSWERS 64

/* Memory that both see. */
struct shared {
	u64 tick_period;	/* of the policy, ns; 0: the kernel's tick does */
	u32 cpus;
	u32 waits;		/* the agent sleeps until there are events */
	u32 count;
	struct answer answers[MOST_ANSWERS];
};

#endif
