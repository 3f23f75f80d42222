//! Receivers of packets of samples: datagrams (UDP), or a connection (TCP).

use crate::DropCause;
use crate::outlet::{Outcomes, Outlet, OutletError};
use crate::wire_stream::WireStream;
use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Packets of one system call.
const BATCH: usize = 64;
/// Pause between two batches: half of the packets that a receive buffer of the default size holds
/// come in it at 30 MS/s.
const PAUSE: Duration = Duration::from_micros(500);

/// Where packets go, and how: `ADDR:PORT` and `udp:ADDR:PORT` by UDP, `tcp:ADDR:PORT` by TCP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReceiverAddress {
    /// A packet in each datagram.
    Udp(SocketAddr),
    /// Packets one behind the other: each begins with its length.
    Tcp(SocketAddr),
}

impl FromStr for ReceiverAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, address): (fn(SocketAddr) -> Self, _) = match text.split_once(':') {
            Some(("tcp", address)) => (Self::Tcp, address),
            Some(("udp", address)) => (Self::Udp, address),
            _ => (Self::Udp, text),
        };
        let address: SocketAddr = address.parse().map_err(|_| {
            format!(
                "`{text}` is not the address of a receiver: expected ADDR:PORT for UDP or \
                 tcp:ADDR:PORT, such as 192.168.20.3:4991"
            )
        })?;
        if address.port() == 0 {
            return Err(format!("`{text}` has the port 0: give the port of the receiver"));
        }
        Ok(kind(address))
    }
}

impl fmt::Display for ReceiverAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

impl ReceiverAddress {
    /// Returns the outlet for this address.
    #[must_use]
    pub fn outlet(self) -> Box<dyn Outlet> {
        match self {
            Self::Udp(to) => Box::new(DatagramOutlet::new(to)),
            Self::Tcp(to) => {
                Box::new(ConnectionOutlet { to, wire: None, packets: VecDeque::new() })
            }
        }
    }
}

/// A receiver of datagrams. A packet counts as acknowledged when the kernel takes it: UDP does not
/// tell whether it arrives.
pub struct DatagramOutlet {
    to: SocketAddr,
    socket: Option<UdpSocket>,
    /// The bytes of packets that are to be sent, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Whether the last batch was full and left.
    is_busy: bool,
}

impl DatagramOutlet {
    /// Creates the outlet.
    #[must_use]
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            socket: None,
            bytes: Vec::new(),
            ends: Vec::with_capacity(BATCH),
            is_busy: false,
        }
    }

    /// Sends packets from the front; returns the outcome of those that left.
    fn send(&mut self) -> Result<Outcomes, OutletError> {
        let mut progress = Outcomes::default();
        let Some(socket) = &self.socket else { return Ok(progress) };
        let mut first = 0;
        while first < self.ends.len() {
            let start = |index: usize| if index == 0 { 0 } else { self.ends[index - 1] };
            let slices: [IoSlice<'_>; BATCH] = std::array::from_fn(|offset| {
                let index = first + offset;
                let range = self.ends.get(index).map(|end| start(index)..*end);
                IoSlice::new(range.map_or(&[], |range| &self.bytes[range]))
            });
            let count = self.ends.len() - first;
            let mut ancillary: [SendAncillaryBuffer<'_, '_, '_>; BATCH] =
                std::array::from_fn(|_| SendAncillaryBuffer::default());
            let mut headers: Vec<_> = slices[..count]
                .iter()
                .zip(&mut ancillary)
                .map(|(slice, control)| MMsgHdr::new(std::slice::from_ref(slice), control))
                .collect();
            match sendmmsg(socket, &mut headers, SendFlags::DONTWAIT) {
                Ok(sent) => {
                    progress.acknowledged += sent as u64;
                    first += sent;
                }
                Err(Errno::INTR) => {}
                // The kernel's buffer is full: later.
                Err(Errno::AGAIN | Errno::NOBUFS) => break,
                // The answer to an earlier packet took the place of this one.
                Err(Errno::CONNREFUSED | Errno::MSGSIZE) => {
                    // The order of outcomes does not matter: only their number is kept.
                    progress.refused += 1;
                    first += 1;
                }
                Err(error) if progress == Outcomes::default() => {
                    let error = std::io::Error::from(error);
                    return Err(OutletError(format!("cannot send to {}: {error}", self.to)));
                }
                // The next call tells.
                Err(_) => break,
            }
        }
        let gone = if first == 0 { 0 } else { self.ends[first - 1] };
        self.ends.drain(..first);
        self.ends.iter_mut().for_each(|end| *end -= gone);
        self.bytes.drain(..gone);
        Ok(progress)
    }
}

impl Outlet for DatagramOutlet {
    fn name(&self) -> String {
        ReceiverAddress::Udp(self.to).to_string()
    }

    fn away_cause(&self) -> DropCause {
        DropCause::ReceiverAway
    }

    fn open(&mut self) -> Result<(), OutletError> {
        (self.socket, self.bytes, self.ends) = (None, Vec::new(), Vec::with_capacity(BATCH));
        let any: SocketAddr = match self.to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let cannot = |error| OutletError(format!("cannot send to {}: {error}", self.to));
        let socket = UdpSocket::bind(any).map_err(cannot)?;
        socket.connect(self.to).map_err(cannot)?;
        socket.set_nonblocking(true).map_err(cannot)?;
        self.socket = Some(socket);
        Ok(())
    }

