//! The stack allocates nothing while datagrams, requests and hostile packets pass through it.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_net::stack::{
    AddressClaim, DueAction, Inbound, ReceivedFrame, Stack, StackConfig, Subnet,
};
use millstream_testkit::allocations;

fn stack(last: u8) -> Stack {
    let mut config = StackConfig::new([2, 0, 0, 0, 0, last], 9000);
    config.addresses.push(Subnet { address: Ipv4Addr::new(10, 0, 0, last), prefix: 24 });
    (config.own_addresses, config.claim) = (true, AddressClaim::Announce);
    Stack::new(config).unwrap()
}

/// Passes a frame to a stack; an answer is written and passed back.
fn pass(to: &mut Stack, frame: &[u8], now_ns: u64, back: Option<&mut Stack>) -> bool {
    let parts = [frame];
    let received = ReceivedFrame { parts: &parts, vlan: None, checksum_trusted: false };
    match to.receive(received, now_ns) {
        Inbound::Udp(datagram) => !black_box(&frame[datagram.payload]).is_empty(),
        Inbound::Answer(message) => {
            let mut reply = [0; 9018];
            let len = to.write(&message, &parts, &mut reply);
            back.is_none_or(|back| pass(back, &reply[..len], now_ns, None))
        }
        Inbound::Done => false,
    }
}

fn poll_into(from: &mut Stack, to: &mut Stack, now_ns: u64) {
    let mut frame = [0; 9018];
    while let Some(due) = from.poll(now_ns) {
        if let DueAction::Write(message) = due {
            let len = from.write(&message, &[], &mut frame);
            pass(to, &frame[..len], now_ns, Some(from));
        }
    }
}

#[test]
fn datagrams_requests_and_hostile_packets_allocate_nothing() {
    let (mut a, mut b) = (stack(1), stack(2));
    let (from, to) = ("10.0.0.1:5000".parse().unwrap(), "10.0.0.2:6000".parse().unwrap());
    b.open_port(6000);
    let mut frame = [7; 8042];
    let mut delivered = 0u64;
    let before = allocations();
    for step in 0..100_000u64 {
        let now_ns = step * 2_000_000;
        poll_into(&mut a, &mut b, now_ns);
        poll_into(&mut b, &mut a, now_ns);
        let len = 42 + (step as usize * 97) % 8000;
        if a.emit(from, to, &mut frame[..len], &[], now_ns).is_ok() {
            delivered += u64::from(pass(&mut b, &frame[..len], now_ns, None));
        }
        // One byte wrong, another port, another sender.
        let mut hostile = [0; 64];
        hostile.copy_from_slice(&frame[..64]);
        hostile[step as usize % 64] ^= step as u8;
        pass(&mut b, &hostile, now_ns, Some(&mut a));
        let elsewhere = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, step as u8), 1);
        let _ = a.emit(from, elsewhere, &mut frame[..60], &[], now_ns);
    }
    assert_eq!(allocations() - before, 0);
    assert!(delivered > 90_000, "{delivered}");
    assert!(a.counters().neighbours_lost > 100, "the search for neighbours was exercised");
}
