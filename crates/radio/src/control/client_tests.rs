//! Tests of the client against a device that loses, repeats and refuses.

use super::*;
use crate::testing::{FakeSocket, fake_pair};
use millstream_wire::chdr;
use millstream_wire::ctrl::{ControlStatus, DataWords, Op, Protocol};
use millstream_wire::regs::radio::async_msg::Event;

const HOST: Epid = Epid(1);
const PEER: Epid = Epid(2);

fn parse(bytes: &[u8]) -> CtrlRepr {
    CtrlRepr::parse(&chdr::Packet::parse(bytes, Width::W64).unwrap()).unwrap()
}

fn emit(repr: &CtrlRepr) -> Vec<u8> {
    let mut bytes = [0; PACKET_BYTES];
    let length = repr.emit(Width::W64, &mut bytes).unwrap();
    bytes[..length].to_vec()
}

fn control() -> (Control, FakeSocket, SocketAddrV4) {
    control_of(Protocol::V1)
}

fn control_of(protocol: Protocol) -> (Control, FakeSocket, SocketAddrV4) {
    let (port, device) = fake_pair();
    let host = SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port.local.port());
    let control = Control::new(port, device.address(), (Width::W64, protocol), HOST, PEER).unwrap();
    (control, device, host)
}

/// Serves requests in a thread: `reply` gets each request and its position in the sequence.
fn serve(
    mut device: FakeSocket,
    requests: usize,
    reply: impl Fn(usize, CtrlRepr) -> Vec<CtrlRepr> + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        for turn in 0..requests {
            let (bytes, from) = device.receive();
            for answer in reply(turn, parse(&bytes)) {
                device.send(&emit(&answer), from);
            }
        }
    })
}

#[test]
fn a_read_returns_what_the_register_holds() {
    let (control, device, _) = control();
    let server = serve(device, 2, |_, request| {
        assert_eq!((request.dst_port, request.src_port, request.op), (3, 3, Op::Read));
        let wrong = CtrlRepr { ctrl_seq: request.ctrl_seq ^ 5, ..request };
        let data = DataWords::one(request.address + 1);
        // The answer comes twice, after a stranger's: only the right one counts, once.
        let ack = request.ack(0, ControlStatus::Ok, data);
        vec![wrong.ack(0, ControlStatus::Ok, DataWords::one(9)), ack, ack]
    });
    assert_eq!(control.read(3, 0x1000).unwrap(), 0x1001);
    assert_eq!(control.read(3, 0x1004).unwrap(), 0x1005);
    server.join().unwrap();
    assert!(control.counters().stray_acks.load(Ordering::Relaxed) >= 2);
}

#[test]
fn lost_packets_are_repeated_and_late_answers_count() {
    let (control, device, _) = control();
    let first = Mutex::new(None);
    let server = serve(device, 3, move |turn, request| {
        assert_eq!(request.data.first(), 77);
        match turn {
            0 => {
                *lock(&first) = Some(request);
                vec![]
            }
            // The answer to the first attempt comes after the second was sent.
            1 => vec![lock(&first).unwrap().ack(0, ControlStatus::Ok, request.data)],
            _ => vec![request.ack(0, ControlStatus::Ok, request.data)],
        }
    });
    control.write(3, 0x20, 77).unwrap();
    // A busy machine answers so late that the first access takes all three turns.
    while !server.is_finished() {
        let _ = control.write(3, 0x20, 77);
    }
    server.join().unwrap();
    assert!(control.counters().retries.load(Ordering::Relaxed) >= 1);
}

#[test]
fn a_write_that_must_not_be_repeated_goes_out_once() {
    let (control, mut device, _) = control();
    let text = control.write_once(3, 0x1014, 2).unwrap_err().to_string();
    assert!(text.contains("did not answer a register write (1 attempts"), "{text}");
    device.receive();
    assert!(device.is_quiet());
}

#[test]
fn a_refusal_names_register_and_status() {
    let (control, device, _) = control();
    let server = serve(device, 1, |_, request| {
        vec![request.ack(0, ControlStatus::CommandError, request.data)]
    });
    assert_eq!(
        control.read(0, 0xABC).unwrap_err().to_string(),
        "the device refused a read at register 0xabc of port 0: command error"
    );
    server.join().unwrap();
}

#[test]
fn messages_are_noted_and_acknowledged_and_noise_is_counted() {
    let (control, mut device, host) = control();
    let events = control.watch(3, 1);
    let message = |event: Event, channel, port| {
        emit(&CtrlRepr {
            dst_epid: HOST,
            src_epid: PEER,
            dst_port: port,
            src_port: port,
            op: Op::Write,
            address: event.address(channel),
            data: DataWords::one(event.code()),
            timestamp: Some(4711),
            ctrl_seq: 9,
            ..CtrlRepr::default()
        })
    };
    device.send(b"noise", host);
    for (event, channel, port) in
        [(Event::RxOverrun, 1, 3), (Event::RxLateCommand, 1, 3), (Event::RxOverrun, 0, 3)]
    {
        device.send(&message(event, channel, port), host);
        let (bytes, _) = device.receive();
        let ack = parse(&bytes);
        assert!(ack.is_ack && ack.ctrl_seq == 9 && ack.dst_epid == PEER, "{ack}");
    }
    assert_eq!((events.overruns(), events.overrun_ticks(), events.late_commands()), (1, 4711, 1));
    assert_eq!(control.counters().malformed.load(Ordering::Relaxed), 1);
    assert_eq!(control.counters().unknown_messages.load(Ordering::Relaxed), 1);
}

