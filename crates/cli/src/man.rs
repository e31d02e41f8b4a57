//! `anysched man`: a page for each command.

use crate::args::{Args, ManArgs};
use crate::output::{self, Failure};
use anysched_lab::output::{Draft, Inputs};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let mut root = Args::command();
    root.build();
    if args.install {
        return install(&root, args.dir.clone());
    }
    let mut command = &root;
    for name in args.command.iter().flat_map(|words| words.split_whitespace()) {
        let path = command.get_display_name().unwrap_or(command.get_name()).replace('-', " ");
        command = command.find_subcommand(name).ok_or_else(|| {
            let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            match known.is_empty() {
                true => format!("`{path}` has no commands; its page is all there is"),
                false => format!("`{path}` has no command \"{name}\"; it has {}", known.join(", ")),
            }
        })?;
    }
    output::print(&String::from_utf8_lossy(&page(command)?))
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

/// The pages of a command and of all below it, by file name.
fn pages(command: &Command, all: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    all.push((format!("{name}.1"), page(command)?));
    // `help` has the same text as the pages.
    let others = command.get_subcommands().filter(|command| command.get_name() != "help");
    others.into_iter().try_for_each(|command| pages(command, all))
}

fn install(root: &Command, folder: Option<PathBuf>) -> Result<(), Failure> {
    let folder = match folder {
        Some(folder) => folder,
        None => usual_folder()?,
    };
    output::require_folder(&folder)?;
    fs::create_dir_all(&folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let mut all = Vec::new();
    pages(root, &mut all)?;
    let drafts: Result<Vec<Draft>, _> = all
        .iter()
        .map(|(name, page)| {
            Draft::write(&folder.join(name), &Inputs::default(), |out| out.write_all(page))
        })
        .collect();
    for draft in drafts? {
        draft.publish()?;
    }
    let (count, folder) = (all.len(), folder.display());
    eprintln!("anysched: wrote {count} pages to {folder}; `man anysched-run` shows one");
    Ok(())
}

/// Where man(1) looks for pages of a user's own programs.
fn usual_folder() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = set("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/share")));
    let data =
        data.ok_or("--install: neither HOME nor XDG_DATA_HOME is set; say where: --dir DIR")?;
    Ok(data.join("man/man1"))
}
