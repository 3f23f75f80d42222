//! Tests of an image that speaks protocol 2.0.

use super::test_bench::*;
use super::*;
use crate::UhdGeneration;
use millstream_wire::chdr::Packet;
use millstream_wire::ctrl::{ControlStatus, Protocol};
use millstream_wire::mgmt::{MgmtRepr, Op as Hop};

/// Sends a request with these words; returns the control packets that come back.
fn ask(bench: &mut Bench, request: CtrlRepr) -> Vec<CtrlRepr> {
    let mut buffer = [0; 128];
    let length = Protocol::V2.emit(&request, Width::W64, &mut buffer).unwrap();
    let sent = bench.receive(&buffer[..length]);
    sent.iter().map(|packet| parse(packet)).collect()
}

fn parse(packet: &[u8]) -> CtrlRepr {
    Protocol::V2.parse(&Packet::parse(packet, Width::W64).unwrap()).unwrap()
}

/// A connected radio whose host is of UHD 4.11.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.connect();
    bench.device.execute(DeviceCommand::Speak(UhdGeneration::V4_11.row()));
    bench.acknowledges = false;
    bench
}

fn read(bench: &mut Bench, port: u16, address: u32, count: u8) -> Vec<u32> {
    let (op, data) = (Op::BlockRead, DataWords::NONE);
    let request = bench.request(port, op, address, 0, None);
    let request = CtrlRepr { data, read_words: count, ctrl_seq: 200, ..request };
    let [ack] = ask(bench, request)[..] else { panic!("one acknowledgement") };
    assert!(ack.is_ack && ack.status == ControlStatus::Ok);
    let repeated = (ack.op, ack.ctrl_seq, ack.address, ack.read_words);
    assert_eq!(repeated, (op, 200, address, count));
    ack.data.to_vec()
}

fn write(bench: &mut Bench, address: u32, values: &[u32]) -> Vec<CtrlRepr> {
    let request = bench.request(bench.radio_port, Op::BlockWrite, address, 0, None);
    let data = DataWords::new(values).unwrap();
    let sent = ask(bench, CtrlRepr { data, ..request });
    assert!(sent.iter().any(|one| one.is_ack && one.data.is_empty()), "no word comes back");
    sent
}

/// UHD 4.11 reads the connections and the time as blocks.
#[test]
fn blocks_of_registers_are_read_and_written() {
    let mut bench = bench();
    let radio = bench.radio_port;
    assert_eq!(read(&mut bench, 0, 0, 1)[0] & 0xffff, 0x0200);
    let list = read(&mut bench, 0, 0x10000, 5);
    assert_eq!((list[0], list.len()), (4, 5));
    bench.run(1_234);
    assert_eq!(read(&mut bench, radio, 0x4, 2), [1_234, 0]);
    assert_eq!(read(&mut bench, radio, 0x0, 1), [0x1_0000], "map 1");
    write(&mut bench, 0x1110, &[7, 8]);
    assert_eq!(read(&mut bench, radio, 0x1110, 2), [7, 8]);
}

#[test]
fn a_message_and_its_acknowledgement_have_the_layout_of_the_protocol() {
    let mut bench = bench();
    bench.run(5_000);
    write(&mut bench, 0x1110, &[100, 0]);
    for number in 0..2 {
        let sent = write(&mut bench, 0x1104, &[0x8000_0002]);
        let mut sent =
            [sent, bench.run(bench.now_ns / US + 100).iter().map(|p| parse(p)).collect()].concat();
        sent.retain(|one| !one.is_ack);
        let [late] = sent[..] else { panic!("{sent:?}") };
        assert_eq!((late.op, late.address, late.ctrl_seq), (Op::Write, 0x1000, number));
        assert_eq!((late.data.to_vec(), late.timestamp.is_some()), (vec![1], true));
        let ack = late.ack(0, ControlStatus::Ok, DataWords::NONE);
        let ack = CtrlRepr { dst_port: late.src_port, src_port: late.dst_port, ..ack };
        assert_eq!(ask(&mut bench, ack), []);
    }
}

#[test]
fn answers_to_management_have_the_version_of_the_image() {
    for (uhd, version) in [(UhdGeneration::V4_10, 0x0100), (UhdGeneration::V4_11, 0x0200)] {
        let mut bench = bench();
        bench.device.execute(DeviceCommand::Speak(uhd.row()));
        let mut request = MgmtRepr::request(Epid(CONTROL), 0);
        request.push_hop(&[Hop::InfoReq, Hop::Return]).unwrap();
        request.push_hop(&[Hop::Nop]).unwrap();
        let mut buffer = [0; 128];
        let length = request.emit(Width::W64, &mut buffer).unwrap();
        let sent = bench.receive(&buffer[..length]);
        let reply = MgmtRepr::parse(&Packet::parse(&sent[0], Width::W64).unwrap()).unwrap();
        assert_eq!(reply.version, version);
    }
}