fn tx_late(number: u8, port: u16) -> CtrlRepr {
    CtrlRepr {
        dst_epid: HOST,
        src_epid: PEER,
        dst_port: port,
        src_port: port,
        op: Op::Write,
        address: Event::TxLate.address(1),
        data: DataWords::one(Event::TxLate.code()),
        timestamp: Some(77),
        seq: u16::from(number),
        ctrl_seq: number,
        ..CtrlRepr::default()
    }
}

#[test]
fn a_message_is_noted_and_acknowledged_once_and_one_that_does_not_come_is_counted() {
    let (control, mut device, host) = control();
    let (first, second) = (control.watch(3, 0), control.watch(3, 1));
    for (number, is_new) in [(5, true), (6, true), (6, false), (9, true), (8, true), (9, false)] {
        device.send(&emit(&tx_late(number, 3)), host);
        if is_new {
            let (bytes, _) = device.receive();
            assert_eq!((parse(&bytes).is_ack, parse(&bytes).ctrl_seq), (true, number));
        }
    }
    // What is acknowledged next is the next message: there is nothing for copies before it.
    device.send(&emit(&tx_late(10, 3)), host);
    assert_eq!(parse(&device.receive().0).ctrl_seq, 10);
    assert_eq!((first.tx_reported(), second.tx_reported()), (0, 5));
    assert_eq!((first.missed(), second.missed()), (1, 1), "7 is about either of them");
    assert_eq!(control.counters().repeated_messages.load(Ordering::Relaxed), 2);
    assert_eq!(control.counters().missed_messages.load(Ordering::Relaxed), 1);
}

#[test]
fn a_message_from_before_the_reset_of_its_block_is_not_acknowledged() {
    let (control, mut device, host) = control();
    device.send(&emit(&tx_late(5, 3)), host);
    while control.counters().unknown_messages.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    // The block is reset, its channels are watched, and it counts from 0.
    let events = control.watch(3, 1);
    device.send(&emit(&tx_late(0, 3)), host);
    assert_eq!(parse(&device.receive().0).ctrl_seq, 0);
    assert_eq!((events.tx_reported(), events.missed()), (1, 0));
    assert!(device.is_quiet());
}

/// Reads a packet of protocol 2.0.
fn parse_v2(bytes: &[u8]) -> CtrlRepr {
    Protocol::V2.parse(&chdr::Packet::parse(bytes, Width::W64).unwrap()).unwrap()
}

/// Writes one.
fn emit_v2(repr: &CtrlRepr) -> Vec<u8> {
    let mut bytes = [0; PACKET_BYTES];
    let length = Protocol::V2.emit(repr, Width::W64, &mut bytes).unwrap();
    bytes[..length].to_vec()
}

#[test]
fn protocol_2_has_256_numbers_and_only_the_answer_to_the_same_access_counts() {
    let (control, mut device, _) = control_of(Protocol::V2);
    let server = thread::spawn(move || {
        let mut numbers = Vec::new();
        for _ in 0..300 {
            let (bytes, from) = device.receive();
            let request = parse_v2(&bytes);
            numbers.push(request.ctrl_seq);
            assert_eq!((request.data.len(), request.read_words), (0, 1), "{request}");
            let stale = CtrlRepr { op: Op::Write, ..request };
            let other = CtrlRepr { address: request.address + 4, ..request };
            let ack = |of: &CtrlRepr, data| of.ack(0, ControlStatus::Ok, data);
            for answer in [
                ack(&stale, DataWords::one(1)),
                ack(&other, DataWords::one(2)),
                ack(&request, DataWords::NONE),
                ack(&request, DataWords::one(3)),
            ] {
                device.send(&emit_v2(&answer), from);
            }
        }
        let (bytes, from) = device.receive();
        let request = parse_v2(&bytes);
        assert_eq!((&request.data[..], request.read_words), (&[7][..], 0));
        let ack = request.ack(0, ControlStatus::Ok, DataWords::NONE);
        device.send(&emit_v2(&ack), from);
        numbers
    });
    for _ in 0..300 {
        assert_eq!(control.read(3, 0x1000).unwrap(), 3);
    }
    control.write(3, 0x1000, 7).unwrap();
    let numbers = server.join().unwrap();
    let expected: Vec<_> = (0..300).map(|turn: u32| turn as u8).collect();
    assert_eq!(numbers, expected, "a radio expects them in this order");
}

#[test]
fn messages_of_protocol_2_are_acknowledged_without_words_and_counted_to_256() {
    let (control, mut device, host) = control_of(Protocol::V2);
    let events = control.watch(3, 0);
    for number in [60, 70, 250, 258_u16] {
        let message = CtrlRepr {
            dst_epid: HOST,
            src_epid: PEER,
            dst_port: 3,
            src_port: 3,
            op: Op::Write,
            address: Event::TxLate.address(0),
            data: DataWords::one(Event::TxLate.code()),
            timestamp: Some(77),
            seq: number,
            ctrl_seq: number as u8,
            ..CtrlRepr::default()
        };
        device.send(&emit_v2(&message), host);
        let ack = parse_v2(&device.receive().0);
        assert_eq!((ack.is_ack, ack.data.len(), ack.ctrl_seq), (true, 0, number as u8));
    }
    assert_eq!((events.tx_reported(), events.missed()), (4, 9 + 179 + 7));
}
