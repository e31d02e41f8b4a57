/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scheduler whose decisions are made by the policies of anysched:
 * sched=anysched anysched=POLICY[,NAME=VALUE]... [anysched_as=SCHEDULER]
 *
 * Each cpupool has an instance of the policy and one lock, under which all of
 * its calls are made, with interrupts off. Units are of one vCPU.
 */
#include <xen/guest_access.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/numa.h>
#include <xen/param.h>
#include <xen/sched.h>
#include <xen/softirq.h>
#include <xen/timer.h>
#include <xen/trace.h>
#include <xen/xmalloc.h>

#include "private.h"

/* The number that was SEDF's: tools know no other that is free. */
#define XEN_SCHEDULER_ANYSCHED 4

#define NONE (~0U)
#define NEVER (~0UL)

/*
 * Records in Xen's trace buffers, as of a scheduler whose number is free: which
 * vCPU the policy calls how; what the time is, for buffers have counters of
 * pCPUs only; and when the policy was asked what a pCPU runs next, by its time.
 */
#define TRC_SCHED_ANYSCHED 6
#define TRC_ANYSCHED_ATTACH TRC_SCHED_CLASS_EVT(ANYSCHED, 1)
#define TRC_ANYSCHED_CLOCK TRC_SCHED_CLASS_EVT(ANYSCHED, 2)
#define TRC_ANYSCHED_ASKED TRC_SCHED_CLASS_EVT(ANYSCHED, 3)
/* Xen 4.17 has a macro for each number of words. */
#ifndef TRACE_TIME
#define TRACE_TIME(event, ...) TRACE_3D(event, ## __VA_ARGS__)
#endif

/* As in policies/src/pool.rs. */
#define MAX_CPUS 256
struct anysched_place {
    uint32_t node, socket, core;
};
struct anysched_vcpu {
    uint64_t affinity[MAX_CPUS / 64], preferred[MAX_CPUS / 64];
    uint64_t period, budget;
    uint32_t domain, weight;
};
struct anysched_answer {
    uint64_t now, timer, slice;
    uint32_t task;
};

/* As in crates/vcpus: whether a vCPU that was picked can run. */
enum anysched_fitness {
    ANYSCHED_RUNS,
    ANYSCHED_PAUSED,
    ANYSCHED_SAVING,
};

/* Of policies/src/lib.rs. */
void anysched_give_memory(void *region, size_t size);
void *anysched_new(const char *text, size_t length,
                   const struct anysched_place *places, uint32_t cpus,
                   uint32_t number);
void anysched_drop(void *policy);
uint64_t anysched_tick_period(const void *policy);
void anysched_online(void *policy, struct anysched_answer *answer,
                     uint32_t cpu, bool online);
uint32_t anysched_attach(void *policy, struct anysched_answer *answer,
                         const struct anysched_vcpu *vcpu);
void anysched_detach(void *policy, struct anysched_answer *answer,
                     uint32_t task);
void anysched_update(void *policy, struct anysched_answer *answer,
                     uint32_t task, const struct anysched_vcpu *vcpu);
void anysched_domain(void *policy, struct anysched_answer *answer,
                     uint32_t domain, uint32_t weight, uint32_t cap);
void anysched_disband(void *policy, uint32_t domain);
void anysched_wake(void *policy, struct anysched_answer *answer, uint32_t task,
                   bool saving, uint32_t from);
uint32_t anysched_sleep(void *policy, struct anysched_answer *answer,
                        uint32_t task);
void anysched_yield(void *policy, uint32_t task);
void anysched_saved(void *policy, struct anysched_answer *answer,
                    uint32_t task, bool runnable);
void anysched_schedule(void *policy, struct anysched_answer *answer,
                       uint32_t cpu, bool runnable, bool tasklet,
                       enum anysched_fitness (*fitness)(void *data,
                                                        uint32_t task),
                       void *data);
void anysched_tick(void *policy, struct anysched_answer *answer, uint32_t cpu);
void anysched_timer(void *policy, struct anysched_answer *answer);
uint64_t anysched_now(const void *policy);
bool anysched_is_prompt(const void *policy);
void anysched_watch(const void *policy, struct anysched_answer *answer,
                    uint64_t limit);
void noreturn anysched_give_up(const void *policy,
                               const struct anysched_answer *answer,
                               uint64_t limit, uint32_t domain, uint32_t vcpu);
void anysched_dump(const void *policy);
void anysched_flush(void);

/* What is called from there. */
void anysched_kick(uint32_t cpu);
void anysched_print(const char *text, size_t length);
void noreturn anysched_panic(const char *text, size_t length);

