//! `anysched attach` and `anysched record` in a guest, where this machine's scheduler is nobody
//! else's. `cargo xtask hosts` runs these.

use anysched_core::Machine;
use anysched_host::{Clock, Place};
use anysched_linux::{Boot, Image, Suite};
use anysched_wire::boot;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// The command for any Linux: static.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// What scripts begin with.
const PRELUDE: &str = r#"
attach='anysched attach --module /lib/anysched/anysched.ko --bpf /lib/anysched/anysched.bpf.o'
state() { cat /sys/kernel/sched_ext/state; }
until_enabled() { until grep -q enabled /sys/kernel/sched_ext/state; do sleep 0.1; done; }
is_clean() {
    [ "$(state)" = disabled ] || echo "the state is $(state)"
    [ ! -e /proc/anysched ] || echo "the module is loaded"
    [ ! -e /sys/fs/bpf/anysched ] || echo "something is pinned"
    [ ! -e /run/anysched ] || echo "a note is left"
    echo clean
}
(while :; do :; done) & (while :; do sleep 0.01; done) &
"#;

/// The static command, built.
fn command() -> &'static Path {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND.get_or_init(|| {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--package", "anysched-cli"]);
        cargo.args(["--target", TARGET, "--target-dir"]).arg(project.join("target"));
        assert!(cargo.current_dir(project).status().unwrap().success());
        project.join("target").join(TARGET).join("debug/anysched")
    })
}

/// What the guest's shell prints when it runs `script`.
fn guest(script: &str) -> Vec<String> {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    let image = IMAGE.get_or_init(|| {
        let say = &mut |line: &str| println!("{line}");
        Image::build(&Suite::find(say).unwrap(), say).unwrap()
    });
    let boot = Boot {
        orders: boot::Boot {
            policy: "stock-eevdf".into(),
            program: "shell".into(),
            arguments: vec![("command".into(), format!("{PRELUDE}{script}"))],
            ..boot::Boot::default()
        },
        tasks: None,
        checked: false,
        place: Place::default(),
        fault: None,
        machine: Machine::flat(2).unwrap(),
        clock: Clock::Parallel,
        kernel: None,
        programs: Vec::new(),
        files: vec![("/bin/anysched".into(), command().into())],
        patience: Duration::from_secs(120),
    };
    let mut lines = Vec::new();
    let ran = boot.run(image, &mut |line| {
        println!("{line}");
        lines.push(line.to_string());
    });
    ran.unwrap();
    lines
}

/// The lines between `begin` and the next `clean`.
fn part<'a>(lines: &'a [String], begin: &str) -> &'a [String] {
    let from = lines.iter().position(|line| line == begin).unwrap() + 1;
    let length = lines[from..].iter().position(|line| line == "clean").unwrap();
    &lines[from..from + length]
}

#[test]
#[ignore = "boots a kernel"]
fn a_policy_schedules_for_a_while() {
    let lines = guest(
        r#"
echo a-time
$attach --policy cfs --for 3s --every 500ms > /tmp/table 2>&1 & until_enabled
sleep 1; anysched attach --status; anysched attach --policy rr; echo refused $?
wait $!; echo ended $?; cat /tmp/table; is_clean
echo a-command
$attach --policy gfs --set steal=off --quiet -- sh -c 'state=$(cat /sys/kernel/sched_ext/state); echo it is $state; exit 7'
echo ended $?; is_clean
echo an-interrupt
$attach --policy rr --set quantum=5ms --format json > /tmp/table 2>&1 & until_enabled
sleep 2; kill -INT $!; wait $!; echo ended $?; cat /tmp/table; is_clean
kill %1 %2
"#,
    );
    println!("{lines:#?}");
    let _ = part(&lines, "a-time");
}
