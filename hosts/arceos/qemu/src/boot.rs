//! What to run, as the host says it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use spin::Once;

use crate::fw_cfg;

/// The item of the firmware configuration that holds the boot text.
const ITEM: &str = "opt/org.anysched/boot";

/// The boot text, read: a line is a word and what it is set to.
///
/// ```text
/// policy rr          set quantum 10ms     (a parameter of the policy)
/// tick 10ms          base 10ms            record
/// app yield          with threads 4       (an argument of the application)
/// ```
#[derive(Debug, Default)]
pub struct Boot {
    /// The policy.
    pub policy: String,
    /// Its parameters.
    pub settings: Vec<(String, String)>,
    /// The machine's tick in nanoseconds; 0: none of its own, the policy's holds.
    pub tick: u64,
    /// Whether calls and answers of the policy are sent to the debug console.
    pub record: bool,
    /// Whether the time that the policy's calls take is measured.
    pub timed: bool,
    /// The application.
    pub app: String,
    /// Its arguments.
    pub arguments: Vec<(String, String)>,
    /// Lines that say nothing of this.
    pub unknown: Vec<String>,
}

impl Boot {
    /// Reads a boot text.
    fn parse(text: &str) -> Boot {
        let mut boot = Boot::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let pair = || rest.split_once(' ').map(|(name, value)| (name.into(), value.into()));
            match (word, pair(), rest.parse()) {
                ("policy", ..) => boot.policy = rest.to_string(),
                ("app", ..) => boot.app = rest.to_string(),
                ("set", Some(pair), _) => boot.settings.push(pair),
                ("with", Some(pair), _) => boot.arguments.push(pair),
                ("tick", _, Ok(nanoseconds)) => boot.tick = nanoseconds,
                ("record", ..) => boot.record = true,
                ("timed", ..) => boot.timed = true,
                _ => boot.unknown.push(line.to_string()),
            }
        }
        boot
    }

    /// The argument `name` of the application.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let found = self.arguments.iter().rev().find(|(argument, _)| argument == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// What the host said, read once; empty if it said nothing.
pub fn boot() -> &'static Boot {
    static BOOT: Once<Boot> = Once::new();
    BOOT.call_once(|| {
        let text = fw_cfg::read(ITEM).unwrap_or_default();
        Boot::parse(core::str::from_utf8(&text).unwrap_or_default())
    })
}
