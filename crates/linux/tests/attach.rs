//! `anysched attach` and `anysched record` in a guest, where this machine's scheduler is nobody
//! else's. `cargo xtask hosts` runs these.

mod guest;

use anysched_core::Machine;
use anysched_linux::{Purpose, Suite};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// What the command is linked with and the guest does not have.
const LIBRARIES: [&str; 2] =
    ["/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib/x86_64-linux-gnu/libm.so.6"];

/// As well for agents, which are linked on the machine that they are for.
const LIBBPF: &str = "/usr/lib/x86_64-linux-gnu/libbpf.so.1";

/// What scripts begin with.
const PRELUDE: &str = r#"
attach='anysched attach --module /lib/anysched/anysched.ko --bpf /lib/anysched/anysched.bpf.o'
in_agent='anysched attach --in agent --agent /usr/sbin/anysched-agent --bpf /lib/anysched/agent.bpf.o'
state() { cat /sys/kernel/sched_ext/state; }
until_enabled() { until grep -q enabled /sys/kernel/sched_ext/state; do sleep 0.1; done; }
is_clean() {
    [ "$(state)" = disabled ] || echo "the state is $(state)"
    [ ! -e /proc/anysched ] || echo "the module is loaded"
    [ ! -e /sys/fs/bpf/anysched ] || echo "something is pinned"
    [ ! -e /run/anysched ] || echo "a note is left"
    echo clean
}
# They hold nothing open that the guest waits for the end of.
(while :; do :; done) > /dev/null 2>&1 &
(while :; do sleep 0.01; done) > /dev/null 2>&1 &
"#;

/// The command, built as for all tests of the project: a full check has it already.
fn command() -> &'static Path {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--workspace", "--all-features", "--no-run", "--quiet", "--locked"]);
        assert!(cargo.status().unwrap().success());
        let test = std::env::current_exe().unwrap();
        test.ancestors().nth(2).unwrap().join("anysched")
    })
}

fn suite() -> &'static Suite {
    static SUITE: OnceLock<Suite> = OnceLock::new();
    let find = || Suite::find(Purpose::Build, &mut |line| println!("{line}")).unwrap();
    SUITE.get_or_init(find)
}

/// What the guest's shell prints when it runs `script`.
fn shell(script: &str) -> Vec<String> {
    shell_on("1 cpu", script, &[])
}

/// As [`shell`], on a machine in words and with files: where each is in the guest, and here.
fn shell_on(machine: &str, script: &str, files: &[(&str, &Path)]) -> Vec<String> {
    let image = guest::image().expect("a kernel that fits");
    let command_line = format!("{PRELUDE}{script}");
    let mut boot = guest::boot("stock-eevdf", "shell", &[("command", &command_line)]);
    boot.files = vec![("/bin/anysched".into(), command().into())];
    boot.files.extend(LIBRARIES.map(|path| (path.into(), suite().root.resolve(path).unwrap())));
    boot.files.extend(files.iter().map(|&(place, file)| (place.into(), file.into())));
    boot.machine = Machine::parse(machine).unwrap();
    boot.patience = Duration::from_secs(120);
    let mut lines = Vec::new();
    let ran = boot.run(image, &mut |line| {
        println!("{line}");
        lines.push(line.to_string());
    });
    ran.unwrap();
    lines
}

/// The lines between `begin` and the next `clean`.
fn part<'a>(lines: &'a [String], begin: &str) -> Vec<&'a str> {
    let lines = lines.iter().map(String::as_str);
    lines.skip_while(|line| *line != begin).skip(1).take_while(|line| *line != "clean").collect()
}

/// Whether one of `lines` begins with `text`.
fn is_said(lines: &[&str], text: &str) -> bool {
    lines.iter().any(|line| line.starts_with(text))
}

