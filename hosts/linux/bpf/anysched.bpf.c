// SPDX-License-Identifier: GPL-2.0
/* Hands what sched_ext says to the kfuncs of the module anysched (../module), which decide. */
#include "scx.h"

char _license[] SEC("license") = "GPL";

s32 anysched_start(void) __ksym;
s32 anysched_detach(struct task_struct *p) __ksym;
s32 anysched_enable(struct task_struct *p, u64 group) __ksym;
s32 anysched_update(struct task_struct *p) __ksym;
s32 anysched_select(struct task_struct *p, u64 wake_flags) __ksym;
s32 anysched_enqueue(struct task_struct *p, u64 flags) __ksym;
s32 anysched_dequeue(struct task_struct *p) __ksym;
struct task_struct *anysched_dispatch(s32 cpu) __ksym;
struct task_struct *anysched_dispatch_after(s32 cpu, struct task_struct *prev) __ksym;
bool anysched_stands(struct task_struct *p, s32 cpu, bool picked) __ksym;
s32 anysched_running(struct task_struct *p) __ksym;
s32 anysched_quiescent(struct task_struct *p) __ksym;
s32 anysched_tick(struct task_struct *p) __ksym;
s32 anysched_yield(struct task_struct *p) __ksym;
s32 anysched_online(s32 cpu, bool online) __ksym;
s32 anysched_weight(u64 group, u32 weight) __ksym;
s32 anysched_bandwidth(u64 group, u64 period, u64 quota) __ksym;
s32 anysched_disband(u64 group) __ksym;
s32 anysched_join(struct task_struct *p, u64 group) __ksym;
s32 anysched_why(char *text, u32 text__sz) __ksym;
s32 anysched_ended(u64 why, u64 dump) __ksym;
s64 anysched_state(struct task_struct *p) __ksym;
s64 anysched_place(s32 cpu) __ksym;

/* The policy has died: the machine goes back to the kernel's own scheduler, with the reason. */
static __noinline void fail(void)
{
	static char format[] = "%s";
	char text[256] = {};
	unsigned long long data[1] = { (unsigned long)text };

	if (anysched_why(text, sizeof(text)) > 0)
		scx_bpf_error_bstr(format, data, sizeof(data));
}
#define CHECK(call) do { if ((call) < 0) fail(); } while (0)

/* The policy places tasks, when they are enqueued. */
s32 OPS(a_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	anysched_select(p, wake_flags);
	return prev_cpu;
}

void OPS(a_enqueue, struct task_struct *p, u64 flags)
{
	s32 how = anysched_enqueue(p, flags);

	if (how == 2)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 0, flags | SCX_ENQ_HEAD);
	else if (how == 1)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, flags | SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
	else if (how < 0)
		fail();
}

void OPS(a_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p = prev ? anysched_dispatch_after(cpu, prev) : anysched_dispatch(cpu);
	u32 slots = scx_bpf_dispatch_nr_slots();
	bool stands;

	if (!p)
		return fail();
	if (p->scx.slice == SCX_SLICE_INF) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 0, 0);
		stands = anysched_stands(p, cpu, 1);
	} else {
		/* It may not go there: the kernel runs it where it is, once. */
		s32 at = scx_bpf_task_cpu(p);

		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | at, 0, SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
		stands = anysched_stands(p, at, 0);
	}
	/* Of a task that has left it sched_ext has taken nothing. */
	if (!stands && scx_bpf_dispatch_nr_slots() < slots)
		scx_bpf_dispatch_cancel();
}

void OPS(a_running, struct task_struct *p) { CHECK(anysched_running(p)); }

/* p goes to sleep, or is taken out for a moment. Of what only changes its CPU while it waits in the
 * policy, that knows already: where it is picked meanwhile, the kernel does not run it. */
void OPS(a_quiescent, struct task_struct *p, u64 flags)
{
	CHECK(flags & SCX_DEQ_SLEEP ? anysched_quiescent(p) : anysched_dequeue(p));
}

void OPS(a_tick, struct task_struct *p) { CHECK(anysched_tick(p)); }

/* Yielding to a certain task is no policy's business. */
bool OPS(a_yield, struct task_struct *from, struct task_struct *to)
{
	if (!to)
		CHECK(anysched_yield(from));
	return 0;
}

void OPS(a_set_weight, struct task_struct *p, u32 weight) { CHECK(anysched_update(p)); }
void OPS(a_set_cpumask, struct task_struct *p, const struct cpumask *mask) { CHECK(anysched_update(p)); }
void OPS(a_disable, struct task_struct *p) { CHECK(anysched_quiescent(p)); }

/* p comes, or comes back, from another class; by init_task nobody is told of it (scx.h). */
void OPS(a_enable, struct task_struct *p)
{
	struct cgroup *group = scx_bpf_task_cgroup(p);
	u64 id = group->kn->id;

	bpf_cgroup_release(group);
	CHECK(anysched_enable(p, id));
}

