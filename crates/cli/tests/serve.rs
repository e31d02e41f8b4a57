//! `anysched boot arceos --app udp`, as far as it goes without booting.

mod program;

use program::Folder;

fn refused(arguments: &[&str]) -> String {
    Folder::new().stderr(&[&["boot", "arceos", "--policy", "rr"], arguments].concat())
}

#[test]
fn a_load_is_checked_before_anything_is_built() {
    for (arguments, named) in [
        (&["--app", "udp", "--costs", "1ms*0"][..], "a weight is a whole number"),
        (&["--app", "udp", "--costs", "1"], "needs a unit"),
        (&["--app", "udp", "--costs", "1ms,1000us"], "--costs: 1ms is there twice"),
        (&["--app", "udp", "--clients", "0"], "not a whole number from 1 to 512"),
        (&["--app", "udp", "--size", "20"], "not a whole number from 45 to 1472"),
        (&["--app", "udp", "--icount"], "--icount: clients live in real time"),
        (&["--app", "udp", "--smp", "2"], "--smp: the server is measured on one CPU"),
        (&["--app", "udp", "--record", "log"], "--record: a record is of programs that end"),
        (&["--app", "udp", "--set", "quantum=0"], "rr: "),
        (&["--app", "udp", "--with", "handler"], "it takes NAME=VALUE"),
        (
            &["--app", "udp", "--with", "socket=2"],
            "`udp` has no argument `socket` (= \"2\"); it takes sockets, handler, wait, poll, hold",
        ),
    ] {
        let said = refused(arguments);
        assert!(said.contains(named), "{arguments:?}: {said}");
    }
}

#[test]
fn other_programs_have_no_clients() {
    for option in [["--clients", "3"], ["--costs", "1ms"], ["--lost-after", "1s"]] {
        let said = refused(&[&["--app", "yield"][..], &option].concat());
        assert!(said.contains(&format!("{} is for --app udp", option[0])), "{said}");
    }
}
