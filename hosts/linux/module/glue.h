/* SPDX-License-Identifier: GPL-2.0 */
/* What the C side asks the policies' object, and what that calls here. The other side of each is in
 * hosts/linux/policies: call.rs and kernel.rs. */
#ifndef ANYSCHED_GLUE_H
#define ANYSCHED_GLUE_H

/* How much a call of policies that are built to be checked may do, in blocks of code: some tenths of
 * a second, and more than any policy does with 100,000 tasks. */
#define ANYSCHED_BLOCKS (1 << 26)

/* The stack for calls, in bytes, and the part of it that is kept for the frame of one more function:
 * what builds policies has the largest, of some 7 KiB. Policies that are built to be checked look at
 * each block of code whether more is in use. */
#define ANYSCHED_STACK (48 << 10)
#define ANYSCHED_FRAME (12 << 10)

#ifndef __ASSEMBLER__
#include <linux/types.h>

enum op {
	OP_START,
	OP_ATTACH,
	OP_DETACH,
	OP_UPDATE,
	OP_ENQUEUE,
	OP_DEQUEUE,
	OP_DISPATCH,
	OP_UNASKED,
	OP_REFUSE,
	OP_LEAVE,
	OP_YIELD,
	OP_TICK,
	OP_TIMER,
	OP_ONLINE,
	OP_WEIGHT,
	OP_CAP,
	OP_DISBAND,
	OP_JOIN,
	OP_CHANGE,
	OP_STATUS,
	OP_STATE,
};

enum call_flags {
	CALL_WAKEUP = 1,	/* the task was blocked */
	CALL_SYNC = 2,
	CALL_DEAD = 8,
	CALL_STARTED = 16,	/* what the policy believes to run has begun to run */
	CALL_EXPIRED = 32,	/* its slice has ended */
	CALL_KICKED = 64,	/* its CPU has been kicked */
	CALL_RUNNABLE = 128,	/* what ran could go on */
	CALL_ONLINE = 256,
	CALL_RUNS = 512,	/* answer: the policy still believes that the task runs at home */
};

#define NO_TASK (~0u)
#define NO_CPU (~0u)

struct call {
	u32 op;
	u32 flags;
	u32 cpu;		/* that it is about */
	u32 home;		/* the CPU that the task was picked for, if it is there, or NO_CPU */
	u32 task;		/* that it is about; of OP_DISPATCH and OP_ATTACH the answer */
	u32 from;		/* the waker's CPU, plus 1 */
	u64 now;		/* ns */
	u64 runtime;		/* CPU time in ns of the task, or of what runs on the CPU */
	u32 niceness;		/* of a task its nice value + 20, 40 for SCHED_IDLE */
	u32 text_len;
	const unsigned long *affinity;	/* NULL: all */
	char *text;
	u64 group;		/* a cgroup's number */
	u64 amount;		/* its weight (100 without a setting), or its cap in percent of a CPU (0: none);
				 * of OP_CHANGE room for text in bytes */
	u64 slice;		/* answer: ns */
	u64 timer;		/* answer: when the policy's timer is due, ns */
};

/* Rust. Only anysched_try calls it: try.S. */
void anysched_call(struct call *c);
extern char anysched_message[512];

/* anysched_call on a stack whose highest 16 bytes, aligned so, are at `stack`; -1 if it panicked, and
 * then anysched_message says why. One caller at a time, with interrupts off. */
int anysched_try(struct call *c, void *stack);
void anysched_escape(void);
/* These leave a message instead: the call has not returned, or has used up its stack, and was at this
 * place. */
void anysched_too_much(unsigned long place);
void anysched_too_deep(unsigned long place);

/* For Rust. */
extern u64 anysched_heap_size;
extern char *anysched_heap;
void anysched_kick(u32 cpu);
void anysched_log_write(const char *bytes, u64 length);
void anysched_log_record_ends(void);

#endif
#endif
