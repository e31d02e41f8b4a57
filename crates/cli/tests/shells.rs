//! Completion in the shells themselves: typed on a terminal, with the key Tab.

#![cfg(unix)]

mod program;

use program::{BINARY, Folder};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What is typed, and what Tab makes of it.
const LINES: &[(&str, &str)] = &[
    ("anysched gan", "anysched gantt"),
    ("anysched run quickst", "anysched run quickstart"),
    ("anysched run x.toml --policy eev", "anysched run x.toml --policy eevdf"),
    ("anysched run x.toml --policy rr,eev", "anysched run x.toml --policy rr,eevdf"),
    ("anysched plot x.toml --y makes", "anysched plot x.toml --y makespan_ns"),
    ("anysched plot x.toml --x machine.cp", "anysched plot x.toml --x machine.cpus"),
    (
        "anysched run x.toml --set machine.context_sw",
        "anysched run x.toml --set machine.context_switch=",
    ),
    ("anysched workloads cyc", "anysched workloads cyclictest"),
    ("anysched explain turnar", "anysched explain turnaround_ns"),
];

/// What each shell prints when it waits for a line.
const PROMPT: &str = "READY>";

/// A shell on a terminal of its own, in which Ctrl-X writes the line so far to the file `line`.
struct Shell {
    child: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Shell {
    /// Starts `command`, which reads its settings from files in `folder`.
    fn start(folder: &Folder, program: &str, command: &str) -> Shell {
        for needed in [program, "script"] {
            let package = if needed == "script" { "bsdutils" } else { needed };
            let is_there = Command::new(needed).arg("--version").output().is_ok();
            assert!(
                is_there,
                "`{needed}` is missing; type: apt-get install -y --no-install-recommends {package}"
            );
        }
        let own = Path::new(BINARY).parent().unwrap().display();
        let path = format!("{own}:{}", std::env::var("PATH").unwrap());
        let mut child = Command::new("script")
            .args(["--quiet", "--flush", "--command", command, "/dev/null"])
            .current_dir(folder.path())
            .env("PATH", path)
            .env("HOME", folder.path())
            .env("ZDOTDIR", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .env("TERM", "dumb")
            .env_remove("COMPLETE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let shown = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = output.read(&mut bytes) {
                if count == 0 {
                    return;
                }
                all.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Shell { child, keys, shown }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn wait(&self, what: &str, is_there: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_there() {
            let is_late = begun.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "{what} does not come: {}", self.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What Tab makes of a line.
    fn complete(&mut self, folder: &Folder, typed: &str) -> String {
        let file = folder.join("line");
        let _ = fs::remove_file(&file);
        // Ctrl-U clears the line.
        self.keys.write_all(format!("\u{15}{typed}\t").as_bytes()).unwrap();
        self.keys.flush().unwrap();
        // Keys that come while a shell completes may be lost in its redrawing.
        std::thread::sleep(Duration::from_millis(700));
        self.keys.write_all(b"\x18").unwrap();
        self.keys.flush().unwrap();
        self.wait("the line", || fs::read_to_string(&file).is_ok_and(|line| line.ends_with('\n')));
        fs::read_to_string(&file).unwrap().trim_end().to_string()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Types all lines in a shell.
fn completes(program: &str, command: &str, settings: (&str, &str)) {
    let folder = Folder::new();
    folder.write("x.toml", "");
    let (file, text) = settings;
    if let Some(parent) = Path::new(file).parent() {
        fs::create_dir_all(folder.join(&parent.display().to_string())).unwrap();
    }
    folder.write(file, text);
    let mut shell = Shell::start(&folder, program, command);
    shell.wait("the prompt", || shell.shown().contains(PROMPT));
    for (typed, completed) in LINES {
        let line = shell.complete(&folder, typed);
        assert_eq!(line, *completed, "{program}: {}", shell.shown());
    }
}

#[test]
fn bash_completes() {
    let settings = "PS1='READY>'\nsource <(anysched completions bash)\n\
        keep() { printf '%s\\n' \"$READLINE_LINE\" > line; }\nbind -x '\"\\C-x\": keep'\n";
    completes("bash", "bash --noprofile --rcfile rc -i", ("rc", settings));
}

#[test]
fn zsh_completes() {
    let settings = "autoload -Uz compinit\ncompinit -u -D\nsource <(anysched completions zsh)\n\
        keep() { print -r -- $BUFFER > line }\nzle -N keep\nbindkey '^X' keep\n\
        bindkey '^U' kill-whole-line\nPROMPT='READY>'\n";
    completes("zsh", "zsh --no-globalrcs -i", (".zshrc", settings));
}

#[test]
fn fish_completes() {
    let settings = "function fish_prompt; echo -n 'READY>'; end\nset -g fish_greeting\n\
        anysched completions fish | source\nfunction keep; commandline > line; end\n\
        bind \\cx keep\nbind \\cu 'commandline \"\"'\n";
    completes("fish", "fish -i", ("fish/config.fish", settings));
}