static char __read_mostly opt_anysched[800];
string_param("anysched", opt_anysched);

/* Seconds after which a vCPU that is ready has to run; 0: whenever. */
static unsigned int __read_mostly opt_watchdog = 30;
integer_param("anysched_watchdog", opt_watchdog);

/*
 * Which of Xen's own schedulers tools are to take a pool's for: that one's
 * calls then serve here. Without it they find a number that they do not know,
 * and xl refuses to build domains.
 */
static char __read_mostly opt_as[12];
string_param("anysched_as", opt_as);

static const struct {
    const char *name;
    unsigned int id;
} known_to_tools[] = {
    { "credit", XEN_SCHEDULER_CREDIT },
    { "credit2", XEN_SCHEDULER_CREDIT2 },
    { "rtds", XEN_SCHEDULER_RTDS },
};

/* Policies allocate with interrupts off: their memory is taken at boot. */
#define HEAP_ORDER 12 /* 16 MB */

/* A pCPU of a pool. */
struct pcpu {
    struct timer tick, slice;
    uint64_t ends; /* when the slice does, or NEVER */
    uint64_t due;  /* when its timer ends, not later than that, or NEVER */
    bool ticks;
    bool online; /* for the policy */
    bool valid;  /* has been in the pool since it came */
};

struct pool {
    spinlock_t lock;
    void *policy;
    uint32_t number;
    uint64_t tick_period; /* 0: none */
    struct timer timer;   /* the policy's, on one of the pool's pCPUs */
    struct timer watch;   /* looks for vCPUs that do not run; there, too */
    bool has_timer;       /* both are there */
    uint64_t due;         /* when the timer ends, or NEVER */
    struct unit **tasks;  /* by the policy's number */
    unsigned int room;
    struct pcpu *pcpus;
};

/* What the policy is told of a domain. */
struct dom {
    const struct domain *domain;
    uint16_t weight, cap;
};

struct unit {
    struct sched_unit *unit;
    const struct dom *dom; /* NULL: the idle domain's */
    uint32_t task;         /* or NONE, of idle units and those not inserted */
    bool awaited;          /* somebody waits for its registers */
    uint64_t period, budget;
};

static struct pool *pool_of(const struct scheduler *ops)
{
    return ops->sched_data;
}

static struct unit *unit_of(const struct sched_unit *unit)
{
    return unit->priv;
}

void anysched_kick(uint32_t cpu)
{
    cpu_raise_softirq(cpu, SCHEDULE_SOFTIRQ);
}

void anysched_print(const char *text, size_t length)
{
    printk("%.*s\n", (int)length, text);
}

void noreturn anysched_panic(const char *text, size_t length)
{
    panic("%.*s\n", (int)length, text);
}

static struct anysched_answer at(s_time_t now)
{
    return (struct anysched_answer){
        .now = now,
        .timer = NEVER,
        .slice = NEVER,
        .task = NONE,
    };
}

/* Sets the policy's timer to what a call has made of it. */
static void obey(struct pool *pool, const struct anysched_answer *answer)
{
    if ( answer->timer == pool->due || !pool->has_timer )
        return;
    pool->due = answer->timer;
    if ( answer->timer == NEVER )
        stop_timer(&pool->timer);
    else
        set_timer(&pool->timer, answer->timer);
}

static void cf_check timer_fn(void *data)
{
    struct pool *pool = data;
    struct anysched_answer answer;
    unsigned long flags;

    spin_lock_irqsave(&pool->lock, flags);
    answer = at(NOW());
    pool->due = 0; /* It is not set any more, whenever it is due next. */
    anysched_timer(pool->policy, &answer);
    obey(pool, &answer);
    spin_unlock_irqrestore(&pool->lock, flags);
}

static void set_watch(struct pool *pool, s_time_t now)
{
    if ( opt_watchdog && anysched_is_prompt(pool->policy) )
        set_timer(&pool->watch, now + SECONDS((uint64_t)opt_watchdog) / 4);
}

static void cf_check watch_fn(void *data)
{
    struct pool *pool = data;
    struct anysched_answer answer;
    uint64_t limit = SECONDS((uint64_t)opt_watchdog);
    unsigned long flags;

    spin_lock_irqsave(&pool->lock, flags);
    answer = at(NOW());
    anysched_watch(pool->policy, &answer, limit);
    if ( answer.task != NONE )
    {
        const struct sched_unit *unit = pool->tasks[answer.task]->unit;

        anysched_give_up(pool->policy, &answer, limit,
                         unit->domain->domain_id, unit->unit_id);
    }
    set_watch(pool, answer.now);
    spin_unlock_irqrestore(&pool->lock, flags);
}

