/* SPDX-License-Identifier: GPL-2.0 */
/* The files of the module, /proc/anysched: what to start, how it is doing, what was decided. Their
 * formats are those of the crate anysched-wire: start, status; the log is a recorder's. */
#ifndef ANYSCHED_FILES_H
#define ANYSCHED_FILES_H

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

bool anysched_status(u32 part, char *text, u32 *length);

#endif
