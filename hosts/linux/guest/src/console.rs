//! The serial line that results leave by. The kernel's own messages leave by another one.

use std::fs::OpenOptions;
use std::os::fd::AsFd;

use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

const LINE: &str = "/dev/ttyS0";

/// Makes the line the standard streams of this program and of those that it starts. Without one,
/// they stay as the kernel has set them.
pub fn open() {
    let Ok(line) = OpenOptions::new().read(true).write(true).open(LINE) else { return };
    if let Ok(mut mode) = tcgetattr(&line) {
        // Line ends stay as they are written.
        mode.make_raw();
        let _ = tcsetattr(&line, OptionalActions::Now, &mode);
    }
    let _ = dup2_stdin(line.as_fd());
    let _ = dup2_stdout(line.as_fd());
    let _ = dup2_stderr(line.as_fd());
}

/// Waits until all that was written has left.
pub fn drain() {
    let _ = tcdrain(rustix::stdio::stdout());
}
