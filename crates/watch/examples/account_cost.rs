//! Measures what a packet costs the account: `cargo run --release -p millstream-watch --example
//! account_cost`.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use millstream_watch::{CaptureAccount, Captured, LinkType, SNAPLEN};
use millstream_wire::chdr::{DataRepr, Width};
use millstream_wire::ethernet::ether_type;
use millstream_wire::{Epid, ipv4, udp};

const BATCHES: usize = 1000;
const BATCH: usize = 4000;
const SAMPLES: usize = 1996;

fn main() {
    for flows in [1, 4, 200] {
        let heads: Vec<Vec<u8>> = (0..flows).map(|flow| frame(flow as u16)).collect();
        let mut frames: Vec<_> = (0..BATCH).map(|n| heads[n % flows].clone()).collect();
        let mut account = CaptureAccount::new();
        let mut took = Vec::with_capacity(BATCHES);
        for batch in 0..BATCHES {
            for (n, frame) in frames.iter_mut().enumerate() {
                let n = (batch * BATCH + n) / flows;
                // Each hundredth packet of a flow is lost, and leaves a gap.
                let seq = n + n / 100;
                let chdr = 14 + ipv4::HEADER_LEN + udp::HEADER_LEN;
                frame[chdr + 4..chdr + 6].copy_from_slice(&(seq as u16).to_le_bytes());
                let ticks = (seq * SAMPLES) as u64;
                frame[chdr + 8..chdr + 16].copy_from_slice(&ticks.to_le_bytes());
            }
            let begin = Instant::now();
            for (n, bytes) in frames.iter().enumerate() {
                let at_ns = Some((batch * BATCH + n) as u64 * 5_000);
                let link = LinkType::Ethernet;
                account.take(black_box(&Captured {
                    at_ns,
                    interface: 0,
                    is_outgoing: None,
                    link,
                    bytes,
                }));
            }
            took.push(begin.elapsed());
        }
        // Other programs interrupt some batches.
        took.sort();
        let ns = took[BATCHES / 2].as_nanos() as f64 / BATCH as f64;
        let lost: u64 = account.flows().iter().map(|flow| flow.lost_before()).sum();
        let packets = account.counts().frames;
        println!("{flows:3} flows: {ns:5.1} ns a packet, {packets} packets, {lost} lost");
    }
}

/// Returns a frame of a flow.
fn frame(flow: u16) -> Vec<u8> {
    let mut data = vec![0; 8192];
    let (dst_epid, payload_len) = (Epid(flow), SAMPLES * 4);
    let repr = DataRepr { dst_epid, timestamp: Some(0), payload_len, ..DataRepr::default() };
    repr.emit(Width::W64, &mut data).expect("it has room");
    data.truncate(repr.packet_len(Width::W64));
    let [radio, host] = [2, 1].map(|last| Ipv4Addr::new(10, 0, 0, last));
    let mut frame = vec![0; 14];
    frame[12..].copy_from_slice(&ether_type::IPV4.to_be_bytes());
    let mut header = [0; ipv4::HEADER_LEN];
    header[0] = 0x45;
    let length = (ipv4::HEADER_LEN + udp::HEADER_LEN + data.len()) as u16;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[9] = ipv4::protocol::UDP;
    header[12..16].copy_from_slice(&radio.octets());
    header[16..].copy_from_slice(&host.octets());
    frame.extend(header);
    let mut ports = [0; udp::HEADER_LEN];
    let ends = [SocketAddrV4::new(radio, 49153), SocketAddrV4::new(host, 40000 + flow)];
    ports[..2].copy_from_slice(&ends[0].port().to_be_bytes());
    ports[2..4].copy_from_slice(&ends[1].port().to_be_bytes());
    ports[4..6].copy_from_slice(&(length - ipv4::HEADER_LEN as u16).to_be_bytes());
    frame.extend(ports);
    frame.extend(data);
    frame.truncate(SNAPLEN);
    frame
}
