//! The checked view over a management packet.

use super::Op;
use crate::bits::{field, get_u64};
use crate::chdr::{self, PacketType};
use crate::{Epid, Error, Result};

/// A management packet with known operations and consistent hops.
///
/// Bytes behind the last hop are ignored.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    dst_epid: Epid,
    seq: u16,
    head: u64,
    items: &'a [u8],
    item_len: usize,
}

impl<'a> Packet<'a> {
    /// Checks a packet of type management.
    ///
    /// # Errors
    /// [`Error::WrongPacketType`], [`Error::PayloadTooShort`], [`Error::WidthMismatch`],
    /// [`Error::UnknownOp`], [`Error::BadOpCount`].
    pub fn parse(packet: &chdr::Packet<'a>) -> Result<Packet<'a>> {
        let payload = packet.payload_of(PacketType::Management)?;
        let head = get_u64(payload, 0, Error::PayloadTooShort)?;
        if field(head, 45, 3) != u64::from(packet.width().code()) {
            return Err(Error::WidthMismatch);
        }
        let item_len = packet.width().bytes();
        let view = Packet {
            dst_epid: packet.header().dst_epid,
            seq: packet.header().seq,
            head,
            items: payload.get(item_len..).unwrap_or(&[]),
            item_len,
        };
        let mut items = view.items;
        for _ in 0..view.num_hops() {
            check_hop(&mut items, item_len)?;
        }
        Ok(view)
    }

    /// Destination endpoint of the CHDR header; 0 in requests.
    #[must_use]
    pub fn dst_epid(&self) -> Epid {
        self.dst_epid
    }

    /// CHDR sequence number; the reply repeats it.
    #[must_use]
    pub fn seq(&self) -> u16 {
        self.seq
    }

    /// Returns the endpoint of the requesting host.
    #[must_use]
    pub fn src_epid(&self) -> Epid {
        Epid(field(self.head, 0, 16) as u16)
    }

    /// Protocol version, major in the upper byte; see [`super::PROTOCOL_VERSION`].
    #[must_use]
    pub fn version(&self) -> u16 {
        field(self.head, 48, 16) as u16
    }

    /// Returns the number of hops, 10 bits.
    #[must_use]
    pub fn num_hops(&self) -> usize {
        field(self.head, 16, 10) as usize
    }

    /// Returns the hops, first to last.
    #[must_use]
    pub fn hops(&self) -> Hops<'a> {
        Hops { items: self.items, item_len: self.item_len, left: self.num_hops() }
    }
}

/// Removes the first item of `items`: its operation, and the number of further ones in its hop.
fn next_item(items: &mut &[u8], item_len: usize) -> Result<(Op, u8)> {
    let item = get_u64(items, 0, Error::PayloadTooShort)?;
    *items = items.get(item_len..).unwrap_or(&[]);
    Op::from_item(item)
}

/// Checks the first hop of `items` and removes it.
fn check_hop(items: &mut &[u8], item_len: usize) -> Result<()> {
    let (_, mut to_come) = next_item(items, item_len)?;
    while to_come > 0 {
        let (_, count) = next_item(items, item_len)?;
        if count != to_come - 1 {
            return Err(Error::BadOpCount);
        }
        to_come = count;
    }
    Ok(())
}

/// Iterator over the hops of a [`Packet`].
#[derive(Debug, Clone)]
pub struct Hops<'a> {
    items: &'a [u8],
    item_len: usize,
    left: usize,
}

impl<'a> Iterator for Hops<'a> {
    type Item = Hop<'a>;

    fn next(&mut self) -> Option<Hop<'a>> {
        self.left = self.left.checked_sub(1)?;
        let hop = Hop { items: self.items, item_len: self.item_len, done: false };
        check_hop(&mut self.items, self.item_len).ok()?;
        Some(hop)
    }
}

/// One hop: an iterator over its operations.
#[derive(Debug, Clone)]
pub struct Hop<'a> {
    items: &'a [u8],
    item_len: usize,
    done: bool,
}

impl Iterator for Hop<'_> {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        if self.done {
            return None;
        }
        let (op, to_come) = next_item(&mut self.items, self.item_len).ok()?;
        self.done = to_come == 0;
        Some(op)
    }
}

impl core::fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "management {} to {} seq {}", self.src_epid(), self.dst_epid, self.seq)?;
        for hop in self.hops() {
            f.write_str(" {")?;
            for (i, op) in hop.enumerate() {
                write!(f, "{}{op:?}", if i > 0 { ", " } else { "" })?;
            }
            f.write_str("}")?;
        }
        Ok(())
    }
}
