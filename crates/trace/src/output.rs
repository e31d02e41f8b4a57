//! A buffer in front of a file; write errors are reported at the end.

use std::io::{self, Write};
use std::vec;
use std::vec::Vec;

/// How much is buffered before it is written.
const CHUNK: usize = 64 << 10;

/// Where a writer puts its bytes. Sinks cannot fail, so the first error is kept until
/// [`Output::finish`] and nothing is written after it.
#[derive(Debug)]
pub(crate) struct Output<W> {
    inner: W,
    /// Never resized.
    buffer: Vec<u8>,
    /// How much of the buffer has not been written yet.
    used: usize,
    error: Option<io::Error>,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(inner: W) -> Output<W> {
        Output { inner, buffer: vec![0; CHUNK], used: 0, error: None }
    }

    /// Lets `fill` write into the next `N` bytes of the buffer; it returns how many it used.
    #[inline]
    pub(crate) fn fill<const N: usize>(&mut self, fill: impl FnOnce(&mut [u8; N]) -> usize) {
        const { assert!(N <= CHUNK) };
        if self.buffer.len() - self.used < N {
            self.write();
        }
        if let Some(free) = self.buffer[self.used..].first_chunk_mut() {
            self.used += fill(free);
        }
    }

    /// Appends any number of bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.buffer.len() - self.used < bytes.len() {
            self.write();
        }
        match self.buffer[self.used..].get_mut(..bytes.len()) {
            Some(free) => {
                free.copy_from_slice(bytes);
                self.used += bytes.len();
            }
            None if self.error.is_none() => self.error = self.inner.write_all(bytes).err(),
            None => {}
        }
    }

    #[cold]
    fn write(&mut self) {
        if self.error.is_none() {
            self.error = self.inner.write_all(&self.buffer[..self.used]).err();
        }
        self.used = 0;
    }

    /// Writes what is left and returns the file.
    ///
    /// Errors: the first write error.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write();
        match self.error {
            Some(error) => Err(error),
            None => self.inner.flush().map(|()| self.inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts some bytes, then fails; counts the writes attempted after that.
    #[derive(Debug)]
    struct Full {
        room: usize,
        asked: usize,
    }

    impl Write for &mut Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            if taken == 0 {
                self.asked += 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_first_error_is_kept_and_ends_writing() {
        let mut full = Full { room: 100_000, asked: 0 };
        let mut output = Output::new(&mut full);
        for _ in 0..1_000 {
            output.extend(&[7; 1_000]);
        }
        output.extend(&[7; 100_000]);
        let error = output.finish().unwrap_err();
        assert_eq!((error.kind(), full.asked), (io::ErrorKind::StorageFull, 1));
    }

    #[test]
    fn bytes_keep_their_order_whatever_their_size() {
        let mut output = Output::new(Vec::new());
        let mut expected = Vec::new();
        let sizes = [1, CHUNK, 3, 5 * CHUNK, CHUNK - 1, CHUNK + 1, 2, 0].repeat(20);
        for (number, size) in sizes.into_iter().enumerate() {
            let bytes = vec![number as u8; size];
            output.extend(&bytes);
            expected.extend(&bytes);
            output.fill(|free: &mut [u8; 8]| {
                free[0] = 255;
                1
            });
            expected.push(255);
        }
        assert!(output.finish().unwrap() == expected);
    }
}
