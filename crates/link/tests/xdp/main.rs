//! AF_XDP on veth pairs in separate namespaces, with the kernel as the peer.
//!
//! The rules of every frame link are in the conformance suite; these tests are for this link only.

mod bench;
mod coexist;
mod modes;
mod refuse;
mod starve;
mod trains;
mod transmit;