/* Ticks are at multiples of the period. */
static void set_tick(struct pool *pool, struct pcpu *pcpu, s_time_t now)
{
    set_timer(&pcpu->tick, now - now % pool->tick_period + pool->tick_period);
}

static void cf_check tick_fn(void *data)
{
    struct pool *pool = data;
    unsigned int cpu = smp_processor_id();
    struct pcpu *pcpu = &pool->pcpus[cpu];
    struct anysched_answer answer;
    unsigned long flags;

    spin_lock_irqsave(&pool->lock, flags);
    if ( pcpu->ticks )
    {
        answer = at(NOW());
        anysched_tick(pool->policy, &answer, cpu);
        obey(pool, &answer);
        set_tick(pool, pcpu, answer.now);
    }
    spin_unlock_irqrestore(&pool->lock, flags);
}

static void cf_check slice_fn(void *data)
{
    struct pcpu *pcpu = data;

    pcpu->due = NEVER;
    if ( pcpu->ends <= NOW() )
        raise_softirq(SCHEDULE_SOFTIRQ);
    else if ( pcpu->ends != NEVER )
        set_timer(&pcpu->slice, pcpu->due = pcpu->ends);
}

/*
 * What a pCPU runs has this slice. The timer is left as it is if it ends
 * before: to set it anew takes longer than to find out then that it is early,
 * and most slices do not last that long.
 */
static void set_slice(struct pcpu *pcpu, s_time_t now, uint64_t slice)
{
    pcpu->ends = slice < (1UL << 62) ? now + slice : NEVER;
    if ( pcpu->ends < pcpu->due )
        set_timer(&pcpu->slice, pcpu->due = pcpu->ends);
}

static int cf_check anysched_global_init(void)
{
    void *region;

    if ( !opt_anysched[0] )
        return 0;
    region = alloc_xenheap_pages(HEAP_ORDER, 0);
    if ( !region )
        return -ENOMEM;
    anysched_give_memory(region, PAGE_SIZE << HEAP_ORDER);
    return 0;
}

static void free_pool(struct pool *pool)
{
    xfree(pool->pcpus);
    xfree(pool->tasks);
    xfree(pool);
}

/* The policy of a pool that has no pCPU yet. */
static void *new_policy(unsigned int cpus, uint32_t number)
{
    struct anysched_place *places = xzalloc_array(struct anysched_place, cpus);
    struct anysched_answer answer;
    unsigned long flags;
    unsigned int cpu;
    void *policy;

    if ( !places )
        return NULL;
    for ( cpu = 0; cpu < cpus; cpu++ )
    {
        bool known = cpu_online(cpu);

        places[cpu].node = known ? cpu_to_node(cpu) : 0;
        places[cpu].socket = known ? cpu_to_socket(cpu) : 0;
        places[cpu].core = known ? cpu_to_core(cpu) : 1000 + cpu;
    }
    local_irq_save(flags);
    policy = anysched_new(opt_anysched, strlen(opt_anysched), places, cpus,
                          number);
    for ( cpu = 0; cpu < cpus; cpu++ )
    {
        answer = at(NOW());
        anysched_online(policy, &answer, cpu, false);
    }
    local_irq_restore(flags);
    xfree(places);
    return policy;
}

/* The number by which tools know a pool's scheduler; 0: there is none. */
static unsigned int id_for_tools(void)
{
    unsigned int i;

    if ( !opt_as[0] )
        return XEN_SCHEDULER_ANYSCHED;
    for ( i = 0; i < ARRAY_SIZE(known_to_tools); i++ )
        if ( !strcmp(opt_as, known_to_tools[i].name) )
            return known_to_tools[i].id;
    return 0;
}

