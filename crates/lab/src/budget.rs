//! The link budget: the share of a link that a stream of samples takes, bare and on the wire.

use serde::Serialize;

/// Ethernet's overhead outside of a frame's payload, bytes (IEEE 802.3 clauses 3 and 4): preamble
/// and start delimiter 8, header 14, check sequence 4, gap between packets 12.
const ETHERNET_BYTES: u64 = 8 + 14 + 4 + 12;
/// IPv4 and UDP headers, bytes (RFC 791, RFC 768).
const IP_UDP_BYTES: u64 = 20 + 8;
/// CHDR header and time of a data packet at a width of 64 bits, bytes.
const CHDR_BYTES: u64 = 16;

/// The format of a complex sample on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WireFormat {
    /// 16 bits of I and 16 of Q.
    Sc16,
    /// 12 bits of I and 12 of Q.
    Sc12,
    /// 8 bits of I and 8 of Q.
    Sc8,
}

impl WireFormat {
    /// Bits of a complex sample.
    pub fn bits(self) -> u64 {
        match self {
            Self::Sc16 => 32,
            Self::Sc12 => 24,
            Self::Sc8 => 16,
        }
    }

    /// Bytes of this many samples, rounded up.
    pub fn bytes(self, samples: u64) -> u64 {
        (u128::from(samples) * u128::from(self.bits())).div_ceil(8) as u64
    }
}

/// An Ethernet link, or several of the same kind together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EthernetLink {
    /// Its speed, bits per second; the sum of all when there are several.
    pub bits_per_s: f64,
    /// Largest IP packet, bytes.
    pub mtu_bytes: u64,
}

/// The load of a stream on a link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LinkBudget {
    /// Samples of a full packet.
    pub samples_per_packet: u64,
    /// Packets per second, all channels.
    pub packets_per_s: f64,
    /// Payload, bits per second, all channels.
    pub payload_bits_per_s: f64,
    /// With every header and gap, bits per second, all channels.
    pub wire_bits_per_s: f64,
    /// Share of the link that the payload takes.
    pub payload_share: f64,
    /// Share of the link that is busy.
    pub wire_share: f64,
    /// The highest rate of a channel that fits the link, Hz.
    pub rate_max_hz: f64,
}

/// A link that cannot carry a packet with a sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an MTU of {mtu_bytes} bytes leaves no room for samples, because the IPv4, UDP and CHDR \
     headers take {} bytes: use a larger MTU",
    IP_UDP_BYTES + CHDR_BYTES
)]
pub struct MtuTooSmall {
    /// The MTU.
    pub mtu_bytes: u64,
}

impl LinkBudget {
    /// Computes the budget of `channels` streams of `rate_hz` each in `format` over `link`.
    ///
    /// # Errors
    /// [`MtuTooSmall`].
    pub fn new(
        rate_hz: f64,
        channels: u64,
        format: WireFormat,
        link: EthernetLink,
    ) -> Result<Self, MtuTooSmall> {
        let mtu_bytes = link.mtu_bytes;
        let room = mtu_bytes.saturating_sub(IP_UDP_BYTES + CHDR_BYTES);
        let samples_per_packet = room * 8 / format.bits();
        if samples_per_packet == 0 {
            return Err(MtuTooSmall { mtu_bytes });
        }
        let payload_bytes = format.bytes(samples_per_packet);
        let wire_bytes = payload_bytes + CHDR_BYTES + IP_UDP_BYTES + ETHERNET_BYTES;
        let samples_per_s = rate_hz * channels as f64;
        let packets_per_s = samples_per_s / samples_per_packet as f64;
        let payload_bits_per_s = samples_per_s * format.bits() as f64;
        let wire_bits_per_s = packets_per_s * wire_bytes as f64 * 8.0;
        Ok(Self {
            samples_per_packet,
            packets_per_s,
            payload_bits_per_s,
            wire_bits_per_s,
            payload_share: payload_bits_per_s / link.bits_per_s,
            wire_share: wire_bits_per_s / link.bits_per_s,
            rate_max_hz: rate_hz * link.bits_per_s / wire_bits_per_s,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(rate_hz: f64, channels: u64, link_bits_per_s: f64) -> f64 {
        let link = EthernetLink { bits_per_s: link_bits_per_s, mtu_bytes: 9000 };
        let budget = LinkBudget::new(rate_hz, channels, WireFormat::Sc16, link).unwrap();
        budget.payload_share * 100.0
    }

    #[test]
    fn the_talks_shares_of_two_ten_gigabit_links() {
        assert_eq!(percent(200e6, 2, 20e9), 64.0, "X310");
        assert_eq!(percent(125e6, 4, 20e9), 80.0, "N310");
        assert_eq!(percent(250e6, 2, 20e9), 80.0, "N320");
    }

    #[test]
    fn headers_and_gaps_are_counted_once_per_packet() {
        let link = EthernetLink { bits_per_s: 1e9, mtu_bytes: 1500 };
        let budget = LinkBudget::new(25e6, 1, WireFormat::Sc16, link).unwrap();
        // 1500 - 20 - 8 - 16 = 1456 bytes = 364 samples; 1456 + 44 + 38 = 1538 on the wire.
        assert_eq!(budget.samples_per_packet, 364);
        assert!((budget.wire_share - 0.8 * 1538.0 / 1456.0).abs() < 1e-12);
        assert!((budget.rate_max_hz - 1e9 / 1538.0 / 8.0 * 364.0).abs() < 1e-3);
    }

    #[test]
    fn shorter_samples_take_less() {
        let link = EthernetLink { bits_per_s: 10e9, mtu_bytes: 9000 };
        let share = |format| LinkBudget::new(100e6, 1, format, link).unwrap().payload_share;
        assert_eq!(share(WireFormat::Sc16), 0.32);
        assert_eq!(share(WireFormat::Sc12), 0.24);
        assert_eq!(share(WireFormat::Sc8), 0.16);
        assert_eq!(WireFormat::Sc12.bytes(3), 9);
        assert_eq!(WireFormat::Sc12.bytes(1), 3);
    }

    #[test]
    fn a_tiny_mtu_is_refused() {
        let link = EthernetLink { bits_per_s: 1e9, mtu_bytes: 47 };
        let error = LinkBudget::new(1e6, 1, WireFormat::Sc16, link).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an MTU of 47 bytes leaves no room for samples, because the IPv4, UDP and CHDR \
             headers take 44 bytes: use a larger MTU"
        );
    }
}