#[test]
#[ignore = "boots a kernel"]
fn a_policy_schedules_for_a_while() {
    let lines = shell(
        r#"
echo a-time
$attach --policy cfs --for 8s > /tmp/table 2>&1 & until_enabled
sleep 1; anysched attach --status; $attach --policy rr --for 1s; echo refused $?
wait $!; echo ended $?; cat /tmp/table; is_clean
echo a-command
$attach --policy gfs --set wake=tree --quiet -- \
    sh -c 'read state < /sys/kernel/sched_ext/state; echo it is $state; exit 7'
echo ended $?; is_clean
echo an-interrupt
$attach --policy rr --set quantum=5ms --format json > /tmp/table 2>&1 & until_enabled
sleep 2; kill -INT $!; wait $!; echo ended $?; cat /tmp/table; is_clean
echo a-command-that-goes-on
$attach --policy rr -- sleep 100 > /tmp/table 2>&1 & until_enabled
kill -TERM $!; wait $!; echo ended $?; is_clean
"#,
    );
    let time = part(&lines, "a-time");
    assert!(time.starts_with(&["cfs"]), "{time:?}");
    assert!(is_said(&time, "  watched by process ") && is_said(&time, "  attached 0:00:"));
    assert!(is_said(&time, "anysched: this machine is scheduled by cfs, attached 0:00:0"));
    assert!(time.contains(&"refused 1") && time.contains(&"ended 0"), "{time:?}");
    // A table for each interval, and one for all.
    let tables = time.iter().filter(|line| line.starts_with("cfs after ")).count();
    assert!((4..=8).contains(&tables) && is_said(&time, "cfs in all, for "), "{time:?}");
    assert_eq!(time.iter().filter(|line| line.starts_with("CPU  runs ")).count(), tables + 1);
    // On one CPU, who looks is who runs.
    assert!(time.iter().any(|line| line.contains(" anysched (")), "{time:?}");
    assert!(is_said(&time, "calls ") && !is_said(&time, "calls 0/s"), "{time:?}");
    assert!(time.iter().any(|line| line.contains("/s, latency p50 ")), "{time:?}");

    let command = part(&lines, "a-command");
    assert!(command.contains(&"it is enabled") && command.contains(&"ended 7"), "{command:?}");
    assert!(is_said(&command, "gfs in all, for ") && !is_said(&command, "gfs after "));

    let interrupt = part(&lines, "an-interrupt");
    assert_eq!(interrupt[0], "ended 0");
    let last = interrupt.last().unwrap();
    assert!(last.starts_with('{') && last.contains(r#""end":{"signal":2}"#), "{last}");
    assert!(last.contains(r#""policy":"rr""#), "{last}");
    assert_eq!(part(&lines, "a-command-that-goes-on"), ["ended 143"]);
}

#[test]
#[ignore = "boots a kernel"]
fn what_goes_wrong_is_said_and_leaves_nothing() {
    let lines = shell(
        r#"
echo unknown
$attach --policy nonesuch; echo ended $?
$attach --policy rr --set quantum=0; echo ended $?
$attach --policy rr --set boats=3; echo ended $?
$attach --policy rr -- /nonesuch; echo ended $?
anysched attach --policy rr; echo ended $?; is_clean
echo small
$attach --policy cfs --heap 64KiB --quiet -- \
    sh -c 'i=0; while [ $i -lt 500 ]; do sleep 10 & i=$((i+1)); done; wait' > /tmp/said 2>&1
code=$?; grep ^anysched /tmp/said; echo ended $code; is_clean
echo panic
$attach --policy cfs --fault panic:300 > /tmp/said 2>&1; code=$?; cat /tmp/said; echo ended $code; is_clean
echo memory
$attach --policy cfs --checked --fault memory:300 --quiet -- sh -c 'sleep 3; echo goes on' \
    > /tmp/said 2>&1; code=$?; cat /tmp/said; echo ended $code; is_clean
echo idle
$attach --policy rr --fault idle:300 --quiet; echo ended $?; is_clean
echo user
echo nobody:x:65534:65534::/:/bin/sh > /etc/passwd; su nobody -s /bin/sh -c "$attach --policy rr"; echo ended $?; is_clean
"#,
    );
    let unknown = part(&lines, "unknown");
    let expected = [
        "anysched: there is no policy `nonesuch`; `anysched policies` lists them",
        "ended 1",
        "anysched: rr: `quantum`: ",
        "ended 1",
        "anysched: rr: no parameter `boats`",
        "ended 1",
        "anysched: /nonesuch: ",
        "ended 1",
        "anysched: the headers of Linux 7.",
        "ended 1",
    ];
    assert_eq!(unknown.len(), expected.len(), "{unknown:?}");
    for (line, expected) in unknown.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}: {expected}");
    }
    for (name, said) in [
        ("small", "the policy's memory is used up: "),
        (
            "panic",
            "the policy has died: the policy panicked: asked to panic (anysched/hosts/start/src/fault.rs:",
        ),
        ("memory", "the policy has died: the policy's memory is used up: "),
        // Whichever of the watchdog's threads it is that gets no CPU.
        ("idle", "the policy has died: "),
        ("user", "this takes root: `sudo anysched attach --policy rr`"),
    ] {
        let lines = part(&lines, name);
        assert!(lines.iter().any(|line| line.contains(said)), "{name}: {lines:?}");
        assert_eq!(lines.last(), Some(&"ended 1"), "{name}");
    }
    let idle = part(&lines, "idle").join("");
    assert!(idle.contains(" failed to run for ") || idle.contains("watchdog failed"), "{idle}");
    let memory = part(&lines, "memory");
    assert!(memory.contains(&"goes on"), "{memory:?}");
    assert!(memory.iter().any(|line| line.ends_with("goes on under the kernel's own scheduler")));
}

/// From beginning to end, in the module and in an agent: who schedules, what it does, Ctrl-C, and
/// what is left behind; and what is said where it cannot be done.
#[test]
#[ignore = "boots a kernel: cargo xtask ci"]
fn quick_a_policy_is_attached_from_beginning_to_end() {
    let lines = shell(
        r#"
for place in "$attach" "$in_agent"; do
    echo first; anysched attach --status
    $place --policy cfs --set steal=never --every 500ms > /tmp/table 2>&1 & until_enabled
    sleep 2; anysched attach --status; $place --policy rr --for 1s; echo refused $?
    kill -INT $!; wait $!; echo ended $?; cat /tmp/table; is_clean
    echo change; anysched attach --change grouping=core; echo refused $?
    $place --policy gfs --set grouping=core --checked --record /tmp/log --quiet > /tmp/table 2>&1 & until_enabled
    anysched attach --change grouping=single; echo changed $?
    anysched attach --change grouping=boats; anysched attach --change wake=tree; echo refused $?
    anysched attach --status; kill -INT $!; wait $!; echo ended $?
    anysched replay /tmp/log --show | grep -o 'set_param .* to [a-z]*'; anysched replay /tmp/log; is_clean
done
echo headers; anysched attach --policy rr; echo ended $?
echo root; echo nobody:x:65534:65534::/:/bin/sh > /etc/passwd
su nobody -s /bin/sh -c "$attach --policy rr; $in_agent --policy rr"
echo sched-ext; busybox mount -t tmpfs none /sys/kernel; anysched attach --policy rr; echo ended $?
"#,
    );
    let firsts: Vec<usize> = (0..lines.len()).filter(|&line| lines[line] == "first").collect();
    assert_eq!(firsts.len(), 2, "{lines:?}");
    for (at, is_agent) in firsts.into_iter().zip([false, true]) {
        let said = part(&lines[at..], "first");
        assert!(said.starts_with(&["the kernel's own scheduler", "cfs"]), "{said:?}");
        assert!(is_said(&said, "  attached 0:00:0") && is_said(&said, "  watched by process "));
        assert!(said.contains(&"  steal = never"), "{said:?}");
        assert_eq!(is_said(&said, "  in an agent, process "), is_agent, "{said:?}");
        assert!(is_said(&said, "anysched: this machine is scheduled by cfs, attached 0:00:0"));
        assert!(said.contains(&"refused 1") && said.contains(&"ended 0"), "{said:?}");
        is_a_live_table(&said);
        let change = part(&lines[at..], "change");
        assert!(change[0].starts_with("anysched: no policy is attached: "), "{change:?}");
        let done = ["refused 1", "grouping is single", "changed 0"];
        assert_eq!(change[1..4], done, "{change:?}");
        assert!(change[4].starts_with("anysched: gfs: `grouping` = \"boats\": "), "{change:?}");
        let fixed =
            "anysched: gfs: `wake` cannot be changed while the policy runs; these can: grouping";
        assert_eq!(change[5..7], [fixed, "refused 1"], "{change:?}");
        assert!(change.contains(&"  grouping = single") && change.contains(&"ended 0"));
        assert!(change.contains(&"set_param grouping to single"), "{change:?}");
        assert!(change.last().unwrap().ends_with(", no decision differs"), "{change:?}");
    }
    let headers = part(&lines, "headers");
    assert!(is_said(&headers, "anysched: the headers of Linux 7."), "{headers:?}");
    let root = part(&lines, "root");
    let wanted = "anysched: this takes root: `sudo anysched attach --policy rr`";
    assert_eq!(root.iter().filter(|line| **line == wanted).count(), 2, "{root:?}");
    let bare = part(&lines, "sched-ext");
    assert!(bare[0].contains(" was built without sched_ext: boot a kernel that has "), "{bare:?}");
    assert_eq!(bare[1], "ended 1");
}

/// Several tables with all that a policy does while two tasks keep a CPU busy.
fn is_a_live_table(said: &[&str]) {
    let tables = said.iter().filter(|line| line.starts_with("cfs after ")).count();
    assert!(tables >= 2 && is_said(said, "cfs in all, for "), "{said:?}");
    let rows = said.iter().filter(|line| line.starts_with("0    "));
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), tables + 1, "{said:?}");
    // CPU, task, name, process, queued, dispatches; on one CPU, who looks is who runs.
    assert!(rows.iter().any(|row| row.get(2) == Some(&"anysched")), "{rows:?}");
    let dispatches = |row: &Vec<&str>| row.iter().rev().nth(2).and_then(|n| n.parse().ok());
    assert!(rows.iter().all(|row| dispatches(row).is_some_and(|n: u64| n > 10)), "{rows:?}");
    assert!(is_said(said, "calls ") && !is_said(said, "calls 0/s"), "{said:?}");
    assert!(said.iter().any(|line| line.contains("/s, latency p50 ")), "{said:?}");
    assert!(said.iter().any(|line| line.contains('█')), "no histogram: {said:?}");
}

