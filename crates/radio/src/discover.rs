//! Finding devices: MPM discovery.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use millstream_link::interfaces;
use millstream_link::port::{Port, PortOptions};
use millstream_link::{LinkError, open};
use millstream_wire::mpm;

use crate::RadioError;
use crate::deadline::deadline;
use crate::error::io_error;
use crate::rpc::Map;

/// The time limit for replies, that of UHD.
pub const DISCOVERY_TIMEOUT: Duration = Duration::from_millis(500);

/// How long one port is listened to, while the others wait.
const TURN: Duration = Duration::from_millis(10);

/// The most replies in one search, as a bound against a flood.
const REPLIES_MAX: usize = 1024;

/// The destinations of a search on this machine: a device bound to every address, and, by
/// broadcast, those at any of 127/8 (Linux broadcasts on loopback although the interface has no
/// such address).
const LOOPBACK: [Ipv4Addr; 2] = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 255, 255, 255)];

/// The destination of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryTarget {
    /// One address. The search ends with the first reply.
    Address(Ipv4Addr),
    /// This machine only: no packet leaves it.
    Local,
    /// This machine, and every network that it is connected to.
    Broadcast,
}

/// A device that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The source address of the answer.
    pub address: Ipv4Addr,
    /// The fields of the answer: `type`, `product`, `serial`, `name`, `claimed` and more.
    pub fields: Map,
}

impl DeviceInfo {
    /// Returns a field of the answer; empty when missing.
    pub fn field(&self, key: &str) -> &str {
        self.fields.get(key).map_or("", String::as_str)
    }

    /// Returns whether another program holds the device.
    pub fn is_claimed(&self) -> bool {
        self.field("claimed").eq_ignore_ascii_case("true")
    }
}

/// Asks for devices over kernel UDP, and collects the answers until `timeout`: one for each
/// address. The same serial number at several addresses is one device on several networks, or
/// several emulated radios with one number.
///
/// An empty list is not an error. Replies that cannot be decoded are ignored.
///
/// # Errors
/// [`RadioError::Interfaces`] and [`RadioError::Link`]; [`RadioError::Io`] when sending to a single
/// given address fails.
pub fn discover(
    target: DiscoveryTarget,
    discovery_port: u16,
    timeout: Duration,
) -> Result<Vec<DeviceInfo>, RadioError> {
    let mut asked = Vec::new();
    for (from, to) in addresses(target)? {
        match ask(from, SocketAddrV4::new(to, discovery_port)) {
            Ok(port) => asked.push(port),
            Err(error) if matches!(target, DiscoveryTarget::Address(_)) => return Err(error),
            // A network that cannot be reached must not hide the others.
            Err(_) => {}
        }
    }
    let until = deadline(timeout);
    let mut found = Vec::new();
    while Instant::now() < until && found.len() < REPLIES_MAX {
        for port in &mut asked {
            // The ports wait in turns, and all together no longer than the time.
            let left = until.saturating_duration_since(Instant::now());
            collect(port, left.min(TURN), &mut found)?;
        }
        if asked.is_empty() || (matches!(target, DiscoveryTarget::Address(_)) && !found.is_empty())
        {
            break;
        }
    }
    Ok(found)
}

/// Asks at one destination; returns the port at which the answers come.
fn ask(from: Ipv4Addr, to: SocketAddrV4) -> Result<Port, RadioError> {
    let mut port = small_port(from)?;
    port.tx.send(mpm::DISCOVERY_REQUEST, to).map_err(io_error("send to", to))?;
    Ok(port)
}

/// Returns pairs of local address and destination.
fn addresses(target: DiscoveryTarget) -> Result<Vec<(Ipv4Addr, Ipv4Addr)>, RadioError> {
    if let DiscoveryTarget::Address(address) = target {
        return Ok(vec![(Ipv4Addr::UNSPECIFIED, address)]);
    }
    let mut pairs: Vec<_> = LOOPBACK.map(|address| (Ipv4Addr::UNSPECIFIED, address)).into();
    if target == DiscoveryTarget::Local {
        return Ok(pairs);
    }
    let all = interfaces::list().map_err(RadioError::Interfaces)?;
    pairs.extend(all.iter().filter_map(|one| Some((one.address, one.broadcast?))));
    Ok(pairs)
}

