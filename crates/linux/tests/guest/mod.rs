//! The guest that tests of Linux boot.

// Each test program uses what it needs.
#![allow(dead_code)]

use anysched_core::registry::PolicyInfo;
use anysched_host::as_text;
use anysched_linux::{Boot, BootError, Image, Purpose, Suite};
use anysched_qemu::Outcome;
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

/// Room for logs in tests, in bytes. The usual room takes the guest two seconds to allocate.
const LOG_BYTES: u64 = 32 << 20;

/// A boot of `program` under `policy`.
pub fn boot(policy: &str, program: &str, arguments: &[(&str, &str)]) -> Boot {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let mut boot = Boot::new(policy, program);
    boot.orders.arguments = arguments.iter().map(owned).collect();
    boot.log_bytes = LOG_BYTES;
    boot
}

/// Makes the rehearsal of a boot by `run`, if its policy needs one, and gives the boot what was
/// learned. False: `run` came to no outcome.
pub fn rehearse(
    info: &PolicyInfo,
    boot: &mut Boot,
    run: impl FnOnce(&Boot) -> Result<Option<Outcome>, String>,
) -> Result<bool, String> {
    let needs = (info.rehearsal)(&[]).map_err(|error| error.to_string())?;
    let Some(first) = needs else { return Ok(true) };
    boot.orders.settings = first;
    let Some(rehearsal) = run(boot)? else { return Ok(false) };
    boot.orders.settings = rehearsal.learned;
    let needs = (info.rehearsal)(&as_text(&boot.orders.settings));
    assert_eq!(needs, Ok(None), "{}: what was learned is enough", info.name);
    Ok(true)
}
