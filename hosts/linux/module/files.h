/* SPDX-License-Identifier: GPL-2.0 */
/* The files of the module, /proc/anysched: what to start, how it is doing, what was decided, what is to change. Their
 * formats are those of the crate anysched-wire: start, status, change; the log is a recorder's. */
#ifndef ANYSCHED_FILES_H
#define ANYSCHED_FILES_H

#include <linux/sched.h>

#include "glue.h"

/* Of calls of the policy; times in cycles. */
struct statistics {
	u64 calls, time, longest;
};
extern struct statistics anysched_statistics;

int anysched_files_make(void);
void anysched_files_remove(void);

/* Gives a start the text that was written last, and room for its log. */
int anysched_files_prepare(struct call *c);
/* Notes why the policy has died. */
void anysched_files_died(const char *why);
/* Keeps what sched_ext has dumped. */
void anysched_files_dump(const char *text);
/* What has been recorded is all, even if a record is incomplete. */
void anysched_log_ends(void);

/* A task that runs: the policy's number for it, and what the kernel knows it by. */
struct running {
	u32 task;
	pid_t pid;
	char name[TASK_COMM_LEN];
};

/* What the policy has this CPU run; false: nothing. */
bool anysched_running_on(u32 cpu, struct running *r);

bool anysched_status(u32 part, char *text, u32 *length);

/* Has the policy change a parameter as the text asks; the answer takes its place, where there are `room`
 * bytes. False: there is no policy (any more). */
bool anysched_change(char *text, u32 *length, u32 room);

#endif
