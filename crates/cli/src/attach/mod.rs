//! `anysched attach` and `anysched record`: the machine that this program runs on.

mod json;
mod record;
mod table;

pub use record::record;

use crate::args::{PlaceArg, PlainFormat};
use crate::attach_args::AttachArgs;
use crate::boot;
use crate::hosts;
use crate::output::{self, Failure};
use anysched_core::Machine;
use anysched_core::registry::Settings;
use anysched_host::{Attach, Attached, Built, During, End, Host, Options, Sample, as_text};
use anysched_lab::output::Inputs;
use anysched_policies::policy;
use console::Term;
use std::ffi::OsString;
use std::io::Write;

/// The signal of Ctrl-C.
const INTERRUPT: u8 = 2;

pub fn attach(args: &AttachArgs) -> Result<(), Failure> {
    let mut say = |line: &str| eprintln!("anysched: {line}");
    if args.status {
        return status(&*open()?, args.format);
    }
    if args.stop {
        open()?.detach()?;
        return output::print("the kernel's own scheduler is back\n");
    }
    if !args.change.is_empty() {
        return change(&*open()?, &args.change);
    }
    if args.build {
        let place = args.place.place();
        let Built { decider, program } = open()?.build_attached(place, args.checked, &mut say)?;
        return output::print(&format!("{}\n{}\n", decider.display(), program.display()));
    }
    let name = args.policy.as_deref().unwrap_or_default();
    let settings = settings(name, &args.set)?;
    let host = open()?;
    if let Some(path) = &args.record {
        output::require_places([path], &Inputs::default())?;
    }
    let order = Attach {
        policy: name,
        settings: &settings,
        place: args.place.place(),
        checked: args.checked,
        heap: args.heap,
        record: args.record.as_deref(),
        built: built(args)?,
        fault: args.fault.clone(),
        during: during(args.span, &args.command),
        every: args.every,
    };
    let mut shown = Shown::new(args, name);
    let attached = host.attach(&order, &mut say, &mut |sample| shown.sample(sample))?;
    shown.end(&attached);
    if let (Some(path), Some(bytes)) = (&args.record, attached.recorded) {
        eprintln!("{bytes} bytes in {}", path.display());
    }
    ended(attached.end, order.during)
}

/// What was built before, if anything was.
fn built(args: &AttachArgs) -> Result<Option<Built>, Failure> {
    let (given, other) = match args.place {
        PlaceArg::Module => (&args.module, &args.agent),
        PlaceArg::Agent => (&args.agent, &args.module),
    };
    match (given, &args.bpf, other) {
        (Some(decider), Some(program), None) => {
            Ok(Some(Built { decider: decider.clone(), program: program.clone() }))
        }
        (None, None, None) => Ok(None),
        _ => {
            let place = args.place.place().name();
            Err(format!("--in {place} goes with --{place} and --bpf, or with neither").into())
        }
    }
}

/// The host whose machine this is.
fn open() -> Result<Box<dyn Host>, Failure> {
    let host = hosts::all().iter().find(|host| host.capabilities.running_machine);
    let host = host.ok_or("this works on Linux on x86-64, and this is another system")?;
    Ok((host.open)(&Options::default()))
}

/// The parameters of the policy called `name`, checked on this machine.
fn settings(name: &str, given: &[String]) -> Result<Settings, Failure> {
    let missing = || format!("there is no policy `{name}`; `anysched policies` lists them");
    let info = policy(name).ok_or_else(missing)?;
    let settings = boot::settings(given)?;
    let machine = match anysched_topology::host() {
        Ok(topology) => topology.machine,
        Err(_) => Machine::flat(1).map_err(|error| error.to_string())?,
    };
    (info.build)(&machine, &as_text(&settings)).map_err(|error| format!("{name}: {error}"))?;
    Ok(settings)
}

/// Changes parameters of the policy that schedules this machine, one after the other.
fn change(host: &dyn Host, given: &[String]) -> Result<(), Failure> {
    for (name, value) in boot::settings_of("--change", given)? {
        host.change(&name, &value)?;
        output::print(&format!("{name} is {value}\n"))?;
    }
    Ok(())
}

fn during(span: Option<anysched_core::Span>, command: &[OsString]) -> During<'_> {
    match (span, command) {
        (Some(span), _) => During::Span(span),
        (None, []) => During::Interrupt,
        (None, command) => During::Command(command),
    }
}

