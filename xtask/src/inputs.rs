//! What the output of a command in the documentation depends on, so that only what may have changed
//! is printed again.
//!
//! A command depends on the sources of the program without its policies, on the policies that it or
//! an experiment that it names mentions, on what these are written with, and on the files that it
//! names with what lies beside them. A command that may walk the list of policies depends on all of
//! them. Outputs are kept in `target`; of those that take long, hashes are noted in `docs`, for
//! fresh clones.

use crate::run::{Failed, command, output, root};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where policies are.
const POLICIES: &str = "crates/policies/src/";

/// Commands whose policies are those that they or their experiments mention.
const MENTION: [&str; 6] = ["run", "plot", "gantt", "reproduce", "check", "predict"];

/// Commands that only simulate, unless they are told of a host.
const SIMULATE: [&str; 5] = ["run", "plot", "gantt", "reproduce", "tune"];

/// Crates that only commands with hosts go through.
const OF_HOSTS: [&str; 9] =
    ["arceos", "axtask", "debian", "linux", "loader", "qemu", "scx", "vcpus", "xen"];

/// The files of the repository that outputs may depend on.
pub struct Inputs {
    files: Vec<String>,
    /// Each policy with the files or folder of its module, below [`POLICIES`].
    policies: BTreeMap<String, String>,
    /// Each module of policies with those that its sources mention.
    written_with: BTreeMap<String, Vec<String>>,
    /// The sources of the program but for its policies and for [`OF_HOSTS`].
    program: String,
    /// Those of [`OF_HOSTS`].
    hosts: String,
    /// Policies that the program itself mentions.
    always: Vec<String>,
}

impl Inputs {
    pub fn read() -> Result<Inputs, Failed> {
        let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
        let mut files: Vec<String> =
            output(&mut command("git", &list))?.lines().map(str::to_string).collect();
        // Git lists new files first; once they are committed, hashes are to be the same.
        files.sort();
        let policies = modules(&text(&format!("{POLICIES}lib.rs")));
        let of_policy = |file: &str| policies.values().any(|module| is_code_of(file, module));
        let is_source = |file: &str| {
            let code = file.ends_with(".rs") || file.ends_with(".toml");
            matches!(file, "Cargo.toml" | "Cargo.lock" | "rust-toolchain.toml")
                || (file.starts_with("crates/") && code && !is_test(file))
        };
        let sources = files.iter().filter(|file| is_source(file) && !of_policy(file));
        let hash = |of_hosts: bool| {
            let wanted = |file: &&String| is_of_hosts(file) == of_hosts;
            hash_of(sources.clone().filter(wanted).map(String::as_str))
        };
        let (program, hosts) = (hash(false), hash(true));
        let own = sources.filter(|file| !file.starts_with("crates/policies"));
        let own: Vec<String> = own.map(|file| text(file)).collect();
        let quoted = |name: &&String| {
            let quoted = format!("\"{name}\"");
            own.iter().any(|text| text.contains(&quoted))
        };
        let always = policies.keys().filter(quoted).cloned().collect();
        let written_with = written_with(&files, &policies);
        Ok(Inputs { files, policies, written_with, program, hosts, always })
    }

    /// A hash of what the output of `anysched` with these arguments depends on.
    pub fn of(&self, args: &[&str]) -> String {
        let by_args: Vec<Named<'_>> = args.iter().map(|arg| Named::by(arg)).collect();
        let is_needed = |file: &&String| by_args.iter().any(|named| named.needs(file));
        let named: Vec<&String> = self.files.iter().filter(is_needed).collect();
        let mut mentioned = args.join(" ");
        for file in named.iter().filter(|file| !file.ends_with(".gz")) {
            mentioned.push('\n');
            mentioned.push_str(&text(file));
        }
        let is = |commands: &[&str]| args.first().is_some_and(|first| commands.contains(first));
        let counts = |name: &str| !is(&MENTION) || self.always.iter().any(|n| n == name);
        let used = self.policies.iter().filter(|(name, _)| counts(name) || has(&mentioned, name));
        let modules = self.with_all_they_use(used.map(|(_, module)| module));
        let is_used = |file: &&String| modules.iter().any(|module| is_code_of(file, module));
        let of_policies = self.files.iter().filter(is_used);
        let all = named.into_iter().chain(of_policies).map(String::as_str);
        let only_simulates = is(&SIMULATE) && !args.contains(&"--host");
        let hosts = if only_simulates { "" } else { &self.hosts };
        hash_of_texts([&self.program, hosts, &args.join("\n"), &hash_of(all)])
    }