/// What holds of an agent alone: whoever attached it takes it along, and what becomes of one that
/// is killed or does not return.
#[test]
#[ignore = "boots a kernel"]
fn an_agent_ends_with_what_it_depends_on() {
    let lines = shell(
        r#"
echo stop
$in_agent --policy gfs --quiet > /tmp/table 2>&1 & until_enabled
anysched attach --stop; echo stopped $?; wait $!; echo ended $?; is_clean
echo killed
$in_agent --policy gfs --quiet > /tmp/said 2>&1 & until_enabled; sleep 1
kill -KILL $(pidof anysched-agent); wait $!; echo ended $?; cat /tmp/said; is_clean
echo loops
$in_agent --policy cfs --fault loop:300 --quiet -- sh -c 'sleep 3; echo goes on' > /tmp/said 2>&1
code=$?; cat /tmp/said; echo ended $code; is_clean
echo log
$in_agent --policy gfs --record /tmp/log --for 2s --quiet > /dev/null 2>&1; echo ended $?
anysched replay /tmp/log; echo replayed $?; ls /tmp/log*; is_clean
echo left
$in_agent --policy cfs > /tmp/table 2>&1 & until_enabled
sleep 1; kill -KILL $!; wait $!; sleep 1; state; rm -r /run/anysched; is_clean
"#,
    );
    let back = "the kernel's own scheduler is back";
    assert_eq!(part(&lines, "stop"), [back, "stopped 0", "ended 0"]);
    let killed = part(&lines, "killed");
    assert_eq!(killed[0], "ended 1", "{killed:?}");
    let died = "anysched: the policy has died: signal 9 has ended the agent";
    assert!(killed.contains(&died), "{killed:?}");
    let loops = part(&lines, "loops");
    assert!(loops.contains(&"goes on") && loops.ends_with(&["ended 1"]), "{loops:?}");
    assert!(loops.iter().any(|line| line.contains("has not answered for 300 ms")), "{loops:?}");
    let log = part(&lines, "log");
    assert!(log[0] == "ended 0" && log[1].ends_with(", no decision differs"), "{log:?}");
    assert_eq!(log[2..], ["replayed 0", "/tmp/log"]);
    let left = part(&lines, "left");
    assert!(left.ends_with(&["disabled"]), "{left:?}");
}