static int cf_check anysched_init(struct scheduler *ops)
{
    /* Instance 0 is Xen's until pool 0 is there. */
    static unsigned int instances;
    struct pool *pool;
    unsigned int id = id_for_tools();

    if ( !opt_anysched[0] )
    {
        printk(XENLOG_ERR "anysched: no policy is named: anysched=POLICY\n");
        return -EINVAL;
    }
    if ( nr_cpu_ids > MAX_CPUS )
    {
        printk(XENLOG_ERR "anysched: %u pCPUs, but %u at most: maxcpus=%u\n",
               nr_cpu_ids, MAX_CPUS, MAX_CPUS);
        return -EINVAL;
    }
    if ( !id )
    {
        printk(XENLOG_ERR "anysched: anysched_as=%s: credit, credit2 or rtds\n",
               opt_as);
        return -EINVAL;
    }
    pool = xzalloc(struct pool);
    if ( !pool )
        return -ENOMEM;
    spin_lock_init(&pool->lock);
    pool->due = NEVER;
    pool->room = 64;
    pool->tasks = xzalloc_array(struct unit *, pool->room);
    pool->pcpus = xzalloc_array(struct pcpu, nr_cpu_ids);
    pool->number = instances++;
    if ( pool->tasks && pool->pcpus )
        pool->policy = new_policy(nr_cpu_ids, pool->number);
    if ( !pool->policy )
    {
        free_pool(pool);
        return -ENOMEM;
    }
    pool->tick_period = anysched_tick_period(pool->policy);
    ops->sched_data = pool;
    /* Xen finds the scheduler of pool 0 by the number of its default one. */
    if ( ops != scheduler_get_default() )
        ops->sched_id = id;
    return 0;
}

static void cf_check anysched_deinit(struct scheduler *ops)
{
    struct pool *pool = pool_of(ops);
    unsigned long flags;
    unsigned int cpu;

    if ( pool->has_timer )
    {
        kill_timer(&pool->timer);
        kill_timer(&pool->watch);
    }
    for ( cpu = 0; cpu < nr_cpu_ids; cpu++ )
        if ( pool->pcpus[cpu].tick.status != TIMER_STATUS_invalid )
        {
            kill_timer(&pool->pcpus[cpu].tick);
            kill_timer(&pool->pcpus[cpu].slice);
        }
    local_irq_save(flags);
    anysched_drop(pool->policy);
    local_irq_restore(flags);
    free_pool(pool);
    ops->sched_data = NULL;
}

static void *cf_check anysched_alloc_domdata(const struct scheduler *ops,
                                             struct domain *d)
{
    struct dom *dom = xzalloc(struct dom);

    if ( !dom )
        return ERR_PTR(-ENOMEM);
    dom->domain = d;
    dom->weight = 256;
    return dom;
}

static void cf_check anysched_free_domdata(const struct scheduler *ops,
                                           void *data)
{
    struct pool *pool = pool_of(ops);
    struct dom *dom = data;
    unsigned long flags;

    if ( !dom )
        return;
    spin_lock_irqsave(&pool->lock, flags);
    anysched_disband(pool->policy, dom->domain->domain_id);
    spin_unlock_irqrestore(&pool->lock, flags);
    xfree(dom);
}

static void *cf_check anysched_alloc_udata(const struct scheduler *ops,
                                           struct sched_unit *unit, void *data)
{
    struct unit *u = xzalloc(struct unit);

    if ( u )
        *u = (struct unit){ .unit = unit, .dom = data, .task = NONE };
    return u;
}

static void cf_check anysched_free_udata(const struct scheduler *ops,
                                         void *data)
{
    xfree(data);
}

/* With the lock of the idle scheduler held; the pool's nests in it. */
static spinlock_t *cf_check anysched_switch_sched(struct scheduler *ops,
                                                  unsigned int cpu,
                                                  void *pdata, void *data)
{
    struct pool *pool = pool_of(ops);
    struct pcpu *pcpu = &pool->pcpus[cpu];
    struct anysched_answer answer;

    sched_idle_unit(cpu)->priv = data;
    spin_lock(&pool->lock);
    if ( !pool->has_timer )
    {
        init_timer(&pool->timer, timer_fn, pool, cpu);
        init_timer(&pool->watch, watch_fn, pool, cpu);
        pool->has_timer = true;
        set_watch(pool, NOW());
    }
    if ( pcpu->tick.status == TIMER_STATUS_invalid )
    {
        init_timer(&pcpu->tick, tick_fn, pool, cpu);
        init_timer(&pcpu->slice, slice_fn, pcpu, cpu);
    }
    else
    {
        migrate_timer(&pcpu->tick, cpu); /* They went when the pCPU did. */
        migrate_timer(&pcpu->slice, cpu);
    }
    pcpu->ticks = false;
    pcpu->ends = pcpu->due = NEVER;
    pcpu->valid = false;
    pcpu->online = true;
    answer = at(NOW());
    anysched_online(pool->policy, &answer, cpu, true);
    obey(pool, &answer);
    spin_unlock(&pool->lock);
    return &pool->lock;
}

