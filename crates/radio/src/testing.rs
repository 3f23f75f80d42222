//! A device's socket, and a device's registers, for unit tests.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use millstream_link::open;
use millstream_link::port::{Port, PortOptions};
use millstream_wire::regs::client_zero::{self, BlockInfo, Counts, Edge, noc_id};
use millstream_wire::regs::dsp;

use crate::RadioError;
use crate::control::Registers;

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

/// The registers of a device with the graph of an E320: endpoints 1 and 2, then DUC, DDC, Radio and
/// DmaFIFO of two channels each. It records what is written.
#[derive(Default)]
pub struct FakeE320 {
    writes: RefCell<Vec<(u16, u32, u32)>>,
}

impl FakeE320 {
    /// The control ports of its blocks.
    pub const DUC: u16 = 2;
    pub const DDC: u16 = 3;
    pub const RADIO: u16 = 4;

    const BLOCKS: [u32; 4] = [noc_id::DUC, noc_id::DDC, noc_id::RADIO, noc_id::DMA_FIFO];

    /// Takes the writes since the last call: control port, address and value.
    pub fn take_writes(&self) -> Vec<(u16, u32, u32)> {
        self.writes.take()
    }

    fn edges() -> Vec<Edge> {
        let mut edges = Vec::new();
        for port in 0..2u8 {
            let endpoint = 1 + u16::from(port);
            let ring = [(endpoint, 0), (3, port), (5, port), (4, port), (endpoint, 0)];
            edges.extend(ring.windows(2).map(|pair| Edge {
                src_index: pair[0].0,
                src_port: pair[0].1,
                dst_index: pair[1].0,
                dst_port: pair[1].1,
            }));
        }
        edges
    }

    fn client_zero(address: u32) -> u32 {
        let edges = Self::edges();
        let count = edges.len() as u32;
        match address {
            client_zero::PROTO_VER => 0x100,
            client_zero::PORT_CONFIG => {
                let (endpoints, blocks) = (2, Self::BLOCKS.len() as u16);
                let counts = Counts { endpoints, blocks, transports: 1, has_crossbar: true };
                counts.to_word().unwrap()
            }
            client_zero::DEVICE_INFO => u32::from(client_zero::device_type::E320) << 16,
            client_zero::CTRL_ENDPOINTS => 1,
            client_zero::ADJACENCY | client_zero::EDGE_COUNT => count,
            client_zero::ADJACENCY.. => {
                edges[(address - client_zero::ADJACENCY) as usize / 4 - 1].to_word().unwrap()
            }
            _ => {
                let index = address / client_zero::INDEX_STRIDE;
                match address % client_zero::INDEX_STRIDE {
                    client_zero::BLOCK_NOC_ID => Self::BLOCKS[index as usize - 3],
                    client_zero::BLOCK_INFO => {
                        let info = BlockInfo { inputs: 2, outputs: 2, ..BlockInfo::default() };
                        info.to_word().unwrap()
                    }
                    // The flush is done; the MTU is 2¹⁰ words.
                    _ => 1 << 1 | 10 << 2,
                }
            }
        }
    }
}

impl Registers for FakeE320 {
    fn address(&self) -> Ipv4Addr {
        Ipv4Addr::LOCALHOST
    }

    fn read(&self, port: u16, address: u32) -> Result<u32, RadioError> {
        Ok(match (port, address % dsp::CHANNEL_STRIDE) {
            (0, _) => Self::client_zero(address),
            (_, dsp::COMPAT) => 1,
            (_, dsp::HALFBANDS) => 3,
            (_, dsp::CIC_MAX) => 255,
            _ => dsp::UNKNOWN,
        })
    }

    fn write(&self, port: u16, address: u32, value: u32) -> Result<(), RadioError> {
        self.writes.borrow_mut().push((port, address, value));
        Ok(())
    }
}

/// A datagram of a recorded exchange with the logic of a real device.
pub struct Recorded {
    pub bytes: Vec<u8>,
    /// It came from the device.
    pub from_device: bool,
    /// The radio's time.
    pub ticks: u64,
}

/// Returns the CHDR datagrams of a recorded exchange.
pub fn recorded(name: &str) -> Vec<Recorded> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../emulator/tests/exchanges");
    let text = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).expect("it is there");
    let datagram = |line: &str| {
        let hex = line.split("\"hex\":\"").nth(1)?.split('"').next()?;
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        let bytes = (0..hex.len()).step_by(2).map(byte).collect();
        let ticks = line.split("\"ticks\":").nth(1)?.split(['}', ',']).next()?;
        let ticks = ticks.trim().parse().expect("a number");
        Some(Recorded { bytes, from_device: line.contains("\"dir\":\"from\""), ticks })
    };
    text.lines().filter_map(datagram).collect()
}
