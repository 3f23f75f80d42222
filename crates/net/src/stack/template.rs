//! The headers of a stream of datagrams, computed once.

use std::net::SocketAddrV4;

use millstream_wire::checksum::Sum;
use millstream_wire::ethernet::{EthernetRepr, HEADER_LEN, Mac, TAG_LEN, ether_type};
use millstream_wire::ipv4::{self, Ipv4Repr, protocol};
use millstream_wire::udp;

use super::config::StackConfig;

/// The most routers that a packet of ours may pass (RFC 1700).
pub(super) const HOP_LIMIT: u8 = 64;

const LEN_MAX: usize = HEADER_LEN + TAG_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN;

/// Ethernet, IPv4 and UDP headers from one port to another, without lengths, identification and
/// checksums. They stay valid as long as [`super::Stack::generation`] stays the same.
#[derive(Debug, Clone, Copy)]
pub struct HeaderTemplate {
    bytes: [u8; LEN_MAX],
    len: usize,
    payload_len_max: usize,
    /// The sum of the IPv4 header without total length and identification.
    ip: Sum,
    /// The sum of pseudo-header and, unless the link computes the checksum, UDP header; without
    /// lengths.
    udp: Option<Sum>,
    offload: bool,
}

impl HeaderTemplate {
    pub(super) fn new(
        config: &StackConfig,
        mac: Mac,
        from: SocketAddrV4,
        to: SocketAddrV4,
    ) -> HeaderTemplate {
        let mut bytes = [0; LEN_MAX];
        let ethernet = EthernetRepr {
            destination: mac,
            source: config.mac,
            tag: config.vlan,
            ether_type: ether_type::IPV4,
        };
        let packet = Ipv4Repr {
            source: *from.ip(),
            destination: *to.ip(),
            protocol: protocol::UDP,
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            id: 0,
            payload_len: 0,
        };
        // Both fit: the buffer is as long as the longest.
        let ip_at = ethernet.emit(&mut bytes).unwrap_or(HEADER_LEN);
        let _ = packet.emit(&mut bytes[ip_at..]);
        let udp_at = ip_at + ipv4::HEADER_LEN;
        bytes[udp_at..udp_at + 2].copy_from_slice(&from.port().to_be_bytes());
        bytes[udp_at + 2..udp_at + 4].copy_from_slice(&to.port().to_be_bytes());
        bytes[ip_at + 2..ip_at + 4].fill(0);
        bytes[ip_at + 10..ip_at + 12].fill(0);
        let pseudo = Sum::new().udp_pseudo_header(*from.ip(), *to.ip(), 0);
        let len = udp_at + udp::HEADER_LEN;
        HeaderTemplate {
            len,
            payload_len_max: config.mtu - ipv4::HEADER_LEN - udp::HEADER_LEN,
            ip: Sum::new().bytes(&bytes[ip_at..udp_at]),
            udp: config.udp_checksum.then(|| match config.checksum_offload {
                true => pseudo,
                false => pseudo.word(from.port()).word(to.port()),
            }),
            offload: config.checksum_offload,
            bytes,
        }
    }

    /// Makes routers fragment packets that are too long for a link behind them, instead of dropping
    /// them.
    pub(super) fn let_be_cut(&mut self) {
        let ip = &mut self.bytes[self.len - LEN_OF_BOTH..self.len - udp::HEADER_LEN];
        ip[6..8].fill(0);
        self.ip = Sum::new().bytes(ip);
    }

    /// Returns the bytes of the headers.
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.len
    }

    /// Returns the longest payload that fits the MTU, bytes.
    #[must_use]
    pub fn payload_len_max(&self) -> usize {
        self.payload_len_max
    }

    /// Writes the headers to the start of `frame`, whose payload already lies behind them and
    /// continues in `rest`.
    ///
    /// # Panics
    /// If `frame` is shorter than the headers, or the payload longer than
    /// [`HeaderTemplate::payload_len_max`].
    #[inline]
    pub fn write(&self, id: u16, frame: &mut [u8], rest: &[&[u8]]) {
        let (header, payload) = frame.split_at_mut(self.len);
        let more: usize = rest.iter().map(|part| part.len()).sum();
        let payload_len = payload.len() + more;
        assert!(payload_len <= self.payload_len_max, "{payload_len} bytes do not fit the MTU");
        header.copy_from_slice(&self.bytes[..self.len]);
        let datagram_len = (udp::HEADER_LEN + payload_len) as u16;
        let total_len = datagram_len + ipv4::HEADER_LEN as u16;
        let checksum = self.ip.word(total_len).word(id).checksum();
        let (ip, udp) = header[self.len - LEN_OF_BOTH..].split_at_mut(ipv4::HEADER_LEN);
        ip[2..4].copy_from_slice(&total_len.to_be_bytes());
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        udp[4..6].copy_from_slice(&datagram_len.to_be_bytes());
        if let Some(sum) = self.udp.filter(|_| self.offload) {
            udp[6..8].copy_from_slice(&sum.word(datagram_len).folded().to_be_bytes());
        } else if let Some(sum) = self.udp {
            // The length is in the pseudo-header and in the header.
            let sum = sum.word(datagram_len).word(datagram_len).bytes(payload);
            let sum = rest.iter().fold(sum, |sum, part| sum.bytes(part));
            udp[6..8].copy_from_slice(&sum.udp_checksum().to_be_bytes());
        }
    }
}

const LEN_OF_BOTH: usize = ipv4::HEADER_LEN + udp::HEADER_LEN;