/* With the pool's lock held. */
static void set_offline(struct pool *pool, unsigned int cpu)
{
    struct pcpu *pcpu = &pool->pcpus[cpu];
    struct anysched_answer answer = at(NOW());

    if ( !pcpu->online )
        return;
    pcpu->online = false;
    anysched_online(pool->policy, &answer, cpu, false);
    obey(pool, &answer);
}

/* Without the pool's lock: Xen has let it go (schedule_cpu_rm). */
static void cf_check anysched_deinit_pdata(const struct scheduler *ops,
                                           void *pdata, int cpu)
{
    struct pool *pool = pool_of(ops);
    unsigned int other;
    unsigned long flags;

    spin_lock_irqsave(&pool->lock, flags);
    set_offline(pool, cpu);
    /* Not killed: that waits for a tick which waits for this lock. */
    pool->pcpus[cpu].ticks = false;
    stop_timer(&pool->pcpus[cpu].tick);
    stop_timer(&pool->pcpus[cpu].slice);
    if ( ops->cpupool && pool->has_timer && pool->timer.cpu == cpu )
    {
        other = cpumask_any(ops->cpupool->cpu_valid);
        if ( other < nr_cpu_ids && other != cpu )
        {
            migrate_timer(&pool->timer, other);
            migrate_timer(&pool->watch, other);
        }
    }
    spin_unlock_irqrestore(&pool->lock, flags);
}

static void copy_mask(uint64_t words[MAX_CPUS / 64], const cpumask_t *mask)
{
    unsigned int cpu;

    for_each_cpu ( cpu, mask )
        if ( cpu < MAX_CPUS )
            words[cpu / 64] |= 1UL << (cpu % 64);
}

static struct anysched_vcpu describe(const struct unit *u,
                                     const cpumask_t *hard,
                                     const cpumask_t *soft)
{
    struct anysched_vcpu vcpu = {
        .period = u->period,
        .budget = u->budget,
        .domain = u->unit->domain->domain_id,
        .weight = u->dom ? u->dom->weight : 256,
    };

    copy_mask(vcpu.affinity, hard);
    copy_mask(vcpu.preferred, soft);
    return vcpu;
}

static struct sched_resource *cf_check
anysched_pick_resource(const struct scheduler *ops,
                       const struct sched_unit *unit)
{
    unsigned int cpu = sched_unit_master(unit);
    cpumask_t *mask = cpumask_scratch_cpu(cpu);

    cpumask_and(mask, cpupool_domain_master_cpumask(unit->domain),
                unit->cpu_hard_affinity);
    /*
     * The last pCPU of those has begun to leave the pool, and the affinity is
     * not reset yet: that is done by a tasklet (cpupool_unassign_cpu_start and
     * _finish), between which registers may have been saved here.
     */
    if ( cpumask_empty(mask) )
        cpumask_copy(mask, cpupool_domain_master_cpumask(unit->domain));
    if ( !cpumask_test_cpu(cpu, mask) && !cpumask_empty(mask) )
        cpu = cpumask_cycle(cpu, mask);
    return get_sched_res(cpu);
}

/* Whose vCPU wakes another: nobody's in an interrupt. */
static uint32_t waker(void)
{
    return in_irq() || is_idle_vcpu(current) ? NONE : smp_processor_id();
}

/*
 * Whether a pCPU still has the registers of a unit; then anysched_saved is
 * called when it has not. With the pool's lock held, which whoever saves them
 * takes only if he sees the mark.
 */
static bool await_registers(struct sched_unit *unit)
{
    if ( !unit->is_running )
        return false;
    unit_of(unit)->awaited = true;
    smp_mb();
    return unit->is_running;
}

/* With the pool's lock held. */
static void wake(struct pool *pool, struct sched_unit *unit)
{
    struct anysched_answer answer = at(NOW());

    anysched_wake(pool->policy, &answer, unit_of(unit)->task,
                  await_registers(unit), waker());
    obey(pool, &answer);
}

/* Room for one more task. Fails without memory. */
static bool make_room(struct pool *pool, uint32_t task)
{
    unsigned int room = pool->room * 2;
    struct unit **tasks;

    if ( task < pool->room )
        return true;
    tasks = xzalloc_array(struct unit *, room);
    if ( !tasks )
        return false;
    memcpy(tasks, pool->tasks, pool->room * sizeof(*tasks));
    xfree(pool->tasks);
    pool->tasks = tasks;
    pool->room = room;
    return true;
}

static void cf_check anysched_insert_unit(const struct scheduler *ops,
                                          struct sched_unit *unit)
{
    struct pool *pool = pool_of(ops);
    struct unit *u = unit_of(unit);
    unsigned int cpu = smp_processor_id();
    struct anysched_answer answer;
    struct anysched_vcpu vcpu;
    spinlock_t *lock;