    /// The modules, those that they are written with, and so on.
    fn with_all_they_use<'a>(
        &'a self,
        modules: impl Iterator<Item = &'a String>,
    ) -> BTreeSet<&'a String> {
        let mut all = BTreeSet::new();
        let mut new: Vec<&String> = modules.collect();
        while let Some(module) = new.pop() {
            if all.insert(module) {
                new.extend(&self.written_with[module]);
            }
        }
        all
    }
}

/// Each module of policies with the others whose names its sources mention, which is more than it
/// is written with.
fn written_with(
    files: &[String],
    policies: &BTreeMap<String, String>,
) -> BTreeMap<String, Vec<String>> {
    let modules: BTreeSet<&String> = policies.values().collect();
    let sources = |module: &str| -> String {
        files.iter().filter(|file| is_code_of(file, module)).map(|file| text(file)).collect()
    };
    let mentioned = |module: &String| {
        let own = sources(module);
        let is_there = |other: &&&String| {
            **other != module && other.rsplit('/').next().is_some_and(|name| has(&own, name))
        };
        modules.iter().filter(is_there).map(|other| other.to_string()).collect()
    };
    modules.iter().map(|module| (module.to_string(), mentioned(module))).collect()
}

/// Whether a file is of one of [`OF_HOSTS`].
fn is_of_hosts(file: &str) -> bool {
    let name = file.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
    name.is_some_and(|name| OF_HOSTS.contains(&name))
}

/// The modules of the list of policies: `"name" module => …` below `group {`, as paths.
fn modules(list: &str) -> BTreeMap<String, String> {
    let mut modules = BTreeMap::new();
    let mut group = "";
    for line in list.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(" {").filter(|name| !name.contains([' ', '!'])) {
            group = name;
        }
        let entry = line.strip_prefix('"').and_then(|rest| rest.split_once("\" "));
        if let Some((name, (module, _))) =
            entry.and_then(|(name, rest)| Some((name, rest.split_once(" => ")?)))
        {
            // All of a family depend on its folder.
            let module = module.split("::").next().unwrap_or(module);
            modules.insert(name.to_string(), format!("{group}/{module}"));
        }
    }
    modules
}

/// Whether a file is of a module of policies, and not of tests alone.
fn is_code_of(file: &str, module: &str) -> bool {
    !is_test(file) && file.strip_prefix(POLICIES).is_some_and(|below| is_of(below, module))
}

/// Whether a file below [`POLICIES`] is of a module.
fn is_of(below: &str, module: &str) -> bool {
    below.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Whether a file is of tests alone: the program is built without the oracles.
fn is_test(file: &str) -> bool {
    let oracle = file.starts_with("crates/oracle/");
    oracle || file.contains("/tests/") || file.ends_with("/tests.rs")
}

/// What an argument names, looked up once for all files: a file, or a paper by a word.
struct Named<'a> {
    arg: &'a str,
    /// The folder of the paper's experiments, with a slash behind it.
    paper: Option<String>,
    /// The folder that the file lies in.
    folder: Option<&'a Path>,
}

impl Named<'_> {
    fn by(arg: &str) -> Named<'_> {
        let is_word = !arg.is_empty() && !arg.contains(['/', '.']);
        let experiments = format!("experiments/{arg}/");
        let is_paper = is_word && root().join(&experiments).is_dir();
        let is_file = arg.contains('/') && root().join(arg).is_file();
        let folder = Path::new(arg).parent().filter(|_| is_file);
        Named { arg, paper: is_paper.then_some(experiments), folder }
    }

    /// Whether what is named depends on a file. Beside an experiment are the files that it names;
    /// recordings are in `traces`.
    fn needs(&self, file: &str) -> bool {
        let runs = self.paper.is_some() || self.folder.is_some();
        let is_text = file.ends_with(".toml") || file.ends_with(".md");
        file == self.arg
            || self.paper.as_ref().is_some_and(|experiments| file.starts_with(experiments))
            || (runs && file.starts_with("traces/"))
            || (self.folder.is_some() && self.folder == Path::new(file).parent() && !is_text)
    }
}