    fn message_bytes_max(&self) -> usize {
        // The longest IPv4 datagram, without its headers.
        65_507
    }

    fn push(&mut self, message: &[u8]) -> bool {
        if self.ends.len() == BATCH {
            return false;
        }
        self.bytes.extend_from_slice(message);
        self.ends.push(self.bytes.len());
        true
    }

    fn exchange(&mut self, _: Instant) -> Result<Outcomes, OutletError> {
        let is_full = self.ends.len() == BATCH;
        let result = self.send();
        self.is_busy = is_full && self.ends.is_empty();
        result
    }

    fn pause(&self) -> Duration {
        // More than a full batch comes in a pause, so there is more already.
        if self.is_busy { Duration::ZERO } else { PAUSE }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn close(&mut self) -> Result<(), OutletError> {
        self.socket = None;
        Ok(())
    }
}

/// A receiver behind a connection. A packet counts as acknowledged when the kernel has all of it.
/// So a new connection begins with one of which the receiver has at most a part.
struct ConnectionOutlet {
    to: SocketAddr,
    wire: Option<WireStream>,
    /// The lengths of packets that the kernel has not taken, or not all of the first.
    packets: VecDeque<usize>,
}

impl ConnectionOutlet {
    /// Counts the packets that the kernel has taken since the last call.
    fn taken(&mut self) -> u64 {
        let unsent = self.wire.as_ref().map_or(0, WireStream::unsent);
        let mut taken = self.packets.iter().sum::<usize>() - unsent;
        let before = self.packets.len();
        while self.packets.front().is_some_and(|length| *length <= taken) {
            taken -= self.packets.pop_front().unwrap_or(0);
        }
        (before - self.packets.len()) as u64
    }
}

impl Outlet for ConnectionOutlet {
    fn name(&self) -> String {
        ReceiverAddress::Tcp(self.to).to_string()
    }

    fn away_cause(&self) -> DropCause {
        DropCause::ReceiverAway
    }

    fn open(&mut self) -> Result<(), OutletError> {
        (self.wire, self.packets) = (None, VecDeque::new());
        self.wire = Some(WireStream::connect(&self.to.to_string())?);
        Ok(())
    }

    fn push(&mut self, message: &[u8]) -> bool {
        let Some(wire) = self.wire.as_mut().filter(|wire| wire.has_room(message.len())) else {
            return false;
        };
        wire.put(message);
        self.packets.push_back(message.len());
        true
    }

    fn exchange(&mut self, now: Instant) -> Result<Outcomes, OutletError> {
        let Some(wire) = &mut self.wire else { return Ok(Outcomes::default()) };
        let sent = wire.flush();
        let progress = Outcomes { acknowledged: self.taken(), refused: 0 };
        // What the kernel has taken counts, although the connection is gone; the next call tells.
        if sent.is_err() && progress == Outcomes::default() {
            sent?;
        }
        let Some(wire) = &mut self.wire else { return Ok(progress) };
        // A receiver has nothing to say, but its end shows here.
        let heard = wire.receive(now, false, |received| {
            received.used = received.bytes.len();
            Ok(false)
        });
        if progress == Outcomes::default() {
            heard?;
        }
        Ok(progress)
    }

    fn pause(&self) -> Duration {
        PAUSE
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.wire.as_ref().map(WireStream::descriptor)
    }

    fn close(&mut self) -> Result<(), OutletError> {
        self.wire = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_packets_go_there() {
        let read = |text: &str| text.parse::<ReceiverAddress>();
        let address = "10.0.0.2:4991".parse().unwrap();
        assert_eq!(read("10.0.0.2:4991"), Ok(ReceiverAddress::Udp(address)));
        assert_eq!(read("udp:10.0.0.2:4991"), Ok(ReceiverAddress::Udp(address)));
        assert_eq!(read("tcp:10.0.0.2:4991"), Ok(ReceiverAddress::Tcp(address)));
        assert_eq!(read("[::1]:5").map(|one| one.to_string()), Ok("udp:[::1]:5".to_owned()));
        let error = read("sctp:10.0.0.2:1").unwrap_err();
        assert!(error.starts_with("`sctp:10.0.0.2:1` is not the address of a receiver: "));
        assert!(read("10.0.0.2:0").unwrap_err().contains("has the port 0"));
    }

    #[test]
    fn what_the_kernel_has_taken_whole_is_not_sent_again() {
        const BYTES: usize = 1468;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut outlet = ReceiverAddress::Tcp(listener.local_addr().unwrap()).outlet();
        outlet.open().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        // Nobody reads, so in the end the kernel takes a part of what is there.
        let (mut pushed, mut acknowledged, mut full) = (0, 0, 0);
        while full < 3 {
            while outlet.push(&[7; BYTES]) {
                pushed += 1;
            }
            let outcomes = outlet.exchange(Instant::now()).unwrap();
            acknowledged += outcomes.acknowledged;
            full = if outcomes == Outcomes::default() { full + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(acknowledged < pushed, "{acknowledged} of {pushed}");
        let mut received = Vec::new();
        let end = std::io::Read::read_to_end(&mut stream, &mut received).unwrap_err();
        assert_eq!(end.kind(), std::io::ErrorKind::WouldBlock);
        assert_eq!((received.len() / BYTES) as u64, acknowledged);
    }
}
