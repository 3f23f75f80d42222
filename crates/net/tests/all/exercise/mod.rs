//! The harness for the stack, for arbitrary bytes; the property test and the fuzz target share it.

use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_net::stack::{
    AddressClaim, DueAction, DueFrame, Inbound, ReceivedFrame, Route, Stack, StackConfig,
    StackCounters, Subnet,
};

const MTU: usize = 1500;
const SECOND_NS: u64 = 1_000_000_000;

/// Executes a whole history from `bytes`: the stack's configuration, then frames, datagrams and
/// time.
///
/// Every step is a byte for the action, one for the amount, and the action's data.
pub fn history(bytes: &[u8]) {
    let Some((&[first, second], mut rest)) = bytes.split_first_chunk() else { return };
    let (mut stack, mut now_ns) = (stack(first, second), 0);
    while let Some((&[what, amount], after)) = rest.split_first_chunk() {
        let (piece, after) = after.split_at(usize::from(amount).min(after.len()));
        match what % 8 {
            0..=2 => frame(&mut stack, piece, what, now_ns),
            3 => datagram(&mut stack, piece, now_ns),
            4 => now_ns += u64::from(amount) * SECOND_NS / 8,
            5 => stack.learn(address(piece), [2, 0, 0, 0, 0, amount], now_ns),
            6 => stack.forget(address(piece), now_ns),
            _ if amount % 2 == 0 => stack.close_port(u16::from(amount)),
            _ => drop(stack.open_port(u16::from(amount))),
        }
        everything_due(&mut stack, now_ns);
        rest = after;
    }
}

fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, bytes.first().copied().unwrap_or_default())
}

/// Returns a stack with port 6000 open; with odd `first` below 8 it has its own address, in use at
/// once.
pub fn stack(first: u8, second: u8) -> Stack {
    let mut config = StackConfig::new([2, 0, 0, 0, 0, 1], MTU);
    config.addresses.push(Subnet { address: Ipv4Addr::new(10, 0, 0, 1), prefix: 24 });
    config.routes.push(Route::default_via(Ipv4Addr::new(10, 0, 0, 254)));
    config.own_addresses = first & 1 != 0;
    config.vlan = (first & 2 != 0).then_some(7);
    config.udp_checksum = first & 4 != 0;
    config.claim = [AddressClaim::Announce, AddressClaim::Quick, AddressClaim::Standard]
        [usize::from(first >> 3) % 3];
    config.neighbours_max = 1 + usize::from(second % 8);
    config.seed = u64::from(second);
    let mut stack = Stack::new(config).unwrap();
    assert!(stack.open_port(6000));
    stack
}

fn sum(counters: &StackCounters) -> u64 {
    counters.named().map(|(_, count)| count).sum()
}

fn frame(stack: &mut Stack, bytes: &[u8], how: u8, now_ns: u64) {
    let before = sum(&stack.counters());
    let (head, tail) = bytes.split_at(bytes.len() * usize::from(how >> 5) / 7);
    let (one, two) = ([bytes], [head, tail]);
    let parts = if how & 16 == 0 { &one[..] } else { &two[..] };
    let vlan = (how & 8 != 0).then_some(u16::from(how));
    match stack.receive(ReceivedFrame { parts, vlan, checksum_trusted: how & 2 != 0 }, now_ns) {
        Inbound::Udp(datagram) => {
            assert!(stack.has_port(datagram.destination.port()));
            assert!(bytes.get(datagram.payload).is_some(), "the payload lies in the frame");
        }
        Inbound::Answer(message) => write(stack, &message, parts),
        Inbound::Done => {}
    }
    assert!(sum(&stack.counters()) > before, "no frame passes uncounted");
}

fn write(stack: &mut Stack, message: &DueFrame, request: &[&[u8]]) {
    let mut frame = [0; MTU + 18];
    let len = stack.write(message, request, &mut frame);
    assert!((42..=frame.len()).contains(&len), "what is due can be written");
    assert_eq!(frame[6..12], [2, 0, 0, 0, 0, 1]);
    assert_eq!(stack.write(message, request, &mut frame[..len - 1]), 0);
}

fn datagram(stack: &mut Stack, bytes: &[u8], now_ns: u64) {
    let &[a, b, length, ..] = bytes else { return };
    let to = if b < 128 { Ipv4Addr::new(10, 0, 0, a) } else { Ipv4Addr::new(b, a, a, b) };
    let mut frame = vec![0; stack.header_len() + usize::from(length) * 6];
    let max = stack.payload_len_max();
    let fits = frame.len() - stack.header_len() <= max;
    let from = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 6000);
    let sent = stack.emit(from, SocketAddrV4::new(to, 1), &mut frame, &[], now_ns);
    assert!(fits || sent.is_err());
    if sent.is_ok() {
        assert_eq!(frame[6..12], [2, 0, 0, 0, 0, 1]);
    }
}

fn everything_due(stack: &mut Stack, now_ns: u64) {
    for _ in 0..100 {
        match stack.poll(now_ns) {
            Some(DueAction::Write(message)) => write(stack, &message, &[]),
            Some(_) => {}
            None => {
                assert!(stack.due_ns() > now_ns, "nothing stays due");
                return;
            }
        }
    }
    panic!("what is due never ends");
}
