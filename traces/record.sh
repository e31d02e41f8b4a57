#!/usr/bin/env bash
# Record the scheduling of a command with the kernel's own tracing.
#
#     record.sh OUT.txt.gz COMMAND [ARG…]
#
# Needs root and tracefs at /sys/kernel/tracing. Waits until the machine is
# quiet, runs COMMAND, and writes the `trace` file of a private trace instance:
# every scheduling event of every CPU, in time order, while COMMAND ran.
# Only one thing in it is changed: the names of user tasks that are neither
# COMMAND nor its descendants become `other`. (Filtering by set_event_pid
# would leave gaps where those tasks and the kernel's threads had the CPU.)
# Some virtual machines record nothing of what a CPU does outside interrupts
# in its idle task or in the tasks of init, so the switches from these are
# missing: they are counted. Figures go to standard error. Fails if events were
# lost, or if other tasks had more than 1 % of the CPU time: then run it again.
set -eu

[ $# -ge 2 ] || { sed -n '2,/^set/{/^#/s/^# \?//p}' "$0" >&2; exit 2; }
out=$1
shift
tmp=$(mktemp -d)
trace=/sys/kernel/tracing/instances/record-$$
cleanup() {
    [ ! -d "$trace" ] || { echo 0 >"$trace/tracing_on"; rmdir "$trace"; }
    rm -rf "$tmp"
}
trap cleanup EXIT

mkdir "$trace"
echo 0 >"$trace/tracing_on"
echo mono >"$trace/trace_clock"
echo 131072 >"$trace/buffer_size_kb" # per CPU
for event in switch waking wakeup wakeup_new migrate_task process_fork process_exit; do
    echo 1 >"$trace/events/sched/sched_$event/enable"
done

# The command waits at a fifo, so that it is known before it starts.
mkfifo "$tmp/go"
(read -r _ <"$tmp/go" && exec "$@") &
root=$!

# Quiet: two CPU-seconds of which less than a tenth is used.
ticks() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $2 + $3 + $4 + $5 + $6 + $7 + $8 }' /proc/stat; }
until
    before=$(ticks)
    sleep 1
    echo "$before $(ticks)" | awk '{ exit !(10 * ($3 - $1) < $4 - $2) }'
do :; done

kernel_threads=$(ps -eo pid=,ppid= | awk '$1 == 2 || $2 == 2 { print $1 }' | tr '\n' ' ')
status=0
echo 1 >"$trace/tracing_on"
echo >"$tmp/go"
wait "$root" || status=$?
echo 0 >"$trace/tracing_on"
[ "$status" -eq 0 ] || { echo "command failed: $status" >&2; exit 1; }
if grep -HE '^(overrun|commit overrun|dropped events): [1-9]' "$trace"/per_cpu/cpu*/stats >&2; then
    echo "events were lost" >&2
    exit 1
fi
cat "$trace/trace" >"$tmp/raw"

awk -v root="$root" -v kernel="$kernel_threads" '
    BEGIN {
        kind[0] = "idle"; kind[root] = "command"
        n = split(kernel, k, " ")
        for (i = 1; i <= n; i++) kind[k[i]] = "kernel"
        split(" ,prev_,next_,child_", prefix, ",")
        prefix[1] = ""
    }
    function kind_of(pid) { return pid in kind ? kind[pid] : "other" }
    # The number after the field `name=` of this line.
    function number(name, at) {
        at = index($0, " " name "=")
        return substr($0, at + length(name) + 2) + 0
    }
    # Hides the name in `<p>comm=NAME <p>pid=PID` if PID is a foreign task.
    function hide(p, at, name, rest) {
        at = index($0, " " p "comm=")
        if (!at || kind_of(number(p "pid")) != "other") return
        at += length(p) + 6
        rest = substr($0, at)
        $0 = substr($0, 1, at - 1) "other" substr(rest, index(rest, " " p "pid="))
    }
    /^#/ { print; next }
    {
        # "   comm-pid [cpu] flags time: event: …"; comm may hold blanks.
        match($0, /-[0-9]+ +\[[0-9]+\] [^ ]+ +[0-9.]+: [a-z_]+: /)
        split(substr($0, RSTART + 1, RLENGTH - 1), head, / +/)
        pid = head[1]; cpu = head[2]; flags = head[3]; time = head[4] + 0
        event = substr(head[5], 1, length(head[5]) - 1)

        if (event == "sched_process_fork") {
            child = number("child_pid")
            kind[child] = kind_of(number("pid"))
            if (kind[child] == "other") delete kind[child]
        }
        if (kind_of(pid) == "other")
            $0 = sprintf("%16s", "other") substr($0, RSTART)
        for (i = 1; i <= 4; i++) hide(prefix[i])
        print

        count[event]++
        if (!start) start = time
        end = time
        cpu_number = substr(cpu, 2) + 0
        if (event ~ /wak/) { ready[number("pid")] = time; ready_cpu[number("pid")] = number("target_cpu") }
        if (event ~ /migrate/) { ready[number("pid")] = time; ready_cpu[number("pid")] = number("dest_cpu") }
        if (event == "sched_switch") {
            prev = number("prev_pid"); next_pid = number("next_pid")
            if (cpu in since && running[cpu] != prev) {
                # The switch to prev is not there. It came right after prev
                # was last made ready for this CPU, or at any rate after that.
                if (kind_of(running[cpu]) ~ /idle|other/) missing++; else broken++
                if (ready_cpu[prev] == cpu_number && ready[prev] > since[cpu]) {
                    used[kind_of(running[cpu])] += ready[prev] - since[cpu]
                    since[cpu] = ready[prev]
                }
            }
            if (cpu in since) {
                used[kind_of(prev)] += time - since[cpu]
                busy[cpu] += prev ? time - since[cpu] : 0
            }
            since[cpu] = time; running[cpu] = next_pid
            if (!(prev in seen)) { seen[prev]; tasks[kind_of(prev)]++ }
            if (!(next_pid in seen)) { seen[next_pid]; tasks[kind_of(next_pid)]++ }
        }
        if (event == "sched_waking") {
            context = substr(flags, 3, 1)
            if (context ~ /[hHzZ]/) by["hardirq"]++
            else if (context == "s") by[pid ? "softirq-in-task" : "softirq-in-idle"]++
            else by[pid ? "task" : "idle"]++
        }
    }
    END {
        e = "/dev/stderr"; span = end - start
        printf "span %.3f s\n", span >e
        for (x in count) printf "event %s %d\n", x, count[x] >e
        delete tasks["idle"]
        for (x in tasks) printf "tasks (%s) %d\n", x, tasks[x] >e
        for (x in used) printf "CPU time (%s) %.3f s\n", x, used[x] >e
        for (x in busy) printf "busy %s %.1f %%\n", x, 100 * busy[x] / span >e
        for (x in by) printf "sched_waking from %s %d\n", x, by[x] >e
        printf "switches from idle or other tasks not recorded %d\n", missing >e
        printf "other breaks in the chain of switches %d\n", broken >e
        if (broken) exit 1
        if (used["other"] > 0.01 * span * 2) { print "not quiet enough" >e; exit 1 }
    }
' "$tmp/raw" >"$tmp/out"
gzip -9 -n -c "$tmp/out" >"$out"
