//! The datagrams between a load generator on this computer and a server in a kernel under test.
//!
//! | datagram | from | bytes, numbers little-endian |
//! |---|---|---|
//! | hello | generator | [`MARK`], `h` |
//! | request | generator | [`MARK`], `r`, number (8), sent (8), cost (8), padding |
//! | quit | generator | [`MARK`], `q` |
//! | answer | server | [`MARK`], `a`, number (8), sent (8), arrival (8), start (8), end (8), padding |
//!
//! A server sends a hello back. Padding makes a datagram as long as the generator wants it; an
//! answer is at least as long as its request. All times are in nanoseconds; `sent` is by the
//! generator's clock and comes back unchanged, the times in answers are by the server's. The mark
//! contains the version. Anything else is refused, and counted.

/// What all datagrams begin with; the last character is the version.
pub const MARK: [u8; 4] = *b"any1";

/// The longest datagram that fits in a frame of Ethernet, in bytes.
pub const LONGEST: usize = 1472;

/// The shortest length at which every datagram fits, in bytes.
pub const SHORTEST: usize = ANSWER;

/// The most CPU time that a request may ask for: a minute.
pub const DEAREST: u64 = 60_000_000_000;

/// The port of a server's first socket; those of the others follow.
pub const PORT: u16 = 5555;

/// The clients that one socket of ArceOS can serve: it keeps this many datagrams, and drops those
/// that arrive while it is full. A client that waits for its answer has one in flight.
pub const CLIENTS_PER_SOCKET: usize = 8;

const ANSWER: usize = HEAD + 5 * 8;
const HEAD: usize = MARK.len() + 1;

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// Are you there? Also the answer to it.
    Hello,
    /// Work to do.
    Request(Request),
    /// The server is no longer needed.
    Quit,
    /// Work that was done.
    Answer(Answer),
}

/// Work to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Tells the requests of a client apart.
    pub number: u64,
    /// When it was sent, for the generator.
    pub sent: u64,
    /// CPU time that it needs, in nanoseconds, [`DEAREST`] at most.
    pub cost: u64,
}

/// Work that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request's number.
    pub number: u64,
    /// When the request was sent, for the generator.
    pub sent: u64,
    /// When the server took the request from its socket.
    pub arrival: u64,
    /// When the work began.
    pub start: u64,
    /// When the work was done.
    pub end: u64,
}

impl Datagram {
    /// Reads a datagram. `None`: it is none of these, is too short for its kind, or asks for too
    /// much.
    pub fn decode(bytes: &[u8]) -> Option<Datagram> {
        let (mark, rest) = bytes.split_first_chunk()?;
        let (kind, rest) = rest.split_first()?;
        match (mark == &MARK, kind) {
            (true, b'h') => rest.is_empty().then_some(Datagram::Hello),
            (true, b'q') => rest.is_empty().then_some(Datagram::Quit),
            (true, b'r') => {
                let [number, sent, cost] = numbers(rest)?;
                (cost <= DEAREST).then_some(Datagram::Request(Request { number, sent, cost }))
            }
            (true, b'a') => {
                let [number, sent, arrival, start, end] = numbers(rest)?;
                Some(Datagram::Answer(Answer { number, sent, arrival, start, end }))
            }
            _ => None,
        }
    }

    /// Writes the datagram and returns its length in bytes without padding. The bytes after that
    /// stay as they were.
    pub fn encode(&self, into: &mut [u8; LONGEST]) -> usize {
        let (kind, numbers): (u8, &[u64]) = match self {
            Datagram::Hello => (b'h', &[]),
            Datagram::Quit => (b'q', &[]),
            Datagram::Request(Request { number, sent, cost }) => (b'r', &[*number, *sent, *cost]),
            Datagram::Answer(Answer { number, sent, arrival, start, end }) => {
                (b'a', &[*number, *sent, *arrival, *start, *end])
            }
        };
        into[..MARK.len()].copy_from_slice(&MARK);
        into[MARK.len()] = kind;
        for (place, number) in into[HEAD..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        HEAD + 8 * numbers.len()
    }
}

/// The first numbers of `bytes`.
fn numbers<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    let mut rest = bytes;
    for number in &mut numbers {
        let (first, behind) = rest.split_first_chunk()?;
        *number = u64::from_le_bytes(*first);
        rest = behind;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Datagram; 4] = [
        Datagram::Hello,
        Datagram::Request(Request { number: 1, sent: u64::MAX, cost: DEAREST }),
        Datagram::Quit,
        Datagram::Answer(Answer { number: 2, sent: 3, arrival: 4, start: 5, end: 1 << 40 }),
    ];

    #[test]
    fn what_is_written_can_be_read() {
        for datagram in ALL {
            let mut bytes = [0; LONGEST];
            let length = datagram.encode(&mut bytes);
            assert!(length <= SHORTEST);
            assert_eq!(Datagram::decode(&bytes[..length]), Some(datagram));
        }
    }

    /// The bytes spelled out by hand, so that both sides can be built at different times.
    #[test]
    fn a_request_byte_by_byte() {
        let mut bytes = [0xff; LONGEST];
        let request = Request { number: 0x0102, sent: 3, cost: 20_000_000 };
        let length = Datagram::Request(request).encode(&mut bytes);
        let expected = *b"any1r\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x00\x2d\x31\x01\0\0\0\0";
        assert_eq!(bytes[..length], expected);
        assert_eq!(bytes[length], 0xff, "padding is not touched");
    }

    #[test]
    fn padding_is_allowed_where_it_has_a_use() {
        for datagram in ALL {
            let mut bytes = [7; LONGEST];
            let length = datagram.encode(&mut bytes);
            let padded = Datagram::decode(&bytes[..length + 100]);
            let may = matches!(datagram, Datagram::Request(_) | Datagram::Answer(_));
            assert_eq!(padded, may.then_some(datagram));
        }
    }

    #[test]
    fn garbage_is_refused() {
        for datagram in ALL {
            let mut bytes = [0; LONGEST];
            let length = datagram.encode(&mut bytes);
            for cut in 0..length {
                assert_eq!(Datagram::decode(&bytes[..cut]), None, "{datagram:?} cut to {cut}");
            }
            for at in 0..MARK.len() {
                bytes[at] ^= 1;
                assert_eq!(Datagram::decode(&bytes[..length]), None, "{datagram:?}, byte {at}");
                bytes[at] ^= 1;
            }
            bytes[MARK.len()] = b'x';
            assert_eq!(Datagram::decode(&bytes[..length]), None);
        }
    }

    #[test]
    fn a_request_that_is_too_dear_is_refused() {
        let mut bytes = [0; LONGEST];
        let dear = Datagram::Request(Request { number: 1, sent: 2, cost: DEAREST + 1 });
        let length = dear.encode(&mut bytes);
        assert_eq!(Datagram::decode(&bytes[..length]), None);
    }
}
