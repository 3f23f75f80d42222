//! A TCP stream read under one deadline and one byte bound.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Instant;

/// Reads at most a number of bytes until a point in time, however slowly they drip.
pub(super) struct DeadlineReader<'a> {
    pub stream: &'a TcpStream,
    pub until: Instant,
    pub bytes_left: u64,
}

impl Read for DeadlineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes_left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the response is too long"));
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let room = buffer.len().min(usize::try_from(self.bytes_left).unwrap_or(usize::MAX));
        let count = self.stream.read(&mut buffer[..room])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.bytes_left -= count as u64;
        Ok(count)
    }
}
