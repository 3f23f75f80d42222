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

/// The time limit for an echo.
const ECHO_WAIT: Duration = Duration::from_millis(20);

/// Attempts per size, so that one lost datagram does not shrink the result.
const TRIES: u32 = 2;

/// Attempts of the first size, which shows whether a device answers: a busy device needs time.
const TRIES_FIRST: u32 = 25;

/// Finds the largest echoed datagram up to `bytes_max`, in bytes of UDP payload.
///
/// # Errors
/// [`RadioError::Silent`] when not even the smallest one comes back.
pub fn probe(port: &mut Port, device: SocketAddrV4, bytes_max: usize) -> Result<usize, RadioError> {
    let most = bytes_max.max(DATAGRAM_BYTES_MIN) / 4 * 4;
    let (mut fits, mut too_long) = (DATAGRAM_BYTES_MIN, most + 4);
    // The first answer is worth more attempts than any size.
    if !echoes(port, device, DATAGRAM_BYTES_MIN, TRIES_FIRST)? {
        return Err(silent(device, "an echo", TRIES_FIRST, ECHO_WAIT));
    }
    if echoes(port, device, most, TRIES)? {
        fits = most;
    }
    while too_long - fits > 4 {
        let middle = (fits + too_long) / 8 * 4;
        if echoes(port, device, middle, TRIES)? {
            fits = middle;
        } else {
            too_long = middle;
        }
    }
    // Between the two lies a path of MTU 1500 with a few bytes of encapsulation.
    Ok(if (1473..1500).contains(&fits) { 1472 } else { fits })
}

fn echoes(
    port: &mut Port,
    device: SocketAddrV4,
    bytes: usize,
    tries: u32,
) -> Result<bool, RadioError> {
    let mut datagram = vec![0; bytes];
    datagram[..mpm::ECHO_PREFIX.len()].copy_from_slice(mpm::ECHO_PREFIX);
    for _ in 0..tries {
        // A datagram too long for the first link is refused here, which counts as an answer.
        if port.tx.send(&datagram, device).is_err() {
            return Ok(false);
        }
        let until = Instant::now() + ECHO_WAIT;
        // Datagrams of others do not extend the wait.
        let mut left = ECHO_WAIT;
        while !left.is_zero() {
            let count = port.rx.recv_batch(left).map_err(io_error("receive from", device))?;
            if count == 0 {
                break;
            }
            let came_back = |index| {
                let answer = port.rx.datagram(index);
                answer.source == device && answer.payload == datagram
            };
            if (0..count).any(came_back) {
                return Ok(true);
            }
            left = until.saturating_duration_since(Instant::now());
        }
    }
    Ok(false)
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

    #[test]
    fn a_device_that_is_slow_to_answer_at_first_is_waited_for() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let SocketAddr::V4(device) = socket.local_addr().unwrap() else { unreachable!() };
        let echo = std::thread::spawn(move || {
            let mut buffer = vec![0; 1000];
            std::thread::sleep(5 * ECHO_WAIT);
            loop {
                let (count, from) = socket.recv_from(&mut buffer).unwrap();
                if count == 0 {
                    return;
                }
                socket.send_to(&buffer[..count], from).unwrap();
            }
        });
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut port = open("udp", any, &PortOptions::default()).unwrap();
        assert_eq!(probe(&mut port, device, 1000).unwrap(), 1000);
        port.tx.send(&[], device).unwrap();
        echo.join().unwrap();
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
        assert!(!echoes(&mut port, device, 100, 1).unwrap());
        stop.store(true, Ordering::Relaxed);
        assert!(flood.join().unwrap(), "the wait ended before the flood");
    }
}
