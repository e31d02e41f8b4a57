//! How the agent is doing, for whoever connects to its socket: the text that the kernel's module
//! has in a file. And a socket for what the module has another file for: parameters that change.

use std::fs;
use std::io::{ErrorKind, Result};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;

use anysched_wire::change::LONGEST;
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

/// A [change](anysched_wire::change) that somebody asks for, or the answer to it.
pub struct Letter {
    pub text: Vec<u8>,
    /// Who asks.
    pub from: SocketAddr,
}

/// The socket for changes. What comes is whole: this thread waits for nobody.
pub struct Changes(UnixDatagram);

impl Changes {
    /// Takes what is sent to `path` by those who may send signals to the agent, too.
    ///
    /// Errors: it cannot be made.
    pub fn open(path: &Path) -> Result<Changes> {
        let _ = fs::remove_file(path);
        let socket = UnixDatagram::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        socket.set_nonblocking(true)?;
        Ok(Changes(socket))
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// What somebody asks for.
    pub fn next(&self) -> Option<Letter> {
        let mut text = vec![0; LONGEST];
        let (length, from) = self.0.recv_from(&mut text).ok()?;
        text.truncate(length);
        Some(Letter { text, from })
    }

    /// Answers, if who has asked is still there.
    pub fn tell(&self, answer: &Letter) {
        let _ = self.0.send_to_addr(&answer.text, &answer.from);
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
    fn who_asks_for_a_change_is_answered() {
        let place = |end: &str| {
            std::env::temp_dir().join(format!("anysched-changes-{}-{end}", std::process::id()))
        };
        let changes = Changes::open(&place("agent")).unwrap();
        assert!(changes.next().is_none());
        let asks = UnixDatagram::bind(place("asks")).unwrap();
        asks.send_to(b"set", place("agent")).unwrap();
        let letter = changes.next().unwrap();
        assert_eq!(letter.text, b"set");
        changes.tell(&Letter { text: b"done".to_vec(), ..letter });
        let mut answer = [0; 8];
        assert_eq!(asks.recv(&mut answer).unwrap(), 4);
        assert_eq!(&answer[..4], b"done");
        fs::remove_file(place("agent")).unwrap();
        fs::remove_file(place("asks")).unwrap();
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