    if ( is_idle_unit(unit) )
        return;

    lock = pcpu_schedule_lock_irq(cpu);
    sched_set_res(unit, anysched_pick_resource(ops, unit));
    pcpu_schedule_unlock_irq(lock, cpu);

    lock = unit_schedule_lock_irq(unit);
    vcpu = describe(u, unit->cpu_hard_affinity, unit->cpu_soft_affinity);
    answer = at(NOW());
    u->task = anysched_attach(pool->policy, &answer, &vcpu);
    if ( !make_room(pool, u->task) )
        panic("anysched: no memory for %u vCPUs\n", u->task + 1);
    pool->tasks[u->task] = u;
    TRACE_TIME(TRC_ANYSCHED_ATTACH, u->task,
               unit->domain->domain_id << 16 | unit->unit_id, pool->number);
    obey(pool, &answer);
    if ( unit_runnable(unit) && !unit->is_running )
        wake(pool, unit);
    unit_schedule_unlock_irq(lock, unit);
}

static void cf_check anysched_remove_unit(const struct scheduler *ops,
                                          struct sched_unit *unit)
{
    struct pool *pool = pool_of(ops);
    struct unit *u = unit_of(unit);
    struct anysched_answer answer;
    spinlock_t *lock = unit_schedule_lock_irq(unit);

    if ( u->task != NONE )
    {
        answer = at(NOW());
        anysched_detach(pool->policy, &answer, u->task);
        pool->tasks[u->task] = NULL;
        u->task = NONE;
        obey(pool, &answer);
    }
    unit_schedule_unlock_irq(lock, unit);
}

/* In sleep, wake, yield and do_schedule the pool's lock is held. */
static void cf_check anysched_sleep_unit(const struct scheduler *ops,
                                         struct sched_unit *unit)
{
    struct pool *pool = pool_of(ops);
    struct anysched_answer answer = at(NOW());
    uint32_t cpu;

    if ( unit_of(unit)->task == NONE )
        return;
    cpu = anysched_sleep(pool->policy, &answer, unit_of(unit)->task);
    if ( cpu != NONE )
        cpu_raise_softirq(cpu, SCHEDULE_SOFTIRQ);
    obey(pool, &answer);
}

static void cf_check anysched_wake_unit(const struct scheduler *ops,
                                        struct sched_unit *unit)
{
    if ( unit_of(unit)->task != NONE )
        wake(pool_of(ops), unit);
}

static void cf_check anysched_yield_unit(const struct scheduler *ops,
                                         struct sched_unit *unit)
{
    if ( unit_of(unit)->task != NONE )
        anysched_yield(pool_of(ops)->policy, unit_of(unit)->task);
}

static void noinline registers_are_saved(struct pool *pool,
                                         struct sched_unit *unit)
{
    spinlock_t *lock = unit_schedule_lock_irq(unit);
    struct unit *u = unit_of(unit);
    struct anysched_answer answer;

    u->awaited = false;
    if ( u->task != NONE )
    {
        answer = at(NOW());
        anysched_saved(pool->policy, &answer, u->task, unit_runnable(unit));
        obey(pool, &answer);
    }
    unit_schedule_unlock_irq(lock, unit);
}

/* After a barrier behind which the unit is not running any more. */
static void cf_check anysched_context_saved(const struct scheduler *ops,
                                            struct sched_unit *unit)
{
    if ( unlikely(unit_of(unit)->awaited) )
        registers_are_saved(pool_of(ops), unit);
}

/* Of what a pCPU of the pool picks. */
struct choice {
    const struct pool *pool;
    const struct sched_unit *prev;
};

static enum anysched_fitness fitness(void *data, uint32_t task)
{
    const struct choice *choice = data;
    struct sched_unit *unit = choice->pool->tasks[task]->unit;

    if ( unlikely(unit->is_running) && unit != choice->prev &&
         await_registers(unit) )
        return ANYSCHED_SAVING;
    /* This is also what sets the runstate that the vCPU is about to have. */
    return unit_runnable_state(unit) ? ANYSCHED_RUNS : ANYSCHED_PAUSED;
}

/* Whether a pCPU is about to leave the pool: it must pick nothing. */
static bool leaves(const struct scheduler *ops, struct pcpu *pcpu,
                   unsigned int cpu)
{
    bool valid = ops->cpupool && cpumask_test_cpu(cpu, ops->cpupool->cpu_valid);

    if ( !valid )
        return pcpu->valid;
    pcpu->valid = true;
    return false;
}