fn small_port(from: Ipv4Addr) -> Result<Port, LinkError> {
    let options = PortOptions {
        datagram_bytes_max: mpm::MAX_REPLY_LEN + 64,
        recv_queue_bytes: 256 << 10,
        send_queue_bytes: 64 << 10,
        ..PortOptions::default()
    };
    open("udp:gro=off", SocketAddrV4::new(from, 0), &options)
}

fn collect(port: &mut Port, wait: Duration, found: &mut Vec<DeviceInfo>) -> Result<(), RadioError> {
    let count = port.rx.recv_batch(wait).map_err(io_error("receive at", port.local))?;
    for index in 0..count {
        let datagram = port.rx.datagram(index);
        let Ok(reply) = mpm::DiscoveryReply::parse(datagram.payload) else { continue };
        let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let info = DeviceInfo {
            address: *datagram.source.ip(),
            fields: reply.fields().map(own).collect(),
        };
        // A device on several networks answers from several addresses, and each can be opened.
        let known = |one: &DeviceInfo| one.address == info.address;
        if !found.iter().any(known) && found.len() < REPLIES_MAX {
            found.push(info);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::thread;

    /// Returns a device that answers one request with each of `replies`.
    fn device(replies: Vec<Vec<u8>>) -> (u16, thread::JoinHandle<()>) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        let thread = thread::spawn(move || {
            let mut buffer = [0; 64];
            let (count, from) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!(
                mpm::DiscoveryRequest::parse(&buffer[..count]),
                Ok(mpm::DiscoveryRequest::Discover)
            );
            for reply in replies {
                socket.send_to(&reply, from).unwrap();
            }
        });
        (port, thread)
    }

    #[test]
    fn a_device_is_found_among_hostile_replies() {
        let good = b"USRP-MPM;type=e3xx;product=e320;serial=EMU0001;claimed=True".to_vec();
        let (port, thread) =
            device(vec![vec![], vec![0xFF; 1000], b"USRP-MPMX".to_vec(), good.clone(), good]);
        let target = DiscoveryTarget::Address(Ipv4Addr::LOCALHOST);
        let found = discover(target, port, Duration::from_secs(5)).unwrap();
        thread.join().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].address, Ipv4Addr::LOCALHOST);
        assert_eq!(found[0].field("product"), "e320");
        assert_eq!(found[0].field("nothing"), "");
        assert!(found[0].is_claimed());
    }

    #[test]
    fn a_local_search_reaches_a_device_on_this_machine() {
        let (port, thread) = device(vec![b"USRP-MPM;serial=LOCAL".to_vec()]);
        let found = discover(DiscoveryTarget::Local, port, Duration::from_millis(300)).unwrap();
        thread.join().unwrap();
        assert!(found.iter().any(|one| one.field("serial") == "LOCAL"));
    }

    /// Two radios with one serial number can both be opened, so both are listed.
    #[test]
    fn a_serial_number_hides_no_address() {
        let reply = b"USRP-MPM;type=e3xx;serial=TWICE".to_vec();
        let found = [Ipv4Addr::new(127, 0, 0, 71), Ipv4Addr::new(127, 0, 0, 12)];
        let options = PortOptions { datagram_bytes_max: 1024, ..PortOptions::default() };
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut port = open("udp:gro=off", any, &options).unwrap();
        for address in found {
            for _ in 0..2 {
                UdpSocket::bind((address, 0)).unwrap().send_to(&reply, port.local).unwrap();
            }
        }
        let mut heard = Vec::new();
        while heard.len() < 2 {
            collect(&mut port, Duration::from_secs(5), &mut heard).unwrap();
        }
        assert_eq!(heard.iter().map(|one| one.address).collect::<Vec<_>>(), found);
    }

    #[test]
    fn nobody_there_is_an_empty_list() {
        let target = DiscoveryTarget::Address(Ipv4Addr::LOCALHOST);
        assert_eq!(discover(target, 1, Duration::from_millis(20)).unwrap(), []);
    }
}