/// Groups of GFS change under tasks that compute, sleep, fork and end on four CPUs; the contract
/// holds, and the log replays.
#[test]
#[ignore = "boots a kernel"]
fn groups_change_while_tasks_run() {
    let lines = shell_on(
        "2 cores x 2 threads",
        r#"
for place in "$attach" "$in_agent"; do
    echo groups
    $place --policy gfs --checked --record /tmp/log --quiet > /tmp/table 2>&1 & until_enabled
    watches=$!
    (while :; do sleep 0.003 | true; done) > /dev/null 2>&1 & forks=$!
    for i in 1 2 3 4 5 6; do (while :; do :; done) > /dev/null 2>&1 & burns="$burns $!"; done
    n=0; for i in 1 2 3 4 5; do for groups in single core '0;1-3' '0,3;1,2' package; do
        anysched attach --change "grouping=$groups" > /dev/null && n=$((n+1)); sleep 0.2
    done; done
    echo changed $n
    kill $forks $burns; burns=; kill -INT $watches; wait $watches; echo ended $?
    anysched replay /tmp/log --show | grep -c 'set_param grouping'; anysched replay /tmp/log; is_clean
done
"#,
        &[],
    );
    let begins: Vec<usize> = (0..lines.len()).filter(|&line| lines[line] == "groups").collect();
    assert_eq!(begins.len(), 2, "{lines:?}");
    for at in begins {
        let said = part(&lines[at..], "groups");
        assert_eq!(said[..3], ["changed 25", "ended 0", "25"], "{said:?}");
        assert!(said[3].ends_with(", no decision differs") && said.len() == 4, "{said:?}");
    }
}

