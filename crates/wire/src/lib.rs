//! Packet formats of networked radios: CHDR, RFNoC management and control, MPM discovery, the end
//! of a MessagePack message of MPM's remote procedure calls, and the protocols below them:
//! Ethernet, ARP, IPv4, UDP and ICMP. Beside them stand the protocol of `rtl_tcp`, and those of the
//! brokers to which results are published (NATS, MQTT), and packets of samples by VITA 49.2.
//!
//! All network packets of a radio or a host are parsed and emitted here: no other crate interprets
//! bytes from the network. This crate does no I/O, has no state, never allocates, and contains no
//! `unsafe`.
//!
//! # Pattern
//!
//! Each format has a *view* or a *`Repr`*, or both:
//!
//! * a view ([`chdr::Packet`], [`mpm::DiscoveryReply`]) borrows bytes that passed
//!   a check;
//! * a `Repr` is a small plain struct with `parse` (from a view) and `emit` (into a caller's
//!   buffer).
//!
//! A datagram goes through [`chdr::Packet::parse`] once; the packet type then selects the parser of
//! its payload: [`chdr::DataRepr`], [`stream::StatusRepr`], [`stream::CommandRepr`],
//! [`ctrl::CtrlRepr`] or [`mgmt::MgmtRepr`].
//!
//! # Contract
//!
//! * A parser accepts any bytes as input. Bytes that do not fit the format give an
//!   [`Error`] whose variant names the cause; a parser never panics.
//! * After a successful check no accessor of a view panics, and every iterator ends.
//! * Parsers accept harmless deviations: datagrams longer than `Length`, payload bytes behind the
//!   last field, reserved bits that are set. They reject codes that the format does not define
//!   (except those that the receiver has to answer) and contradictory sizes.
//! * `emit` writes all of the bytes it counts, reserved ones as zero, so the buffer need not be
//!   cleared first. It returns an [`Error`] for a buffer that is too small or a value that does
//!   not fit its field, and then the buffer's content is unspecified.
//! * From the output of `emit`, `parse` reads an equal `Repr`.
//!
//! All words are little-endian, as on the CHDR link of every current networked device, except those
//! of the Internet headers. Bit positions are given as `[hi:lo]` inside a 64-bit word. The radio's
//! formats are those that UHD 4.3 and networked devices with MPM exchange, the others those of the
//! RFCs that their modules name.
//!
//! # Example
//!
//! ```
//! use millstream_wire::{Epid, Width, chdr};
//!
//! let repr = chdr::DataRepr {
//!     dst_epid: Epid(2),
//!     seq: 7,
//!     timestamp: Some(1_000),
//!     payload_len: 8,
//!     ..Default::default()
//! };
//! let mut frame = [0; 64];
//! let header_len = repr.emit(Width::W64, &mut frame)?;
//! frame[header_len..header_len + 8].copy_from_slice(&[1, 0, 2, 0, 3, 0, 4, 0]);
//!
//! let packet = chdr::Packet::parse(&frame, Width::W64)?;
//! assert_eq!(packet.timestamp(), Some(1_000));
//! assert_eq!(packet.payload(), [1, 0, 2, 0, 3, 0, 4, 0]);
//! # Ok::<(), millstream_wire::Error>(())
//! ```

#![forbid(unsafe_code)]
// Without std and alloc, so that nothing here can allocate.
#![cfg_attr(not(test), no_std)]

pub mod arp;
mod bits;
pub mod chdr;
pub mod checksum;
pub mod ctrl;
mod epid;
mod error;
pub mod ethernet;
pub mod icmp;
pub mod ipv4;
pub mod mgmt;
pub mod mpm;
pub mod mqtt;
pub mod msgpack;
pub mod nats;
pub mod protobuf;
pub mod regs;
pub mod rtl_tcp;
pub mod stream;
pub mod udp;
pub mod vita49;

pub use chdr::Width;
pub use epid::Epid;
pub use error::{Error, Result};
