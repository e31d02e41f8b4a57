//! Echo requests of ICMP (RFC 792), by a socket for which the kernel counts the checksum and
//! chooses the identifier (icmp(7)).

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketType, connect, ipproto, recv, send, socket,
};

/// Which groups may have such sockets.
const ALLOWED: &str = "/proc/sys/net/ipv4/ping_group_range";

const REQUEST: u8 = 8;
const REPLY: u8 = 0;

/// Bytes of a request: eight of its header, and as many behind that as ping sends.
const LENGTH: usize = 8 + 56;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Requests to one address.
pub struct Echo {
    socket: OwnedFd,
    sequence: u16,
}

impl Echo {
    /// Errors: the kernel has no such sockets.
    pub fn to(address: Ipv4Addr) -> io::Result<Echo> {
        fs::write(ALLOWED, "0 2147483647")?;
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::ICMP))?;
        connect(&socket, &SocketAddrV4::new(address, 0))?;
        Ok(Echo { socket, sequence: 0 })
    }

    /// Sends a request and waits for its answer: how long that took, or nothing if it was lost.
    ///
    /// Errors: it cannot be sent.
    pub fn ping(&mut self) -> io::Result<Option<Duration>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = [0; LENGTH];
        request[0] = REQUEST;
        request[6..8].copy_from_slice(&self.sequence.to_be_bytes());
        let begin = Instant::now();
        send(&self.socket, &request, SendFlags::empty())?;
        while let Some(left) = PATIENCE.checked_sub(begin.elapsed()).filter(|left| !left.is_zero())
        {
            set_socket_timeout(&self.socket, Timeout::Recv, Some(left))?;
            let mut answer = [0; LENGTH];
            match recv(&self.socket, &mut answer, RecvFlags::empty()) {
                Ok(_) if answer[0] == REPLY && answer[6..8] == request[6..8] => {
                    return Ok(Some(begin.elapsed()));
                }
                // An answer that is late, or none.
                _ => {}
            }
        }
        Ok(None)
    }
}
