//! The guest that tests of Linux boot.

// Each test program uses what it needs.
#![allow(dead_code)]

use anysched_linux::{Boot, BootError, Image, Purpose, Suite};
use std::io::Write;
use std::sync::OnceLock;

/// The image; `None`, said in capitals, if there is no kernel that fits today.
pub fn image() -> Option<&'static Image> {
    static IMAGE: OnceLock<Option<Image>> = OnceLock::new();
    let find = || {
        let say = &mut |line: &str| eprintln!("linux: {line}");
        let suite = match Suite::find(Purpose::Build, say) {
            Ok(suite) => suite,
            Err(error @ BootError::Unavailable { .. }) => {
                let said =
                    format!("NO LINUX KERNEL THAT FITS CAN BE HAD: NOTHING IS TESTED\n{error}\n");
                // Not by `eprintln`, which tests keep to themselves.
                std::io::stderr().write_all(said.as_bytes()).unwrap();
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        Some(Image::build(&suite, say).unwrap_or_else(|error| panic!("{error}")))
    };
    IMAGE.get_or_init(find).as_ref()
}

/// A boot of `program` under `policy`.
pub fn boot(policy: &str, program: &str, arguments: &[(&str, &str)]) -> Boot {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let mut boot = Boot::new(policy, program);
    boot.orders.arguments = arguments.iter().map(owned).collect();
    boot
}
