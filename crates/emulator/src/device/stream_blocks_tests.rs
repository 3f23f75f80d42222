//! Blocks beside the radio, and devices with several radio blocks, on simulated time.

use super::test_bench::*;
use super::*;
use crate::antenna::RampAntenna;
use crate::personality::{DeviceKind, ImageOptions};
use millstream_dsp::chunks::Chunks;
use millstream_wire::chdr::{DataRepr, Packet};
use millstream_wire::mgmt::{MgmtRepr, Op as Hop};
use millstream_wire::regs::sep;
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};

/// Endpoints of an E320 with all blocks, and their control ports.
const REPLAY: u16 = 4;
const REPLAY_PORT: u16 = 6;
const SIG_GEN: u16 = 6;
const SIG_GEN_PORT: u16 = 7;
const NULL: u16 = 8;
const NULL_PORT: u16 = 8;

fn bench(device: DeviceKind) -> Bench {
    let ramp = |_| AntennaSource::Signal(Box::new(RampAntenna));
    let sources = (0..device.channels()).map(ramp).collect();
    let options = ImageOptions { extra_blocks: true, ..ImageOptions::default() };
    let mut bench = Bench::with_image(device, options, sources, RATE_HZ, TX_BUFFER_SAMPLES);
    bench.connect();
    bench.now_ns = 1_000 * US;
    bench
}

/// The id that the tests give an endpoint.
const fn epid_of(endpoint: u16) -> u16 {
    100 + endpoint
}

impl Bench {
    /// Gives an endpoint its id and a route.
    fn adopt(&mut self, endpoint: u16) {
        let port = 1 + endpoint;
        self.set(&[&[Hop::Nop]], epid_of(endpoint), port.into());
        self.set_endpoint(endpoint, sep::EPID_SELF, epid_of(endpoint).into());
    }

    fn set_endpoint(&mut self, endpoint: u16, address: u16, value: u32) {
        self.set(&[&[Hop::Nop], &[Hop::SelDest(1 + endpoint)]], address, value);
    }

    /// Starts the stream of an endpoint to `to`; returns what the device sent but for the answer.
    fn start(&mut self, endpoint: u16, to: u16, period_bytes: u32) -> Vec<Vec<u8>> {
        self.set_endpoint(endpoint, sep::OSTRM_DST_EPID, to.into());
        self.set_endpoint(endpoint, sep::OSTRM_FC_FREQ_BYTES_LO, period_bytes);
        let start = [Hop::CfgWrite { address: sep::OSTRM_CTRL_STATUS, value: 0x0B }, Hop::Return];
        let mut packet = MgmtRepr::request(Epid(CONTROL), 0);
        [&[Hop::Nop][..], &[Hop::SelDest(1 + endpoint)], &start, &[Hop::Nop]]
            .iter()
            .for_each(|hop| packet.push_hop(hop).unwrap());
        let mut buffer = [0; 1024];
        let length = packet.emit(Width::W64, &mut buffer).unwrap();
        let mut sent = self.receive(&buffer[..length]);
        sent.retain(|packet| packet[6] >> 5 != 0);
        sent
    }

    /// Opens the stream of an endpoint to the host, with this capacity there.
    fn open(&mut self, endpoint: u16, capacity_bytes: u64) {
        self.adopt(endpoint);
        let sent = self.start(endpoint, STREAM, (capacity_bytes / 32) as u32);
        let init = CommandRepr::parse(&Packet::parse(&sent[0], Width::W64).unwrap()).unwrap();
        assert_eq!((init.op, init.src_epid), (CommandOp::Init, Epid(epid_of(endpoint))));
        self.credit_for(epid_of(endpoint), capacity_bytes, (0, 0));
    }

    fn block(&mut self, port: u16, writes: &[(u32, u32)]) {
        for (address, value) in writes {
            assert!(self.write_block(port, *address, *value, None).is_some());
        }
    }

    fn read_block(&mut self, port: u16, address: u32) -> u32 {
        let request = self.request(port, Op::Read, address, 0, None);
        self.control(request)[0].data.first()
    }