void OPS(a_exit_task, struct task_struct *p, struct scx_exit_task_args *args) { CHECK(anysched_detach(p)); }
void OPS_SLEEPABLE(a_cpu_online, s32 cpu) { CHECK(anysched_online(cpu, 1)); }
void OPS_SLEEPABLE(a_cpu_offline, s32 cpu) { CHECK(anysched_online(cpu, 0)); }

/* cgroups are a policy's domains. */
s32 OPS_SLEEPABLE(a_cgroup_init, struct cgroup *group, struct scx_cgroup_init_args *args)
{
	CHECK(anysched_weight(group->kn->id, args->weight));
	CHECK(anysched_bandwidth(group->kn->id, args->bw_period_us, args->bw_quota_us));
	return 0;
}

void OPS_SLEEPABLE(a_cgroup_exit, struct cgroup *group) { CHECK(anysched_disband(group->kn->id)); }

void OPS(a_cgroup_set_weight, struct cgroup *group, u32 weight)
{
	CHECK(anysched_weight(group->kn->id, weight));
}

void OPS(a_cgroup_set_bandwidth, struct cgroup *group, u64 period, u64 quota, u64 burst)
{
	CHECK(anysched_bandwidth(group->kn->id, period, quota));
}

void OPS(a_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	CHECK(anysched_join(p, to->kn->id));
}

s32 OPS_SLEEPABLE(a_init)
{
	s32 err = anysched_start();

	if (err)
		fail();
	return err;
}

void OPS_SLEEPABLE(a_exit, struct scx_exit_info *info)
{
	/* As numbers: the verifier lets no pointer to memory of unknown size pass. */
	u64 why = 0, dump = 0;

	if (info->kind == SCX_EXIT_UNREG) {
		anysched_ended(0, 0);
		return;
	}
	bpf_probe_read_kernel(&why, sizeof(why), info->msg[0] ? (void *)&info->msg : (void *)&info->reason);
	bpf_probe_read_kernel(&dump, sizeof(dump), &info->dump);
	anysched_ended(why, dump);
}

/* What the module knows goes into the kernel's dumps (SysRq-D, and when a scheduler is ended). */
void OPS(a_dump_task, struct scx_dump_ctx *context, struct task_struct *p)
{
	static const char names[7][8] = { "new", "blocked", "out", "ready", "picked", "running", "unasked" };
	static char format[] = "anysched: %s, CPU %llu";
	s64 state = anysched_state(p);
	u64 name = state & 7;
	unsigned long long data[2];

	if (state < 0 || name > 6)
		return;
	data[0] = (unsigned long)names[name];
	data[1] = state >> 8;
	scx_bpf_dump_bstr(format, data, sizeof(data));
}

void OPS(a_dump_cpu, struct scx_dump_ctx *context, s32 cpu, bool idle)
{
	static char format[] = "anysched: task %lld, started %llu, expired %llu, kicked %llu, told %llu";
	s64 place = anysched_place(cpu);
	unsigned long long data[5] = { (s64)(s32)place, place >> 32 & 1, place >> 33 & 1, place >> 34 & 1,
				       place >> 35 & 1 };

	if (place != -1)
		scx_bpf_dump_bstr(format, data, sizeof(data));
}

SEC(".struct_ops.link")
struct sched_ext_ops anysched = {
	.select_cpu = (void *)a_select_cpu,
	.enqueue = (void *)a_enqueue,
	.dispatch = (void *)a_dispatch,
	.running = (void *)a_running,
	.quiescent = (void *)a_quiescent,
	.tick = (void *)a_tick,
	.yield = (void *)a_yield,
	.set_weight = (void *)a_set_weight,
	.set_cpumask = (void *)a_set_cpumask,
	.enable = (void *)a_enable,
	.disable = (void *)a_disable,
	.exit_task = (void *)a_exit_task,
	.cpu_online = (void *)a_cpu_online,
	.cpu_offline = (void *)a_cpu_offline,
	.cgroup_init = (void *)a_cgroup_init,
	.cgroup_exit = (void *)a_cgroup_exit,
	.cgroup_set_weight = (void *)a_cgroup_set_weight,
	.cgroup_set_bandwidth = (void *)a_cgroup_set_bandwidth,
	.cgroup_move = (void *)a_cgroup_move,
	.init = (void *)a_init,
	.exit = (void *)a_exit,
	.dump_task = (void *)a_dump_task,
	.dump_cpu = (void *)a_dump_cpu,
	/* Without the last the kernel would queue such tasks by itself, behind whatever runs: a policy
	 * that does not know of them may never end that. */
	.flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED,
	/* A task of nice 19 may have to wait for seconds beside others where shares are proportional. */
	.timeout_ms = 15000,
	.name = "anysched",
};
