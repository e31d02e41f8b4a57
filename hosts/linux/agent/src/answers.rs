//! How the agent is doing, for whoever connects to its socket: the text that the kernel's module
//! has in a file.

use std::fs;
use std::io::{ErrorKind, Result};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use anysched_wire::status::{Line, Runs};

/// What the thread that decides says of itself.
pub struct Report {
    /// The lines, but for what CPUs run.
    pub text: String,
    /// CPU, the policy's number of the task and the kernel's.
    pub runs: Vec<(u16, u32, u32)>,
}

impl Report {
    /// The text. Names of tasks are asked for here, and not by the thread that decides.
    pub fn into_text(self) -> String {
        let Report { mut text, runs } = self;
        for (cpu, task, pid) in runs {
            // It may have ended meanwhile.
            let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) else { continue };
            let name = name.trim_end_matches('\n').into();
            text += &format!("{}\n", Line::Runs(Runs { cpu, task, pid, name }));
        }
        text
    }
}

/// The socket.
pub struct Answers(UnixListener);

impl Answers {
    /// Takes connections at `path`, where nothing is to be left of an earlier agent.
    ///
    /// Errors: it cannot be made.
    pub fn open(path: &Path) -> Result<Answers> {
        let _ = fs::remove_file(path);
        let socket = UnixListener::bind(path)?;
        socket.set_nonblocking(true)?;
        Ok(Answers(socket))
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Who has connected.
    pub fn next(&self) -> Option<UnixStream> {
        loop {
            match self.0.accept() {
                Ok((asks, _)) => return Some(asks),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

/// Tells `text` to who `asks`, as far as that one takes it: this thread waits for nobody. Nor is it
/// ended by who has gone.
pub fn tell(asks: &UnixStream, mut text: &[u8]) {
    while !text.is_empty() {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: it reads so many bytes.
        let sent = unsafe { libc::send(asks.as_raw_fd(), text.as_ptr().cast(), text.len(), flags) };
        match usize::try_from(sent) {
            Ok(sent) => text = &text[sent..],
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn who_connects_is_told() {
        let path = std::env::temp_dir().join(format!("anysched-agent-{}", std::process::id()));
        let answers = Answers::open(&path).unwrap();
        assert!(answers.next().is_none());
        let mut asks = UnixStream::connect(&path).unwrap();
        tell(&answers.next().unwrap(), b"idle");
        let mut told = String::new();
        asks.read_to_string(&mut told).unwrap();
        assert_eq!(told, "idle");
        drop(UnixStream::connect(&path).unwrap());
        tell(&answers.next().unwrap(), b"idle");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn tasks_that_run_have_names() {
        let pid = std::process::id();
        let report = Report { text: "idle\n".into(), runs: vec![(1, 7, pid), (2, 8, u32::MAX)] };
        let text = report.into_text();
        assert!(text.starts_with(&format!("idle\nruns 1 7 {pid} ")), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
}