static void cf_check anysched_do_schedule(const struct scheduler *ops,
                                          struct sched_unit *prev,
                                          s_time_t now, bool tasklet)
{
    struct pool *pool = pool_of(ops);
    unsigned int cpu = smp_processor_id();
    struct pcpu *pcpu = &pool->pcpus[cpu];
    struct sched_unit *next = sched_idle_unit(cpu);
    struct anysched_answer answer;
    bool leaving = leaves(ops, pcpu, cpu);

    if ( !pcpu->online )
        answer = at(now);
    else
    {
        struct choice choice = { .pool = pool, .prev = prev };
        bool runnable = !is_idle_unit(prev) && unit_runnable(prev);

        answer.now = now; /* All else of it is set. */
        TRACE_TIME(TRC_ANYSCHED_CLOCK, now, now >> 32, pool->number);
        anysched_schedule(pool->policy, &answer, cpu, runnable,
                          tasklet || leaving, fitness, &choice);
        if ( unlikely(tb_init_done) && !tasklet && !leaving )
        {
            uint64_t told = anysched_now(pool->policy);

            TRACE_TIME(TRC_ANYSCHED_ASKED, told, told >> 32, pool->number);
        }
        obey(pool, &answer);
        if ( leaving )
            set_offline(pool, cpu);
    }
    next->migrated = false;
    if ( answer.task == NONE )
        /*
         * When the pCPU leaves, Xen writes to what its idle unit had next
         * (schedule_cpu_rm), which may have been freed long before.
         */
        next->next_task = next;
    else
    {
        next = pool->tasks[answer.task]->unit;
        next->migrated = sched_unit_master(next) != cpu;
        if ( next->migrated )
            sched_set_res(next, get_sched_res(cpu));
    }
    prev->next_task = next;
    prev->next_time = -1; /* Xen's own timer is set anew each time. */
    set_slice(pcpu, now, answer.slice);
    if ( pool->tick_period && pcpu->ticks != (answer.task != NONE) )
    {
        pcpu->ticks = !pcpu->ticks;
        if ( pcpu->ticks )
            set_tick(pool, pcpu, now);
        else
            stop_timer(&pcpu->tick);
    }
}

/* With the pool's lock held. A mask that is not given stays. */
static void update(struct pool *pool, const struct unit *u,
                   const cpumask_t *hard, const cpumask_t *soft)
{
    struct anysched_vcpu vcpu =
        describe(u, hard ?: u->unit->cpu_hard_affinity,
                 soft ?: u->unit->cpu_soft_affinity);
    struct anysched_answer answer = at(NOW());

    if ( u->task == NONE )
        return;
    anysched_update(pool->policy, &answer, u->task, &vcpu);
    obey(pool, &answer);
}

static void cf_check anysched_adjust_affinity(const struct scheduler *ops,
                                              struct sched_unit *unit,
                                              const cpumask_t *hard,
                                              const cpumask_t *soft)
{
    if ( unit_of(unit) )
        update(pool_of(ops), unit_of(unit), hard, soft);
}

/* Weight and cap of a domain, as Credit and Credit2 have them. */
static void set_share(struct pool *pool, struct domain *d,
                       const struct xen_domctl_sched_credit *credit)
{
    struct dom *dom = d->sched_priv;
    const struct sched_unit *unit;
    struct anysched_answer answer;
    unsigned long flags;

    spin_lock_irqsave(&pool->lock, flags);
    if ( credit->weight )
        dom->weight = credit->weight;
    if ( credit->cap != (uint16_t)~0U )
        dom->cap = credit->cap;
    answer = at(NOW());
    anysched_domain(pool->policy, &answer, d->domain_id, dom->weight,
                    dom->cap);
    obey(pool, &answer);
    for_each_sched_unit ( d, unit )
        update(pool, unit_of(unit), NULL, NULL);
    spin_unlock_irqrestore(&pool->lock, flags);
}

/* Period and budget of a vCPU in microseconds, as RTDS has them. */
static int set_period(struct pool *pool, struct unit *u,
                    const struct xen_domctl_sched_rtds *rtds)
{
    unsigned long flags;

    if ( !rtds->period || !rtds->budget || rtds->budget > rtds->period )
        return -EINVAL;
    spin_lock_irqsave(&pool->lock, flags);
    u->period = MICROSECS((uint64_t)rtds->period);
    u->budget = MICROSECS((uint64_t)rtds->budget);
    update(pool, u, NULL, NULL);
    spin_unlock_irqrestore(&pool->lock, flags);
    return 0;
}

