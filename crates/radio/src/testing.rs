//! A device's socket for unit tests.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use millstream_link::open;
use millstream_link::port::{Port, PortOptions};

/// Far longer than any step takes, so that a failing test ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// A plain socket in the role of the device.
pub struct FakeSocket(UdpSocket);

/// Returns a port of the host and a socket of a device.
pub fn fake_pair() -> (Port, FakeSocket) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    (open("udp", any, &PortOptions::default()).unwrap(), FakeSocket(socket))
}

impl FakeSocket {
    pub fn address(&self) -> SocketAddrV4 {
        v4(self.0.local_addr().unwrap())
    }

    pub fn receive(&mut self) -> (Vec<u8>, SocketAddrV4) {
        let mut bytes = vec![0; 10_000];
        let (count, from) = self.0.recv_from(&mut bytes).unwrap();
        bytes.truncate(count);
        (bytes, v4(from))
    }

    pub fn send(&mut self, bytes: &[u8], to: SocketAddrV4) {
        self.0.send_to(bytes, to).unwrap();
    }

    pub fn is_quiet(&mut self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let quiet = self.0.recv_from(&mut [0; 64]).is_err();
        self.0.set_nonblocking(false).unwrap();
        quiet
    }
}

fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => unreachable!("bound to IPv4"),
    }
}
