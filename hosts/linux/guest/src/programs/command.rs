//! Programs that are files of the guest. What they write is prose; the value `exit_status` is how
//! they ended.
//!
//! Argument: `command`, of `shell` a line for `/bin/sh`, of `exec` a program and its arguments,
//! quoted as in a shell. `programs`, which programs of Debian's packages the host adds, with commas
//! between.

use std::io::{BufRead, BufReader, PipeReader, Write, stdout};
use std::process::Command;

use anysched_programs::text;

use crate::kernel::Linux;
use crate::machine::refuse;
use crate::report::value;

/// Has the shell perform the command.
pub fn shell() {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command()]);
    perform(shell);
}

/// Runs the program.
pub fn exec() {
    let text = command();
    let words = shlex::split(text).unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else {
        refuse(format_args!("`command` = \"{text}\": a program and its arguments are wanted"));
    };
    let mut program = Command::new(program);
    program.args(arguments);
    perform(program);
}

fn command() -> &'static str {
    text::<Linux>("command").unwrap_or_else(|| refuse("the argument `command` is missing"))
}

fn perform(mut command: Command) {
    let program = command.get_program().to_string_lossy().into_owned();
    let started = std::io::pipe().and_then(|(said, out)| {
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.stdout(out.try_clone()?).stderr(out);
        Ok((command.spawn()?, said))
    });
    let (mut child, said) = match started {
        Ok(started) => started,
        Err(error) => refuse(format_args!("{program}: {error}")),
    };
    // It holds the pipe's other end, whose end of file would not come.
    drop(command);
    pass_on(said);
    match child.wait() {
        // A signal's number counts from 128, as shells have it.
        Ok(status) => {
            use std::os::unix::process::ExitStatusExt;
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            value("exit_status", code.unwrap_or_default().unsigned_abs().into());
        }
        Err(error) => refuse(format_args!("{program}: {error}")),
    }
}

/// Says what comes, to the end.
fn pass_on(said: PipeReader) {
    let mut said = BufReader::new(said);
    let mut line = Vec::new();
    while said.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let _ = writeln!(stdout(), "{}", prose(&line));
        line.clear();
    }
}

/// A line without its end, that cannot be taken for a message.
pub fn prose(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line.trim_ascii_end());
    if line.starts_with('@') { format!(" {line}") } else { line.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_wire::result::Message;

    #[test]
    fn what_programs_say_is_prose() {
        for (line, said) in [(&b"a b\n"[..], "a b"), (b"@end\r\n", " @end"), (b"\n", "")] {
            assert_eq!(prose(line), said);
            assert_eq!(Message::read(&prose(line)), Ok(None));
        }
    }
}
