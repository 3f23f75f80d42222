//! Ethernet frames built by hand, to compare a test's frames with a link's view of them.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::netns::{INTERFACE, Namespace};

/// A raw packet socket on the interface of a namespace: it sends any frame unchanged.
pub struct Injector {
    socket: OwnedFd,
    to: libc::sockaddr_ll,
}

impl Injector {
    /// Opens a socket.
    ///
    /// # Panics
    /// If the system refuses, which it does not where namespaces could be made.
    #[must_use]
    pub fn new(namespace: &Namespace) -> Self {
        namespace.run(|| {
            // SAFETY: a plain system call; the result is checked before it is owned.
            let socket =
                unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
            assert!(socket >= 0, "AF_PACKET: {}", io::Error::last_os_error());
            // SAFETY: a name that ends with a zero byte.
            let index = unsafe { libc::if_nametoindex(c"veth0".as_ptr()) };
            assert!(index > 0, "{INTERFACE}: {}", io::Error::last_os_error());
            // SAFETY: a plain C structure, for which zeros are a valid value.
            let mut to: libc::sockaddr_ll = unsafe { mem::zeroed() };
            to.sll_family = libc::AF_PACKET as u16;
            to.sll_ifindex = index as i32;
            // SAFETY: just opened, and not owned elsewhere.
            Self { socket: unsafe { OwnedFd::from_raw_fd(socket) }, to }
        })
    }

    /// Sends a frame, Ethernet header included.
    ///
    /// # Errors
    /// The system's error.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the frame and the address live through the call, with their true lengths.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const self.to).cast(),
                mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Returns the Ethernet address of the interface of a namespace.
///
/// # Panics
/// If `ip` prints an unknown format.
#[must_use]
pub fn mac(namespace: &Namespace) -> [u8; 6] {
    let said = namespace.sh(&format!("ip -o link show dev {INTERFACE}"));
    let text = said.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next());
    let bytes = text.unwrap_or("").split(':').map(|hex| u8::from_str_radix(hex, 16).unwrap());
    bytes.collect::<Vec<_>>().try_into().expect("six bytes")
}

/// Offsets of the headers in a frame of [`udp_frame`].
pub mod at {
    /// The Ethernet type.
    pub const ETHERTYPE: usize = 12;
    /// The IPv4 header (RFC 791).
    pub const IP: usize = 14;
    /// The UDP header (RFC 768).
    pub const UDP: usize = 34;
    /// The payload.
    pub const PAYLOAD: usize = 42;
}

/// Returns an Ethernet frame with a UDP datagram, all checksums right: written independently of the
/// tested code, after RFC 768, 791 and 1071.
#[must_use]
pub fn udp_frame(
    macs: ([u8; 6], [u8; 6]),
    from: SocketAddrV4,
    to: SocketAddrV4,
    payload: &[u8],
) -> Vec<u8> {
    let mut frame = [&macs.1[..], &macs.0, &[0x08, 0x00, 0x45, 0]].concat();
    let udp_bytes = (8 + payload.len()) as u16;
    frame.extend((20 + udp_bytes).to_be_bytes());
    // Identification 0, do not fragment, 64 hops, UDP, checksum to come.
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(from.ip().octets());
    frame.extend(to.ip().octets());
    frame.extend([from.port(), to.port(), udp_bytes, 0].map(u16::to_be_bytes).concat());
    frame.extend(payload);
    seal_ip(&mut frame);
    seal_udp(&mut frame);
    frame
}

/// Returns a router's frame which reports that a frame of [`udp_frame`] was too long for the next
/// network, and that packets of `mtu` bytes would pass (RFC 792, RFC 1191). It goes to the sender
/// of that frame.
#[must_use]
pub fn too_long(macs: ([u8; 6], [u8; 6]), router: Ipv4Addr, about: &[u8], mtu: u16) -> Vec<u8> {
    let quote = &about[at::IP..at::PAYLOAD];
    let mut icmp = [&[3, 4, 0, 0, 0, 0], &mtu.to_be_bytes()[..], quote].concat();
    let sum = checksum(&[&icmp]);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [&macs.1[..], &macs.0, &[0x08, 0x00, 0x45, 0]].concat();
    frame.extend((20 + icmp.len() as u16).to_be_bytes());
    // The same header as in a datagram, but ICMP.
    frame.extend([0, 0, 0x40, 0, 64, 1, 0, 0]);
    frame.extend(router.octets());
    frame.extend(&about[at::IP + 12..at::IP + 16]);
    frame.extend(icmp);
    seal_ip(&mut frame);
    frame
}

/// Corrects the checksum of the IPv4 header.
pub fn seal_ip(frame: &mut [u8]) {
    frame[at::IP + 10..at::IP + 12].fill(0);
    let sum = checksum(&[&frame[at::IP..at::UDP]]);
    frame[at::IP + 10..at::IP + 12].copy_from_slice(&sum.to_be_bytes());
}

/// Corrects the checksum of the UDP datagram.
pub fn seal_udp(frame: &mut [u8]) {
    frame[at::UDP + 6..at::UDP + 8].fill(0);
    let udp = &frame[at::UDP..];
    let length = (udp.len() as u16).to_be_bytes();
    let sum = checksum(&[&frame[at::IP + 12..at::UDP], &[0, 17], &length, udp]);
    // Zero means no checksum, so zero is written as its other form.
    let sum = if sum == 0 { 0xffff } else { sum };
    frame[at::UDP + 6..at::UDP + 8].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the complement of the ones' complement sum (RFC 1071); all parts but the last have an
/// even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 =
        words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{PairOptions, VethPair};
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn the_kernel_takes_a_frame_written_by_hand() {
        let Some(pair) = VethPair::new(PairOptions::default()) else { return };
        let receiver = pair.right.run(|| UdpSocket::bind((pair.right.address, 7000)).unwrap());
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let macs = (mac(&pair.left), mac(&pair.right));
        let from = SocketAddrV4::new(pair.left.address, 9);
        let to = SocketAddrV4::new(pair.right.address, 7000);
        let injector = Injector::new(&pair.left);
        let mut broken = udp_frame(macs, from, to, b"broken");
        broken[at::PAYLOAD] ^= 1;
        injector.send(&broken).unwrap();
        injector.send(&udp_frame(macs, from, to, b"whole")).unwrap();
        let mut bytes = [0; 100];
        let (count, source) = receiver.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..count], source), (&b"whole"[..], from.into()));
    }
}
