//! The largest datagram that reaches a device and comes back.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::mpm;

use crate::RadioError;
use crate::error::io_error;
use crate::opening::silent;

/// The smallest datagram that every IPv4 path carries, bytes of UDP payload.
pub const DATAGRAM_BYTES_MIN: usize = 548;

/// The largest datagram that is tried, bytes: 8000 bytes of samples behind a CHDR header with time.
pub const DATAGRAM_BYTES_MAX: usize = 8016;

/// The largest one for a device that reports a link of 1 Gb/s.
pub const DATAGRAM_BYTES_MAX_1G: usize = 1500;

/// The time after which an echo is asked for again.
const ECHO_WAIT: Duration = Duration::from_millis(100);

/// Attempts per size, so that one lost datagram does not shrink the result.
const TRIES: u32 = 2;

/// Attempts of the smallest size, which shows whether a device answers: a busy one needs time.
const TRIES_SMALLEST: u32 = 5;

/// Finds the largest echoed datagram up to `bytes_max`, in bytes of UDP payload.
///
/// # Errors
/// [`RadioError::Silent`] when not even the smallest one comes back.
pub fn probe(port: &mut Port, device: SocketAddrV4, bytes_max: usize) -> Result<usize, RadioError> {
    let most = bytes_max.max(DATAGRAM_BYTES_MIN) / 4 * 4;
    let (mut fits, mut too_long) = (DATAGRAM_BYTES_MIN, most + 4);
    let mut path = EchoPath { port, device, asked: 0 };
    path.smallest(None)?;
    if path.carries(most)? {
        fits = most;
    }
    while too_long - fits > 4 {
        let middle = (fits + too_long) / 8 * 4;
        if path.carries(middle)? {
            fits = middle;
        } else {
            too_long = middle;
        }
    }
    // Between the two lies a path of MTU 1500 with a few bytes of encapsulation.
    Ok(if (1473..1500).contains(&fits) { 1472 } else { fits })
}

/// A path on which datagrams are echoed in their order.
struct EchoPath<'a> {
    port: &'a mut Port,
    device: SocketAddrV4,
    /// Numbers the datagrams, so that a late echo is not taken for one of a later datagram.
    asked: u32,
}

