//! Writes a management packet hop by hop.

use super::{MAX_HOP_OPS, Op, PROTOCOL_VERSION};
use crate::bits::{WordWriter, field, fit};
use crate::chdr::{Header, MAX_LEN, PacketType, Width};
use crate::{Epid, Error, Result};

/// Emits hops into a caller's buffer; [`Writer::finish`] then writes the headers.
///
/// ```
/// use millstream_wire::mgmt::{Op, Writer};
/// use millstream_wire::{Epid, Width};
///
/// let mut buf = [0; 64];
/// let mut writer = Writer::new(Width::W64, &mut buf);
/// writer.hop(&[Op::InfoReq, Op::Return])?;
/// writer.hop(&[Op::Nop])?;
/// let len = writer.finish(Epid::NONE, 0, Epid(1))?;
/// assert_eq!(len, 40);
/// # Ok::<(), millstream_wire::Error>(())
/// ```
pub struct Writer<'a> {
    buf: &'a mut [u8],
    width: Width,
    /// The place of the next item, in whole W-bit words from the start.
    at: usize,
    hops: usize,
}

impl<'a> Writer<'a> {
    /// Returns a writer of a packet without hops.
    #[must_use]
    pub fn new(width: Width, buf: &'a mut [u8]) -> Writer<'a> {
        Writer { buf, width, at: 2 * width.bytes(), hops: 0 }
    }

    /// Appends one hop of 1 to 256 operations.
    ///
    /// # Errors
    /// [`Error::TooManyOps`], [`Error::NoHop`] for an empty hop, [`Error::BufferTooSmall`],
    /// [`Error::FieldOverflow`]. The writer must not be used after an error.
    pub fn hop(&mut self, ops: &[Op]) -> Result<()> {
        if ops.is_empty() {
            return Err(Error::NoHop);
        }
        if ops.len() > MAX_HOP_OPS {
            return Err(Error::TooManyOps);
        }
        for (index, op) in ops.iter().enumerate() {
            let item = op.to_item((ops.len() - 1 - index) as u8)?;
            self.put_item(item)?;
        }
        self.hops += 1;
        Ok(())
    }

    /// Writes an item, and the padding of the one before it: the last item stays unpadded.
    fn put_item(&mut self, item: u64) -> Result<()> {
        let pad_from = self.at + 8 - self.width.bytes();
        let end = self.at + 8;
        let dst = self.buf.get_mut(pad_from..end).ok_or(Error::BufferTooSmall)?;
        let (pad, word) = dst.split_at_mut(self.at - pad_from);
        pad.fill(0);
        word.copy_from_slice(&item.to_le_bytes());
        self.at += self.width.bytes();
        Ok(())
    }

    /// Writes the headers of a version 1.0 packet and returns the packet's length in bytes.
    ///
    /// # Errors
    /// As [`Writer::finish_version`].
    pub fn finish(self, dst_epid: Epid, seq: u16, src_epid: Epid) -> Result<usize> {
        self.finish_version(dst_epid, seq, src_epid, PROTOCOL_VERSION)
    }

    /// Writes the headers and returns the packet's length in bytes.
    ///
    /// # Errors
    /// [`Error::TooManyOps`] above 1023 hops, [`Error::PacketTooLong`],
    /// [`Error::BufferTooSmall`].
    pub fn finish_version(
        self,
        dst_epid: Epid,
        seq: u16,
        src_epid: Epid,
        version: u16,
    ) -> Result<usize> {
        // The last item ends after its first 64 bits.
        let len = self.at - self.width.bytes() + 8;
        if len > MAX_LEN {
            return Err(Error::PacketTooLong);
        }
        let kind = PacketType::Management;
        let header = Header { kind, seq, length: len as u16, dst_epid, ..Header::default() };
        let start = header.emit(0, self.width, self.buf)?;
        let hops = fit(self.hops as u64, 16, 10).map_err(|_| Error::TooManyOps)?;
        let word = u64::from(src_epid.0)
            | hops
            | u64::from(self.width.code()) << 45
            | u64::from(version) << 48;
        let rest = self.buf.get_mut(start..).ok_or(Error::BufferTooSmall)?;
        WordWriter::new(rest).put(word)?;
        debug_assert_eq!(field(word, 16, 10), self.hops as u64);
        Ok(len)
    }
}
