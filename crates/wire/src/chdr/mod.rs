//! The CHDR packet: header, timestamp, metadata, payload.
//!
//! ```text
//! W = 64                              W > 64
//! ┌──────────────────────────┐        ┌──────────────┬──────────────┬─────────────┐
//! │ header (64 bit)          │        │ header       │ timestamp    │ zero lanes  │ 1 word
//! ├──────────────────────────┤        ├──────────────┴──────────────┴─────────────┤
//! │ timestamp (type 7 only)  │        │ metadata, NumMData words of W bits        │
//! ├──────────────────────────┤        ├───────────────────────────────────────────┤
//! │ metadata, payload        │        │ payload                                   │
//! └──────────────────────────┘        └───────────────────────────────────────────┘
//! ```

mod data;
mod header;
mod packet;
mod width;

pub use data::DataRepr;
pub use header::{Header, PacketType};
pub(crate) use header::{header_len, put_header, put_plain_header};
pub use packet::Packet;
pub use width::{Width, round_to_word};

/// The UDP port of CHDR on MPM devices, unless RPC announces another one.
pub const UDP_PORT: u16 = 49153;

/// Bytes of one `sc16` sample on the wire: 16-bit I, then 16-bit Q, little-endian signed.
pub const SC16_LEN: usize = 4;

/// The largest `Length` of a CHDR packet in bytes.
pub const MAX_LEN: usize = u16::MAX as usize;
