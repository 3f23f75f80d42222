//! The frames of a measurement: written once, distinguished by a number.

use std::net::SocketAddrV4;

use millstream_wire::checksum::Sum;

use super::{EndAddress, HEADER_BYTES, LOAD, number};

/// The Ethernet type of measurements: local experimental 1 (IEEE 802).
pub const ETHERTYPE: u16 = 0x88b5;

const IPV4: [u8; 2] = [0x08, 0x00];

/// A frame that is sent repeatedly. Its payload begins with a number (little-endian).
#[derive(Debug, Clone)]
pub struct PacketTemplate {
    head: Vec<u8>,
    frame_bytes: usize,
    payload_at: usize,
    local: SocketAddrV4,
}

impl PacketTemplate {
    /// Frames of a private Ethernet type: the kernel drops those that reach it.
    #[must_use]
    pub fn private(frame_bytes: usize, local: SocketAddrV4) -> Self {
        let mut head = vec![0; 14 + 8];
        head[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        Self::with_head(head, 14, frame_bytes, SocketAddrV4::new(*local.ip(), 0))
    }

    /// UDP datagrams without checksum (RFC 768 allows that), whole frames with their headers.
    #[must_use]
    pub fn ip(frame_bytes: usize, local: SocketAddrV4) -> Self {
        let frame_bytes = frame_bytes.max(HEADER_BYTES + 8);
        let mut head = vec![0; HEADER_BYTES + 8];
        head[12..14].copy_from_slice(&IPV4);
        let udp_bytes = (frame_bytes - 34) as u16;
        head[14..16].copy_from_slice(&[0x45, 0]);
        head[16..18].copy_from_slice(&(udp_bytes + 20).to_be_bytes());
        // Don't fragment; time to live 64; UDP (RFC 791).
        head[20..24].copy_from_slice(&[0x40, 0, 64, 17]);
        head[26..30].copy_from_slice(&local.ip().octets());
        head[34..36].copy_from_slice(&local.port().to_be_bytes());
        head[38..40].copy_from_slice(&udp_bytes.to_be_bytes());
        Self::with_head(head, HEADER_BYTES, frame_bytes, local)
    }

    fn with_head(
        mut head: Vec<u8>,
        payload_at: usize,
        frame_bytes: usize,
        local: SocketAddrV4,
    ) -> Self {
        head[payload_at..payload_at + 8].copy_from_slice(&LOAD.to_le_bytes());
        Self { frame_bytes: frame_bytes.max(head.len()), head, payload_at, local }
    }

    /// Bytes of every frame.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// The IP address and UDP port for answers.
    #[must_use]
    pub fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// Whether the frames carry IP.
    #[must_use]
    pub fn is_ip(&self) -> bool {
        self.payload_at == HEADER_BYTES
    }

    /// Sets the addresses of the frames.
    pub fn aim(&mut self, from: [u8; 6], to: &EndAddress) {
        self.head[..6].copy_from_slice(&to.mac);
        self.head[6..12].copy_from_slice(&from);
        if self.is_ip() {
            self.head[30..34].copy_from_slice(&to.udp.ip().octets());
            self.head[36..38].copy_from_slice(&to.udp.port().to_be_bytes());
            self.head[24..26].fill(0);
            let sum = Sum::new().bytes(&self.head[14..34]).checksum();
            self.head[24..26].copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// Sets the number of the next frame; `None`: load.
    pub fn set_number(&mut self, number: Option<u64>) {
        let at = self.payload_at;
        self.head[at..at + 8].copy_from_slice(&number.unwrap_or(LOAD).to_le_bytes());
    }

    /// Writes the head of a frame. The rest is never read and stays as it was.
    pub fn write(&self, frame: &mut [u8]) {
        frame[..self.head.len()].copy_from_slice(&self.head);
    }

    /// The number of a received frame.
    #[must_use]
    pub fn number_of(&self, frame: &[u8]) -> Option<u64> {
        number(frame.get(self.payload_at..)?)
    }
}

/// Reverses a frame's direction. Checksums stay valid when two words change places.
pub(super) fn reverse(frame: &mut [u8]) {
    let Some(ethernet) = frame.get_mut(..14) else { return };
    let (to, from) = ethernet[..12].split_at_mut(6);
    to.swap_with_slice(from);
    if ethernet[12..] == IPV4
        && let Some(rest) = frame.get_mut(26..38)
    {
        let (source, destination) = rest[..8].split_at_mut(4);
        source.swap_with_slice(destination);
        let (source, destination) = rest[8..].split_at_mut(2);
        source.swap_with_slice(destination);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> EndAddress {
        EndAddress { mac: [2, 0, 0, 0, 0, 9], udp: "10.0.0.2:47001".parse().unwrap() }
    }

    #[test]
    fn an_ip_frame_has_right_lengths_and_sums() {
        let mut template = PacketTemplate::ip(64, "10.0.0.1:47000".parse().unwrap());
        template.aim([2, 0, 0, 0, 0, 1], &peer());
        template.set_number(Some(7));
        let mut frame = [0; 64];
        template.write(&mut frame);
        assert_eq!(&frame[..14], &[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(u16::from_be_bytes([frame[16], frame[17]]), 50);
        assert_eq!(u16::from_be_bytes([frame[38], frame[39]]), 30);
        assert_eq!(
            Sum::new().bytes(&frame[14..34]).checksum(),
            0,
            "with its sum a header adds up to nothing"
        );
        assert_eq!(template.number_of(&frame), Some(7));
        let there = frame;
        reverse(&mut frame);
        assert_eq!(&frame[..12], &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9]);
        assert_eq!(&frame[26..38], &[10, 0, 0, 2, 10, 0, 0, 1, 0xb7, 0x99, 0xb7, 0x98]);
        assert_eq!(Sum::new().bytes(&frame[14..34]).checksum(), 0);
        reverse(&mut frame);
        assert_eq!(frame, there);
    }

    #[test]
    fn load_has_no_number_and_short_frames_no_effect() {
        let mut template = PacketTemplate::private(64, "10.0.0.1:1".parse().unwrap());
        template.aim([1; 6], &peer());
        let mut frame = [0; 64];
        template.write(&mut frame);
        assert_eq!(template.number_of(&frame), None);
        assert_eq!(&frame[12..14], &[0x88, 0xb5]);
        assert_eq!(template.number_of(&frame[..20]), None);
        reverse(&mut frame[..9]);
        assert_eq!(&frame[..6], &peer().mac, "too short to have two addresses");
    }
}
