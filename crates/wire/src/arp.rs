//! ARP for IPv4 on Ethernet (RFC 826; probes and announcements: RFC 5227).

use core::net::Ipv4Addr;

use crate::bits::{be16, ipv4, mac};
use crate::ethernet::Mac;
use crate::{Error, Result};

/// The operation of an ARP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Op {
    /// 1: asks for the station with the target address.
    #[default]
    Request,
    /// 2: the sender has the address.
    Reply,
}

/// Bytes of an ARP packet.
pub const LEN: usize = 28;

/// Hardware type 1 (Ethernet), protocol IPv4, address lengths 6 and 4.
const FIXED: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];

/// An ARP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpRepr {
    /// The operation.
    pub op: Op,
    /// Ethernet address of the sender.
    pub sender_mac: Mac,
    /// IPv4 address of the sender; 0.0.0.0 in a probe.
    pub sender: Ipv4Addr,
    /// Ethernet address of the target; not known in a request.
    pub target_mac: Mac,
    /// IPv4 address of the target.
    pub target: Ipv4Addr,
}

impl ArpRepr {
    /// Reads an ARP packet; bytes behind it are padding.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::NotIpv4OverEthernet`], [`Error::UnknownOp`].
    pub fn parse(bytes: &[u8]) -> Result<ArpRepr> {
        if bytes.len() < LEN {
            return Err(Error::Truncated);
        }
        if bytes[..6] != FIXED {
            return Err(Error::NotIpv4OverEthernet);
        }
        let op = match be16(bytes, 6) {
            1 => Op::Request,
            2 => Op::Reply,
            _ => return Err(Error::UnknownOp),
        };
        Ok(ArpRepr {
            op,
            sender_mac: mac(bytes, 8),
            sender: ipv4(bytes, 14),
            target_mac: mac(bytes, 18),
            target: ipv4(bytes, 24),
        })
    }

    /// Writes the packet and returns [`LEN`].
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        let buf = buf.get_mut(..LEN).ok_or(Error::BufferTooSmall)?;
        buf[..6].copy_from_slice(&FIXED);
        let op: u16 = if self.op == Op::Request { 1 } else { 2 };
        buf[6..8].copy_from_slice(&op.to_be_bytes());
        buf[8..14].copy_from_slice(&self.sender_mac.0);
        buf[14..18].copy_from_slice(&self.sender.octets());
        buf[18..24].copy_from_slice(&self.target_mac.0);
        buf[24..28].copy_from_slice(&self.target.octets());
        Ok(LEN)
    }

    /// Returns whether it asks for the target address without claiming it (RFC 5227, 1.1).
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.op == Op::Request && self.sender.is_unspecified()
    }

    /// Returns whether it announces the sender's address without a question (RFC 5227, 3; both
    /// opcodes are used).
    #[must_use]
    pub fn is_announcement(&self) -> bool {
        self.sender == self.target && !self.sender.is_unspecified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ArpRepr {
        ArpRepr {
            op: Op::Request,
            sender_mac: Mac([2, 0, 0, 0, 0, 1]),
            sender: Ipv4Addr::new(10, 0, 0, 1),
            target_mac: Mac::default(),
            target: Ipv4Addr::new(10, 0, 0, 2),
        }
    }

    #[test]
    fn what_is_not_ipv4_on_ethernet_is_refused() {
        let mut bytes = [0; LEN];
        request().emit(&mut bytes).unwrap();
        assert_eq!(ArpRepr::parse(&bytes), Ok(request()));
        for at in 0..6 {
            let mut other = bytes;
            other[at] ^= 0x10;
            assert_eq!(ArpRepr::parse(&other), Err(Error::NotIpv4OverEthernet));
        }
        bytes[7] = 3;
        assert_eq!(ArpRepr::parse(&bytes), Err(Error::UnknownOp));
        assert_eq!(ArpRepr::parse(&bytes[..27]), Err(Error::Truncated));
    }

    #[test]
    fn a_probe_claims_nothing_and_an_announcement_asks_nothing() {
        let probe = ArpRepr { sender: Ipv4Addr::UNSPECIFIED, ..request() };
        let announcement = ArpRepr { sender: request().target, ..request() };
        assert!(probe.is_probe() && !probe.is_announcement());
        assert!(announcement.is_announcement() && !announcement.is_probe());
        assert!(!request().is_probe() && !request().is_announcement());
    }
}
