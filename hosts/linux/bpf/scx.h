/* SPDX-License-Identifier: GPL-2.0 */
/* As much of the kernel's types as our programs need: libbpf matches members by name, so that an
 * object fits kernels whose structures differ. */
#ifndef ANYSCHED_SCX_H
#define ANYSCHED_SCX_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
enum { false, true };
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
/* The headers of libbpf take the types above from a generated file otherwise. */
#define __VMLINUX_H__
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
/* Bodies, too: a structure that is only declared is no match for the kernel's. */
struct cpumask {
	unsigned long bits[1];
};
struct scx_dispatch_q {
	u64 id;
};
struct sched_ext_entity {
	struct scx_dispatch_q *dsq;
	u64 slice;
	u64 dsq_vtime;
};
struct sched_entity {
	u64 sum_exec_runtime;
};
struct task_struct {
	unsigned int __state;
	unsigned int flags;
	unsigned int policy;
	int pid;
	int static_prio;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	struct sched_entity se;
	struct sched_ext_entity scx;
};
enum scx_exit_kind { SCX_EXIT_NONE, SCX_EXIT_UNREG = 64 };
struct scx_exit_info {
	enum scx_exit_kind kind;
	const char *reason;
	char *msg;
	char *dump;
};
struct kernfs_node {
	u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
};
struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us;
	u64 bw_quota_us;
};
#pragma clang attribute pop
struct scx_exit_task_args;
struct scx_dump_ctx;

/* There is no init_task: it is called where the caller may be preempted, and no program lets its
 * caller migrate. If that may meanwhile run on other CPUs only, which then go offline,
 * __set_cpus_allowed_ptr_locked (kernel/sched/core.c, 7.2) fails at the program's end, and tries again
 * at the end of the next. Where that is called with the runqueue's lock, as enable is in fork, it
 * waits for this lock for ever. All other operations of tasks are called with interrupts off. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *, s32, u64);
	void (*enqueue)(struct task_struct *, u64);
	void (*dequeue)(struct task_struct *, u64);
	void (*dispatch)(s32, struct task_struct *);
	void (*tick)(struct task_struct *);
	void (*running)(struct task_struct *);
	void (*stopping)(struct task_struct *, bool);
	void (*quiescent)(struct task_struct *, u64);
	bool (*yield)(struct task_struct *, struct task_struct *);
	void (*set_weight)(struct task_struct *, u32);
	void (*set_cpumask)(struct task_struct *, const struct cpumask *);
	void (*exit_task)(struct task_struct *, struct scx_exit_task_args *);
	void (*enable)(struct task_struct *);
	void (*disable)(struct task_struct *);
	void (*cpu_online)(s32);
	void (*cpu_offline)(s32);
	s32 (*cgroup_init)(struct cgroup *, struct scx_cgroup_init_args *);
	void (*cgroup_exit)(struct cgroup *);
	void (*cgroup_set_weight)(struct cgroup *, u32);
	void (*cgroup_set_bandwidth)(struct cgroup *, u64, u64, u64);
	void (*cgroup_move)(struct task_struct *, struct cgroup *, struct cgroup *);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *);
	void (*dump_cpu)(struct scx_dump_ctx *, s32, bool);
	void (*dump_task)(struct scx_dump_ctx *, struct task_struct *);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

#define SCX_DSQ_LOCAL 0x8000000000000002ULL
#define SCX_DSQ_LOCAL_ON 0xC000000000000000ULL
#define SCX_ENQ_WAKEUP 1ULL
#define SCX_ENQ_HEAD (1ULL << 16)
#define SCX_ENQ_PREEMPT (1ULL << 32)
#define SCX_DEQ_SLEEP 1ULL
#define SCX_SLICE_DFL 20000000ULL
#define SCX_SLICE_INF (~0ULL)
#define SCX_OPS_ENQ_LAST 2
#define SCX_OPS_ENQ_EXITING 4
#define SCX_OPS_ENQ_MIGRATION_DISABLED 16

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
u32 scx_bpf_dispatch_nr_slots(void) __ksym;
void scx_bpf_dispatch_cancel(void) __ksym;
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
void scx_bpf_dump_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p) __ksym;
void bpf_cgroup_release(struct cgroup *group) __ksym;

#define OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)

#endif
