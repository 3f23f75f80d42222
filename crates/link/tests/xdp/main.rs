//! AF_XDP on veth pairs in namespaces of their own, with the kernel as the peer.
//!
//! What every frame link does is in the conformance suite; here is what only this one does.

mod bench;
mod coexist;
mod modes;
mod refuse;
mod starve;
mod trains;
mod transmit;
