//! Datagrams within a private network namespace.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use crate::packets::testbed::enter_new_network;
use millstream_host::netlink::{Netlink, NetlinkError};

/// Datagrams between two checks of the progress.
const BATCH: u64 = 256;

/// Moves this process to a network of its own, with its loopback up. The process must not have
/// threads yet.
pub fn enter_network() -> Result<(), String> {
    enter_new_network("new")?;
    bring_up_loopback().map_err(|error| format!("cannot bring the loopback up: {error}"))
}

fn bring_up_loopback() -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    let index = netlink.interface("lo")?.index;
    netlink.set_up(index, true)
}

/// Sends to a socket without a reader: every datagram passes the stack and is dropped at the
/// socket, once that is full.
pub fn run(bytes: usize, ready: impl Fn(), did: impl Fn(u64) -> bool) -> Result<(), String> {
    let fail = |error: io::Error| format!("cannot send datagrams: {error}");
    let sink = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
    let source = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
    source.connect(sink.local_addr().map_err(fail)?).map_err(fail)?;
    let datagram = vec![0x5A; bytes.clamp(1, 65_000)];
    ready();
    while did(BATCH) {
        for _ in 0..BATCH {
            source.send(&datagram).map_err(fail)?;
        }
    }
    Ok(())
}