    /// Begins a stream to an endpoint, and sends it a packet of samples that count up from `first`.
    fn feed(&mut self, endpoint: u16, seq: u16, first: u32, count: usize) -> Vec<Vec<u8>> {
        let dst_epid = Epid(epid_of(endpoint));
        if seq == 0 {
            let repr = CommandRepr {
                dst_epid,
                src_epid: Epid(STREAM),
                op: CommandOp::Init,
                bytes: 1 << 30,
                packets: 1,
                ..CommandRepr::default()
            };
            let mut buffer = [0; 64];
            let length = repr.emit(Width::W64, &mut buffer).unwrap();
            self.receive(&buffer[..length]);
        }
        let mut packet =
            samples_from(first, DataRepr { seq, payload_len: 4 * count, ..DataRepr::default() });
        packet[..2].copy_from_slice(&dst_epid.0.to_le_bytes());
        self.receive(&packet)
    }
}

/// Returns the data packets among `sent`: samples as numbers, time, end of burst.
fn packets(sent: &[Vec<u8>]) -> Vec<(Vec<u32>, Option<u64>, bool)> {
    let parse = |packet: &Vec<u8>| {
        let packet = Packet::parse(packet, Width::W64).unwrap();
        let data = DataRepr::parse(&packet).ok()?;
        let words = packet.payload().in_chunks().0.iter().copied().map(u32::from_le_bytes);
        Some((words.collect(), data.timestamp, data.eob))
    };
    sent.iter().filter_map(parse).collect()
}

const RECORD_100: [(u32, u32); 6] =
    [(0x18, 400), (0x08, 1), (0x30, 400), (0x38, 50), (0x4C, 25), (0x28, 0)];

#[test]
fn a_recording_of_the_host_is_played_to_the_host() {
    let mut bench = bench(DeviceKind::E320);
    bench.adopt(REPLAY);
    bench.block(REPLAY_PORT, &RECORD_100);
    let sent = bench.feed(REPLAY, 0, 500, 60);
    assert_eq!(
        StatusRepr::parse(&Packet::parse(&sent[0], Width::W64).unwrap()).unwrap().count_packets,
        1
    );
    // Of the second packet 40 samples fit; the rest waits in the block.
    assert_eq!(bench.feed(REPLAY, 1, 560, 60).len(), 1);
    assert_eq!(bench.read_block(REPLAY_PORT, 0x20), 400);
    bench.open(REPLAY, 1 << 20);
    bench.block(REPLAY_PORT, &[(0x48, 1)]);
    let got = packets(&bench.run(2_000));
    let shape: Vec<_> = got.iter().map(|one| (one.0.len(), one.1, one.2)).collect();
    assert_eq!(shape, [(50, None, false), (50, None, true)]);
    let words: Vec<_> = got.into_iter().flat_map(|one| one.0).collect();
    assert_eq!(words, (500..600).collect::<Vec<_>>());
    // A restart makes room for the rest.
    bench.block(REPLAY_PORT, &[(0x08, 1)]);
    assert_eq!(bench.read_block(REPLAY_PORT, 0x20), 80);
}

#[test]
fn playing_stays_within_the_hosts_credit() {
    let mut bench = bench(DeviceKind::E320);
    bench.open(REPLAY, 1_000);
    bench.block(REPLAY_PORT, &RECORD_100);
    bench.block(REPLAY_PORT, &[(0x48, 2)]);
    let got = packets(&bench.run(5_000));
    assert_eq!(got.len(), 4, "208 bytes each");
}

#[test]
fn a_replay_block_plays_into_a_radio_of_the_device_without_the_host() {
    let mut bench = bench(DeviceKind::E320);
    bench.adopt(REPLAY);
    bench.block(REPLAY_PORT, &RECORD_100);
    bench.feed(REPLAY, 0, 0, 100);
    bench.set(&[&[Hop::Nop]], SEP, 1);
    assert!(bench.start(REPLAY, SEP, 1).is_empty(), "no INIT reaches the host");
    let endpoint = &bench.device.endpoints[usize::from(REPLAY)];
    assert_eq!(endpoint.read(sep::OSTRM_CTRL_STATUS), sep::STATUS_FC_ENABLED | 0x0A);
    let at = bench.now_ns / US + 500;
    bench.block(REPLAY_PORT, &[(0x40, at as u32), (0x48, 0x8000_0001)]);
    let sent = bench.run(4_000);
    let counters = bench.counters.snapshot();
    assert_eq!((counters.tx_samples, counters.tx_bursts), (100, 1));
    let acks = messages(&sent);
    assert_eq!((acks.len(), acks[0].timestamp), (1, Some(at + 101)), "the burst is acknowledged");
    assert_eq!((counters.tx_late_packets, counters.tx_underflows), (0, 0));
}

