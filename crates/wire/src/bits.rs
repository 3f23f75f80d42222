//! Words and bit fields: little-endian in CHDR, big-endian in the Internet's headers.

use core::net::Ipv4Addr;

use crate::ethernet::Mac;
use crate::{Error, Result};

/// Reads the 64-bit word at byte `at`; returns the error `short` if the bytes end before it does.
#[inline]
pub(crate) fn get_u64(bytes: &[u8], at: usize, short: Error) -> Result<u64> {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(word) => Ok(u64::from_le_bytes(*word)),
        None => Err(short),
    }
}

/// Reads the big-endian 16-bit word at byte `at` of a header whose length was checked.
#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Reads the address at byte `at` of a header whose length was checked.
#[inline]
pub(crate) fn ipv4(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

/// Reads the Ethernet address at byte `at` of a header whose length was checked.
#[inline]
pub(crate) fn mac(bytes: &[u8], at: usize) -> Mac {
    Mac([0, 1, 2, 3, 4, 5].map(|index| bytes[at + index]))
}

/// Returns bits `[lo + count - 1 : lo]` of `word`.
#[inline]
pub(crate) const fn field(word: u64, lo: u32, count: u32) -> u64 {
    (word >> lo) & mask(count)
}

/// Returns a mask of the lowest `count` bits, `count` in 1..=63.
#[inline]
pub(crate) const fn mask(count: u32) -> u64 {
    (1 << count) - 1
}

/// Returns `value` moved to bit `lo`, or `FieldOverflow` if it needs more than `count` bits.
#[inline]
pub(crate) const fn fit(value: u64, lo: u32, count: u32) -> Result<u64> {
    if value > mask(count) { Err(Error::FieldOverflow) } else { Ok(value << lo) }
}

/// Declares a 32-bit register: each field with its lowest bit and the number of its bits.
macro_rules! register {
    (@value bool, $bits:expr) => { $bits != 0 };
    (@value $type:ident, $bits:expr) => { $bits as $type };
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$about:meta])* $field:ident: $type:ident = $lo:literal, $count:literal; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name {
            $( $(#[$about])* pub $field: $type, )*
        }

        impl $name {
            /// Decodes the word.
            #[must_use]
            pub const fn from_word(word: u32) -> $name {
                $( let $field = $crate::bits::field(word as u64, $lo, $count); )*
                $name { $( $field: $crate::bits::register!(@value $type, $field), )* }
            }

            /// Encodes the word.
            ///
            /// # Errors
            /// [`Error::FieldOverflow`](crate::Error::FieldOverflow).
            pub fn to_word(self) -> $crate::Result<u32> {
                let word = 0 $( | $crate::bits::fit(self.$field.into(), $lo, $count)? )*;
                Ok(word as u32)
            }
        }
    };
}
pub(crate) use register;

/// Writes consecutive 64-bit words into a caller's buffer, padded on request.
pub(crate) struct WordWriter<'a> {
    buf: &'a mut [u8],
    at: usize,
}

impl<'a> WordWriter<'a> {
    pub(crate) fn new(buf: &'a mut [u8]) -> Self {
        WordWriter { buf, at: 0 }
    }

    #[inline]
    pub(crate) fn put(&mut self, word: u64) -> Result<()> {
        let end = self.at + 8;
        let Some(dst) = self.buf.get_mut(self.at..end) else { return Err(Error::BufferTooSmall) };
        dst.copy_from_slice(&word.to_le_bytes());
        self.at = end;
        Ok(())
    }

    /// Writes `word` in the first lane of an item of `item_len` bytes and zeroes the others.
    #[inline]
    pub(crate) fn put_padded(&mut self, word: u64, item_len: usize) -> Result<()> {
        self.put(word)?;
        let end = self.at - 8 + item_len;
        let Some(pad) = self.buf.get_mut(self.at..end) else { return Err(Error::BufferTooSmall) };
        pad.fill(0);
        self.at = end;
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.at
    }
}