impl EchoPath<'_> {
    /// Returns whether a datagram of so many bytes comes back. The smallest one follows it: what is
    /// missing when that one is back was too long or lost, however busy the device is.
    fn carries(&mut self, bytes: usize) -> Result<bool, RadioError> {
        for _ in 0..TRIES {
            let datagram = self.datagram(bytes);
            // A datagram too long for the first link is refused here, which counts as an answer.
            if self.port.tx.send(&datagram, self.device).is_err() {
                return Ok(false);
            }
            if self.smallest(Some(&datagram))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Asks for the smallest datagram until it comes back, or `before` does: returns whether that
    /// one did.
    fn smallest(&mut self, before: Option<&[u8]>) -> Result<bool, RadioError> {
        let smallest = self.datagram(DATAGRAM_BYTES_MIN);
        for _ in 0..TRIES_SMALLEST {
            // A system that is out of memory for a moment loses it like a path.
            let _ = self.port.tx.send(&smallest, self.device);
            let came = self.first_back(|echo| echo == smallest || Some(echo) == before)?;
            if came.is_some() {
                return Ok(came == before.map(<[u8]>::len));
            }
        }
        Err(silent(self.device, "an echo", TRIES_SMALLEST, ECHO_WAIT))
    }

    fn datagram(&mut self, bytes: usize) -> Vec<u8> {
        self.asked += 1;
        let mut datagram = vec![0; bytes];
        let (prefix, rest) = datagram.split_at_mut(mpm::ECHO_PREFIX.len());
        prefix.copy_from_slice(mpm::ECHO_PREFIX);
        rest[..4].copy_from_slice(&self.asked.to_be_bytes());
        datagram
    }

    /// Returns the length of the first wanted datagram that comes back within [`ECHO_WAIT`].
    fn first_back(
        &mut self,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<usize>, RadioError> {
        let until = Instant::now() + ECHO_WAIT;
        // Datagrams of others do not extend the wait.
        let mut left = ECHO_WAIT;
        while !left.is_zero() {
            let received = self.port.rx.recv_batch(left);
            let count = received.map_err(io_error("receive from", self.device))?;
            if count == 0 {
                break;
            }
            let from_device = (0..count)
                .map(|index| self.port.rx.datagram(index))
                .filter(|answer| answer.source == self.device);
            let mut echoes = from_device.map(|answer| answer.payload);
            if let Some(echo) = echoes.find(|echo| is_wanted(echo)) {
                return Ok(Some(echo.len()));
            }
            left = until.saturating_duration_since(Instant::now());
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_link::open;
    use millstream_link::port::PortOptions;
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Probes a path that carries `limit` bytes and loses every `lose`th datagram.
    fn probe_path(limit: usize, lose: usize, bytes_max: usize) -> Result<usize, RadioError> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let SocketAddr::V4(device) = socket.local_addr().unwrap() else { unreachable!() };
        let echo = std::thread::spawn(move || {
            let mut buffer = vec![0; 10_000];
            for turn in 1.. {
                let (count, from) = socket.recv_from(&mut buffer).unwrap();
                if count == 0 {
                    return;
                }
                if count <= limit && turn % lose != 0 {
                    socket.send_to(&buffer[..count], from).unwrap();
                }
            }
        });
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut port = open("udp", any, &PortOptions::default()).unwrap();
        let result = probe(&mut port, device, bytes_max);
        port.tx.send(&[], device).unwrap();
        echo.join().unwrap();
        result
    }

    #[test]
    fn the_largest_size_that_comes_back_is_found() {
        for (limit, bytes_max, want) in [
            (9000, DATAGRAM_BYTES_MAX, 8016),
            (9000, DATAGRAM_BYTES_MAX_1G, 1500),
            (1472, DATAGRAM_BYTES_MAX, 1472),
            (1498, DATAGRAM_BYTES_MAX, 1472),
            (1000, DATAGRAM_BYTES_MAX, 1000),
            (551, DATAGRAM_BYTES_MAX, 548),
            // A link that promises less than IPv4 does.
            (548, 100, 548),
        ] {
            assert_eq!(probe_path(limit, usize::MAX, bytes_max).unwrap(), want, "{limit}");
        }
    }

    #[test]
    fn one_lost_echo_does_not_shrink_the_result() {
        assert_eq!(probe_path(1472, 3, DATAGRAM_BYTES_MAX).unwrap(), 1472);
    }

    /// Probes a device that begins after `first` and needs `each` for every answer.
    fn probe_slow(first: Duration, each: Duration) -> usize {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let SocketAddr::V4(device) = socket.local_addr().unwrap() else { unreachable!() };
        let echo = std::thread::spawn(move || {
            let mut buffer = vec![0; 1000];
            std::thread::sleep(first);
            loop {
                let (count, from) = socket.recv_from(&mut buffer).unwrap();
                if count == 0 {
                    return;
                }
                std::thread::sleep(each);
                socket.send_to(&buffer[..count], from).unwrap();
            }
        });
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut port = open("udp", any, &PortOptions::default()).unwrap();
        let found = probe(&mut port, device, 1000).unwrap();
        port.tx.send(&[], device).unwrap();
        echo.join().unwrap();
        found
    }

    #[test]
    fn a_device_that_is_slow_to_answer_is_waited_for_and_not_taken_for_a_short_path() {
        assert_eq!(probe_slow(2 * ECHO_WAIT, Duration::ZERO), 1000);
        assert_eq!(probe_slow(Duration::ZERO, ECHO_WAIT * 6 / 5), 1000);
    }

    #[test]
    fn a_device_that_echoes_nothing_is_named() {
        let text = probe_path(0, usize::MAX, DATAGRAM_BYTES_MAX).unwrap_err().to_string();
        assert!(text.contains("did not answer an echo"), "{text}");
    }

    #[test]
    fn a_flood_of_other_datagrams_does_not_extend_the_wait() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let SocketAddr::V4(device) = socket.local_addr().unwrap() else { unreachable!() };
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let flood = std::thread::spawn(move || {
            let (_, from) = socket.recv_from(&mut [0; 10_000]).unwrap();
            // So long that a wait that it extends is seen, and the test ends all the same.
            let until = Instant::now() + Duration::from_secs(20);
            while !over.load(Ordering::Relaxed) && Instant::now() < until {
                socket.send_to(b"no echo", from).unwrap();
            }
            over.load(Ordering::Relaxed)
        });
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut port = open("udp", any, &PortOptions::default()).unwrap();
        let mut path = EchoPath { port: &mut port, device, asked: 0 };
        assert!(path.smallest(None).is_err());
        stop.store(true, Ordering::Relaxed);
        assert!(flood.join().unwrap(), "the wait ended before the flood");
    }
}