/* Period and budget of all vCPUs of a domain. */
static int set_periods(struct pool *pool, struct domain *d,
                       const struct xen_domctl_sched_rtds *rtds)
{
    const struct sched_unit *unit;
    int error;

    for_each_sched_unit ( d, unit )
        if ( (error = set_period(pool, unit_of(unit), rtds)) )
            return error;
    return 0;
}

/* One of the vCPUs of a call. */
static int adjust_vcpu(struct pool *pool, struct domain *d,
                       struct xen_domctl_scheduler_op *op, uint32_t number)
{
    struct xen_domctl_schedparam_vcpu vcpu;
    struct unit *u;

    if ( copy_from_guest_offset(&vcpu, op->u.v.vcpus, number, 1) )
        return -EFAULT;
    if ( vcpu.vcpuid >= d->max_vcpus || !d->vcpu[vcpu.vcpuid] )
        return -EINVAL;
    u = unit_of(d->vcpu[vcpu.vcpuid]->sched_unit);
    if ( op->cmd == XEN_DOMCTL_SCHEDOP_putvcpuinfo )
        return set_period(pool, u, &vcpu.u.rtds);
    vcpu.u.rtds.period = u->period / MICROSECS(1);
    vcpu.u.rtds.budget = u->budget / MICROSECS(1);
    vcpu.u.rtds.flags = 0;
    return copy_to_guest_offset(op->u.v.vcpus, number, &vcpu, 1) ? -EFAULT : 0;
}

static int cf_check anysched_adjust(const struct scheduler *ops,
                                    struct domain *d,
                                    struct xen_domctl_scheduler_op *op)
{
    struct pool *pool = pool_of(ops);
    const struct dom *dom = d->sched_priv;
    bool has_periods = op->sched_id == XEN_SCHEDULER_RTDS;
    uint32_t number;
    int error;

    switch ( op->cmd )
    {
    case XEN_DOMCTL_SCHEDOP_getinfo:
        if ( has_periods )
        {
            /* What a domain gets if nothing else is said, as in RTDS. */
            op->u.rtds.period = 10000;
            op->u.rtds.budget = 4000;
            return 0;
        }
        op->u.credit.weight = dom->weight;
        op->u.credit.cap = dom->cap;
        return 0;

    case XEN_DOMCTL_SCHEDOP_putinfo:
        if ( has_periods )
            return set_periods(pool, d, &op->u.rtds);
        set_share(pool, d, &op->u.credit);
        return 0;

    case XEN_DOMCTL_SCHEDOP_putvcpuinfo:
    case XEN_DOMCTL_SCHEDOP_getvcpuinfo:
        for ( number = 0; number < op->u.v.nr_vcpus; number++ )
        {
            error = adjust_vcpu(pool, d, op, number);
            if ( error )
            {
                op->u.v.nr_vcpus = number;
                return error;
            }
        }
        return 0;

    default:
        return -EINVAL;
    }
}

static void cf_check anysched_dump_settings(const struct scheduler *ops)
{
    struct pool *pool = pool_of(ops);
    unsigned long flags;

    spin_lock_irqsave(&pool->lock, flags);
    anysched_dump(pool->policy);
    anysched_flush();
    spin_unlock_irqrestore(&pool->lock, flags);
}

static const struct scheduler sched_anysched_def = {
    .name = "Policies of anysched",
    .opt_name = "anysched",
    .sched_id = XEN_SCHEDULER_ANYSCHED,

    .global_init = anysched_global_init,
    .init = anysched_init,
    .deinit = anysched_deinit,
    .alloc_domdata = anysched_alloc_domdata,
    .free_domdata = anysched_free_domdata,
    .alloc_udata = anysched_alloc_udata,
    .free_udata = anysched_free_udata,
    .switch_sched = anysched_switch_sched,
    .deinit_pdata = anysched_deinit_pdata,
    .insert_unit = anysched_insert_unit,
    .remove_unit = anysched_remove_unit,
    .sleep = anysched_sleep_unit,
    .wake = anysched_wake_unit,
    .yield = anysched_yield_unit,
    .context_saved = anysched_context_saved,
    .do_schedule = anysched_do_schedule,
    .pick_resource = anysched_pick_resource,
    .adjust = anysched_adjust,
    .adjust_affinity = anysched_adjust_affinity,
    .dump_settings = anysched_dump_settings,
};

REGISTER_SCHEDULER(sched_anysched_def);