#[test]
#[ignore = "boots a kernel"]
fn a_policy_is_ended_by_another_process() {
    let lines = shell(
        r#"
echo nothing
anysched attach --status; anysched attach --stop; echo ended $?; is_clean
echo watched
$attach --policy gfs --quiet > /tmp/table 2>&1 & until_enabled; sleep 1
anysched attach --stop; echo stopped $?; wait $!; echo ended $?; is_clean
echo left
$attach --policy cfs --set steal=never > /tmp/table 2>&1 & until_enabled
sleep 1; kill -KILL $!; wait $!
state; anysched attach --status; $attach --policy rr --for 1s; anysched attach --stop; echo stopped $?; is_clean
echo command
$attach --policy gfs -- sh -c 'anysched attach --stop & sleep 5; echo goes on' > /tmp/table 2>&1
echo ended $?; grep -e '^anysched' -e 'goes on$' /tmp/table; is_clean
"#,
    );
    let nothing = part(&lines, "nothing");
    let none = "anysched: no policy is attached: the kernel's own scheduler schedules";
    assert_eq!(nothing, ["the kernel's own scheduler", none, "ended 1"]);
    let back = "the kernel's own scheduler is back";
    assert_eq!(part(&lines, "watched"), [back, "stopped 0", "ended 0"]);
    let left = part(&lines, "left");
    assert!(left.contains(&"enabled") && left.contains(&"cfs"), "{left:?}");
    assert!(left.contains(&"  steal = never"), "{left:?}");
    assert!(
        left.iter().any(|line| line.ends_with(", has ended without taking it out")),
        "{left:?}"
    );
    assert!(is_said(&left, "anysched: this machine is scheduled by cfs, attached 0:00:0"));
    assert!(left.ends_with(&[back, "stopped 0"]), "{left:?}");
    let command = part(&lines, "command");
    assert!(command.contains(&"ended 1") && command.contains(&"goes on"), "{command:?}");
    assert!(is_said(&command, "anysched: another process has ended the policy"), "{command:?}");
}