#[test]
fn a_replay_block_records_a_radio_of_the_device() {
    let mut bench = bench(DeviceKind::E320Radio);
    // Two endpoints of channels, then those of the blocks.
    let (replay, port) = (2, 3);
    bench.adopt(replay);
    bench.block(port, &RECORD_100);
    bench.set(&[&[Hop::Nop]], SEP, 1);
    assert!(bench.start(0, epid_of(replay), 1).is_empty());
    bench.write(0x1018, 100, None);
    bench.write(0x1014, 1, None);
    bench.run(3_000);
    assert_eq!(bench.read_block(port, 0x20), 400);
    bench.open(replay, 1 << 20);
    bench.block(port, &[(0x48, 1)]);
    let words: Vec<_> = packets(&bench.run(4_000)).into_iter().flat_map(|one| one.0).collect();
    assert_eq!(words, (1_000..1_100).collect::<Vec<_>>(), "the ramp from the start on");
}

#[test]
fn the_generator_sends_as_fast_as_there_is_credit() {
    let mut bench = bench(DeviceKind::E320);
    bench.open(SIG_GEN, 10_000);
    let constant = [(0x04, 100), (0x08, 0), (0x0C, 0x7fff), (0x10, 0x0100_0200), (0x00, 1)];
    bench.block(SIG_GEN_PORT, &constant);
    let got = packets(&bench.run(1_100));
    assert_eq!(got.len(), 10_000 / 408);
    assert!(got.iter().all(|one| one.0.len() == 100 && one.1.is_none() && !one.2));
    let parts = got[0].0[5].to_le_bytes();
    assert_eq!(i16::from_le_bytes([parts[0], parts[1]]), 256, "rounded");
    bench.block(SIG_GEN_PORT, &[(0x00, 0)]);
    assert!(bench.run(2_000).is_empty());
}

#[test]
fn the_null_source_sends_lines_and_the_sink_counts_them() {
    let mut bench = bench(DeviceKind::E320);
    bench.open(NULL, 1 << 20);
    // 18 lines on the wire, one of them the header.
    bench.block(NULL_PORT, &[(0x04, 16), (0x08, 18 * 8), (0x00, 2)]);
    let sent = bench.run(1_010);
    let got = packets(&sent);
    assert!(got.len() >= 64);
    assert_eq!((got[1].0[0], got[1].0.len()), (17 << 16 | 0xffee, 34), "line 17, its complement");
    bench.block(NULL_PORT, &[(0x00, 0)]);
    bench.open(NULL, 1 << 20);
    let got = packets(&bench.run(1_020));
    assert_eq!(got.iter().map(|one| one.2).collect::<Vec<_>>(), [true], "one ends the burst");
    for seq in 0..3 {
        assert_eq!(bench.feed(NULL, seq, 0, 32).len(), 1, "each packet is credited");
    }
    assert_eq!((bench.read_block(NULL_PORT, 0x10), bench.read_block(NULL_PORT, 0x18)), (48, 3));
}

#[test]
fn four_channels_of_an_n310_stream_from_the_same_time_on() {
    let mut bench = bench(DeviceKind::N310);
    for endpoint in 0..4 {
        bench.open(endpoint, 1 << 20);
    }
    // Radio blocks are the third and the sixth one.
    for (port, base) in [(4, 0x1000), (4, 0x1080), (7, 0x1000), (7, 0x1080)] {
        let writes =
            [(0x28, 100), (0x18, 300), (0x1C, 0), (0x20, 5_000), (0x24, 0), (0x14, 0x8000_0001)];
        bench.block(port, &writes.map(|(offset, value)| (base + offset, value)));
    }
    let got = packets(&bench.run(8_000));
    let mut times: Vec<_> = got.iter().map(|one| one.1.unwrap()).collect();
    times.sort_unstable();
    let each = [5_000, 5_100, 5_200].map(|time| [time; 4]).concat();
    assert_eq!(times, each);
}

#[test]
fn an_endpoint_that_only_sends_takes_no_data() {
    let mut bench = bench(DeviceKind::E320);
    bench.adopt(SIG_GEN);
    bench.feed(SIG_GEN, 0, 0, 10);
    assert_eq!(bench.counters.snapshot().chdr_unexpected, 2, "INIT and data");
}