/// Whether `text` has `name` as a word.
fn has(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(part);
        let after = text[at + name.len()..].chars().next().is_some_and(part);
        !before && !after
    })
}

fn bytes(file: &str) -> Vec<u8> {
    // A file that is gone reads as an empty one, which is another input than before.
    std::fs::read(root().join(file)).unwrap_or_default()
}

fn text(file: &str) -> String {
    String::from_utf8_lossy(&bytes(file)).into_owned()
}

/// A hash of files, by name and contents.
fn hash_of<'a>(files: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let of_one = blake3::hash(&bytes(file));
        hasher.update(format!("{file}\n{of_one}\n").as_bytes());
    }
    short(hasher.finalize())
}

/// A hash of texts.
pub fn hash_of_texts<const N: usize>(texts: [&str; N]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    short(hasher.finalize())
}

/// As many digits as tell outputs of a project apart.
fn short(hash: blake3::Hash) -> String {
    hash.to_hex()[..16].to_string()
}

/// Outputs by command, each with what it depended on.
pub struct Kept {
    path: PathBuf,
    outputs: Map<String, Value>,
}

impl Kept {
    /// Those of earlier runs; none if there are none that can be read.
    pub fn open() -> Kept {
        let path = root().join("target/documentation.json");
        let read = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let outputs = match read {
            Some(Value::Object(outputs)) => outputs,
            _ => Map::new(),
        };
        Kept { path, outputs }
    }

    /// The output of `line` if it was printed from the same inputs.
    pub fn get(&self, line: &str, inputs: &str) -> Option<String> {
        let kept = self.outputs.get(line)?;
        let same = kept["inputs"].as_str() == Some(inputs);
        same.then(|| kept["output"].as_str().map(str::to_string)).flatten()
    }

    /// Keeps what `line` has printed.
    pub fn put(&mut self, line: &str, inputs: &str, output: &str) -> Result<(), Failed> {
        let kept = serde_json::json!({ "inputs": inputs, "output": output });
        self.outputs.insert(line.to_string(), kept);
        let text = serde_json::to_string(&self.outputs).map_err(std::io::Error::from);
        text.and_then(|text| std::fs::write(&self.path, text))
            .map_err(|error| Failed(format!("{}: {error}", self.path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_read_off_the_list() {
        let list = "policies! {\ntextbook {\n    \"rr\" rr => Rr: RunQueue, \"x\";\n}\nxen {\n    \
                    \"dm-xen\" sedf::dm_xen => Dm: Scheduler, \"x\";\n}\n}\n";
        let modules = modules(list);
        assert_eq!(modules["rr"], "textbook/rr");
        assert_eq!(modules["dm-xen"], "xen/sedf");
        assert!(is_of("xen/sedf/mod.rs", "xen/sedf") && is_of("textbook/rr.rs", "textbook/rr"));
        assert!(!is_of("textbook/rrr.rs", "textbook/rr"));
    }

    #[test]
    fn names_are_words() {
        assert!(has("policy = [\"sjf\", \"rr\"]", "rr") && has("--policy rr,eevdf", "rr"));
        assert!(!has("sjf-ewma", "sjf") && !has("arrival", "rr"));
    }

    /// A change of one policy prints again what mentions it, and nothing else but lists.
    #[test]
    fn commands_depend_on_the_policies_that_they_mention() {
        let inputs = Inputs::read().unwrap();
        let find = |name: &str| inputs.policies[name].clone();
        assert_eq!(find("fcfs"), "textbook/fcfs");
        let gantt = ["gantt", "docs/policies/rr.toml"];
        assert_ne!(inputs.of(&gantt), inputs.of(&["gantt", "docs/policies/sjf.toml"]));
        assert_eq!(inputs.of(&gantt), Inputs::read().unwrap().of(&gantt));
    }
}