/// What becomes of the program after such an end.
fn ended(end: End, during: During<'_>) -> Result<(), Failure> {
    match (end, during) {
        (End::Time | End::Elsewhere | End::Command(0), _) => Ok(()),
        (End::Command(code), _) => Err(Failure::Exit(code)),
        // It is how this is meant to end.
        (End::Signal(INTERRUPT), During::Interrupt) => Ok(()),
        (End::Signal(number), _) => Err(Failure::Exit(128 + number)),
    }
}

fn status(host: &dyn Host, format: PlainFormat) -> Result<(), Failure> {
    let found = host.attached()?;
    output::print(&match format {
        PlainFormat::Json => json::attachment(found.as_ref()),
        PlainFormat::Table => match found {
            None => "the kernel's own scheduler\n".into(),
            Some(found) => {
                let first = found.policy.unwrap_or(found.program);
                let notes = found.notes.iter().map(|note| format!("  {note}\n"));
                format!("{first}\n{}", notes.collect::<String>())
            }
        },
    })
}

/// Where samples are shown, and how.
struct Shown<'a> {
    policy: &'a str,
    format: PlainFormat,
    is_quiet: bool,
    out: Term,
    /// Whether a table takes the place of the one before.
    in_place: bool,
    /// Lines of the table that stands there.
    lines: usize,
}

impl<'a> Shown<'a> {
    fn new(args: &AttachArgs, policy: &'a str) -> Shown<'a> {
        // What the command prints is its own.
        let has_command = !args.command.is_empty();
        let out = if has_command { Term::stderr() } else { Term::stdout() };
        // A table would overwrite what the command prints on the same terminal.
        let is_shared = has_command && Term::stdout().is_term();
        let in_place = out.is_term() && !is_shared && args.format == PlainFormat::Table;
        Shown { policy, format: args.format, is_quiet: args.quiet, out, in_place, lines: 0 }
    }

    fn sample(&mut self, sample: &Sample) {
        if !self.is_quiet {
            self.show(sample, &format!("{} after", self.policy), None);
        }
    }

    fn end(&mut self, attached: &Attached) {
        self.show(&attached.whole, &format!("{} in all, for", self.policy), Some(attached.end));
    }

    fn show(&mut self, sample: &Sample, title: &str, end: Option<End>) {
        let text = match self.format {
            PlainFormat::Json => json::sample(self.policy, sample, end),
            PlainFormat::Table => table::table(title, sample),
        };
        let text = if self.in_place { self.fitting(&text) } else { text };
        // Whether anyone reads it makes no difference to the policy.
        let _ = self.out.clear_last_lines(std::mem::take(&mut self.lines));
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        if self.in_place && end.is_none() {
            self.lines = text.lines().count();
        }
    }

    /// As much of a text as the terminal has room for: what has scrolled away cannot be cleared.
    fn fitting(&self, text: &str) -> String {
        let (rows, columns) = self.out.size();
        let (rows, columns) = (usize::from(rows).max(3) - 1, usize::from(columns));
        let lines: Vec<&str> = text.lines().collect();
        let (head, tail) = match lines.len() <= rows {
            true => (lines.len(), lines.len()),
            // The end says of all CPUs what the lines before say of each.
            false => (rows / 2, lines.len() - (rows - rows / 2)),
        };
        let shown = lines[..head].iter().chain(&lines[tail..]);
        shown.map(|line| format!("{}\n", console::truncate_str(line, columns, "…"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_command_or_of_shells() {
        let words = ["x".into()];
        let code = |end, during| match ended(end, during) {
            Ok(()) => 0,
            Err(Failure::Exit(code)) => code,
            Err(other) => panic!("{other:?}"),
        };
        for (end, during, expected) in [
            (End::Time, During::Interrupt, 0),
            (End::Elsewhere, During::Interrupt, 0),
            (End::Command(0), During::Command(&words), 0),
            (End::Command(7), During::Command(&words), 7),
            (End::Signal(2), During::Interrupt, 0),
            (End::Signal(2), During::Command(&words), 130),
            (End::Signal(15), During::Interrupt, 143),
        ] {
            assert_eq!(code(end, during), expected, "{end:?} {during:?}");
        }
    }
}