#[test]
#[ignore = "boots a kernel"]
fn recordings_are_read_again() {
    let lines = shell(
        r#"
cd /tmp
echo log
$attach --policy gfs --record log --for 2s --quiet > /dev/null 2>&1; echo ended $?
anysched replay log; echo replayed $?; ls log*; is_clean
echo trace
anysched record -o trace.txt.gz -- \
    sh -c 'i=0; while [ $i -lt 30 ]; do sleep 0.02; i=$((i+1)); done; exit 3'
echo ended $?
anysched import ftrace trace.txt.gz -o load.json 2>&1 | grep ' tasks in '; ls trace*
echo sleeps $(grep -o '"sleep[^"]*"' load.json | wc -l)
gunzip -c trace.txt.gz | grep missing; ls /sys/kernel/tracing/instances; is_clean
echo interrupt
anysched record -o i.txt & sleep 2; ls /sys/kernel/tracing/instances | sed 's/[0-9]*$//'
kill -INT $!; wait $!; echo ended $?; ls i.txt*; ls /sys/kernel/tracing/instances; is_clean
echo losses
for option in --quick --lossy; do
    [ $option = --lossy ] || option=
    anysched record -o l.txt --buffer 64KiB $option &
    until grep -q 1 /sys/kernel/tracing/instances/*/tracing_on; do sleep 0.1; done; kill -STOP $!
    i=0; while [ $i -lt 300 ]; do true | true; i=$((i+1)); done
    kill -CONT $!; sleep 1; kill -INT $!; wait $!; echo ended $?
    ls l.txt*; grep -o '[0-9]* events are missing' l.txt*; rm l.txt*
done
anysched record -o /nonesuch/l.txt; echo ended $?; is_clean
"#,
    );
    let log = part(&lines, "log");
    assert!(log[0] == "ended 0" && log[1].starts_with("gfs: "), "{log:?}");
    assert!(log[1].ends_with(", no decision differs") && log[2..] == ["replayed 0", "log"]);

    let trace = part(&lines, "trace");
    assert!(
        trace[0].contains(" events of ") && trace[0].ends_with(" in trace.txt.gz; for a load:")
    );
    assert_eq!(trace[1..3], ["anysched import ftrace trace.txt.gz -o load.json", "ended 3"]);
    assert!(trace[3].ends_with(" tasks in load.json") && trace[4] == "trace.txt.gz", "{trace:?}");
    let sleeps: u32 = trace[5].strip_prefix("sleeps ").unwrap().parse().unwrap();
    assert!(sleeps >= 30, "{trace:?}");
    assert!(trace[6].starts_with("# anysched record: Linux 7.") && trace.len() == 7, "{trace:?}");
    assert!(trace[6].ends_with(", clock mono, no event is missing"), "{trace:?}");

    let interrupt = part(&lines, "interrupt");
    assert_eq!((interrupt[0], &interrupt[3..]), ("anysched-", &["ended 0", "i.txt"][..]));

    let losses = part(&lines, "losses");
    let refused = losses.iter().position(|line| *line == "ended 1").unwrap();
    assert!(
        losses[refused - 1].ends_with("what there is of them is in l.txt.partial"),
        "{losses:?}"
    );
    assert_eq!(losses[refused + 1], "l.txt.partial");
    assert!(losses[refused + 2].ends_with(" events are missing"), "{losses:?}");
    let kept = losses.iter().position(|line| *line == "ended 0").unwrap();
    assert!(losses[kept - 2].ends_with(" more are missing; for a load:"), "{losses:?}");
    assert_eq!(losses[kept + 1], "l.txt");
    assert!(losses[kept + 2].ends_with(" events are missing"), "{losses:?}");
    assert_eq!(losses.last(), Some(&"ended 1"), "{losses:?}");
}

/// From a recording to results under other policies, by the command that is named; and what is said
/// where it cannot be made.
#[test]
#[ignore = "boots a kernel"]
fn recordings_become_loads_for_other_policies() {
    let lines = shell(
        r#"
cd /tmp
echo user
echo nobody:x:65534:65534::/:/bin/sh > /etc/passwd
su nobody -s /bin/sh -c "anysched record -o /tmp/r.txt --for 1s"; echo ended $?; is_clean
echo unmounted
umount /sys/kernel/tracing /sys/kernel/debug
anysched record -o r.txt --for 1s > said 2>&1; echo ended $?; cat said
$(grep -o '[`]sudo .*[`]' said | tr -d '[`]' | sed s/sudo//); echo mounted $?; is_clean
echo recorded
# What is there is replaced, as by all commands.
echo old > r.txt
anysched record -o r.txt -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01 | true; done' 2> said
echo ended $?; grep -c old r.txt; $(tail -n 1 said); echo imported $?
cat > x.toml << EOF
title = "A recording"
question = "What would other policies have made of it?"
[machine]
cpus = 1
[[workload]]
kind = "model"
file = "load.json"
[[policy]]
name = "rr"
[[policy]]
name = "cfs"
EOF
anysched run x.toml; echo ran $?; is_clean
"#,
    );
    let root = "anysched: this takes root: `sudo anysched record -o /tmp/r.txt`";
    assert_eq!(part(&lines, "user"), [root, "ended 1"]);
    let unmounted = part(&lines, "unmounted");
    assert!(unmounted[1].ends_with("`sudo mount -t tracefs tracefs /sys/kernel/tracing`"));
    assert!(unmounted[0] == "ended 1" && unmounted[2] == "mounted 0", "{unmounted:?}");
    let recorded = part(&lines, "recorded");
    assert!(recorded[..2] == ["ended 0", "0"] && recorded.contains(&"imported 0"), "{recorded:?}");
    assert!(is_said(&recorded, "rr ") && is_said(&recorded, "cfs "), "{recorded:?}");
    assert_eq!(recorded.last(), Some(&"ran 0"));
}

/// In the root of the suite, this machine's tools are those that the suite has; the kernel that runs
/// is given another name.
#[test]
#[ignore = "builds for minutes, and boots a kernel"]
fn what_a_machine_builds_for_itself_runs_there() {
    let suite = suite();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::write(cache.join("osrelease"), format!("{}\n", suite.kernel)).unwrap();
    let home = std::env::home_dir().unwrap();
    let [cargo, rustup] = [".cargo", ".rustup"].map(|name| home.join(name));
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let places =
        [&cargo, &rustup, project, &cache].map(|path: &Path| (path, path.to_str().unwrap()));
    let script = format!(
        "export HOME={} XDG_CACHE_HOME={cache} CARGO_NET_OFFLINE=true PATH={}/bin:$PATH
         export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=gcc
         busybox mount --bind {cache}/osrelease /proc/sys/kernel/osrelease
         {anysched} attach --build && {anysched} attach --build --in agent",
        home.display(),
        cargo.display(),
        anysched = command().display(),
        cache = cache.display(),
    );
    let mut shell = suite.root.command("sh", &places).unwrap();
    let output = shell.args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let built: Vec<&Path> = printed.lines().map(Path::new).collect();
    let [module, program, agent, of_agent] = built[..] else { panic!("{printed}") };
    assert!(module.starts_with(cache.join("anysched/linux/module").join(&suite.kernel)));
    let lines = shell_on(
        "1 cpu",
        r#"
anysched attach --policy gfs --module /own/a.ko --bpf /own/a.bpf.o --quiet -- \
    cat /sys/kernel/sched_ext/state; echo ended $?; is_clean
anysched attach --in agent --policy gfs --agent /own/agent --bpf /own/agent.bpf.o --quiet -- \
    cat /sys/kernel/sched_ext/root/ops; echo ended $?; is_clean
"#,
        &[
            ("/own/a.ko", module),
            ("/own/a.bpf.o", program),
            ("/own/agent", agent),
            ("/own/agent.bpf.o", of_agent),
            (LIBBPF, &suite.root.resolve(LIBBPF).unwrap()),
        ],
    );
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert!(lines.contains(&"enabled") && lines.contains(&"anysched_agent"), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| **line == "ended 0").count(), 2, "{lines:?}");
}
