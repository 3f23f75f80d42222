//! Two of our stacks exchange packets.

use super::*;

const PORTS: (&str, &str) = ("0.0.0.0:5000", "10.0.0.2:6000");

#[test]
fn a_datagram_arrives_after_its_neighbour_was_asked_for() {
    let mut wire = Wire::new(vec![stack(1), stack(2)]);
    wire.run(10_000 * MS);
    wire.stacks[1].open_port(6000);
    assert_eq!(wire.emit(0, PORTS, b"hello"), Err(EmitError::Pending));
    let before = wire.stacks[0].generation();
    wire.run(MS);
    assert_ne!(wire.stacks[0].generation(), before, "the answer shows in the generation");
    let frame = wire.emit(0, PORTS, b"hello").unwrap();
    let Inbound::Udp(datagram) = receive(&mut wire.stacks[1], &frame, wire.now_ns) else {
        panic!("{:?}", wire.stacks[1].counters())
    };
    assert_eq!(&frame[datagram.payload], b"hello");
    assert_eq!(datagram.source, at("10.0.0.1:5000"));
    assert_eq!(datagram.destination, at("10.0.0.2:6000"));
    let counters = wire.stacks[0].counters();
    assert_eq!((counters.tx_datagrams, counters.unresolved, counters.tx_bytes), (1, 1, 5));
}

#[test]
fn whoever_was_asked_for_knows_who_asked() {
    let mut wire = Wire::new(vec![stack(1), stack(2)]);
    let _ = wire.emit(0, PORTS, b"");
    wire.run(MS);
    assert_eq!(
        wire.stacks[1].resolve(ip("10.0.0.1"), wire.now_ns),
        EmitHop::Known([2, 0, 0, 0, 0, 1])
    );
}
