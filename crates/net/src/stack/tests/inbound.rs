//! Received frames, and the one counter of each dropped packet.

use super::*;

/// Returns the counters that changed, by name.
fn changed(before: &StackCounters, after: &StackCounters) -> Vec<&'static str> {
    let both = before.named().zip(after.named());
    both.filter(|(old, new)| old.1 != new.1).map(|(old, _)| old.0).collect()
}

fn listening() -> Stack {
    let mut stack = stack(1);
    due(&mut stack, 10_000 * MS);
    stack.open_port(6000);
    stack
}

/// Returns the counters that a frame changes in a listening stack.
fn cost(frame: &[u8]) -> Vec<&'static str> {
    let mut stack = listening();
    let before = stack.counters();
    let inbound = receive(&mut stack, frame, 0);
    assert!(!matches!(inbound, Inbound::Udp(_)), "{inbound:?}");
    changed(&before, &stack.counters())
}

fn payload_of(stack: &mut Stack, frame: &[u8]) -> Option<Vec<u8>> {
    match receive(stack, frame, 0) {
        Inbound::Udp(datagram) => Some(frame[datagram.payload].to_vec()),
        _ => None,
    }
}

#[test]
fn a_datagram_that_ends_early_is_truncated_wherever_it_ends() {
    let frame = datagram();
    assert_eq!(payload_of(&mut listening(), &frame).unwrap(), b"payload");
    for len in 0..frame.len() {
        assert_eq!(cost(&frame[..len]), ["truncated"], "{len} bytes");
    }
}

#[test]
fn each_fault_has_its_counter() {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = datagram();
        change(&mut frame);
        cost(&frame)
    };
    let sealed = |change: &dyn Fn(&mut Vec<u8>)| {
        with(&|frame| {
            change(frame);
            reseal(frame);
        })
    };
    assert_eq!(with(&|f| f[12] = 0x86), ["other_ether_type"]);
    assert_eq!(with(&|f| f[12..14].copy_from_slice(&[0, 46])), ["other_ether_type"]);
    assert_eq!(with(&|f| f[5] = 9), ["not_ours"]);
    assert_eq!(with(&|f| f[0] = 1), ["not_ours"]);
    assert_eq!(with(&|f| f[14] = 0x65), ["bad_header"]);
    assert_eq!(with(&|f| f[14] = 0x44), ["bad_header"]);
    assert_eq!(with(&|f| f[22] ^= 1), ["bad_ip_checksum"]);
    assert_eq!(with(&|f| f[45] ^= 1), ["bad_udp_checksum"]);
    assert_eq!(sealed(&|f| f[33] = 9), ["not_ours"]);
    assert_eq!(sealed(&|f| f[20] = 0x20), ["fragments"]);
    assert_eq!(sealed(&|f| f[21] = 1), ["fragments"]);
    assert_eq!(sealed(&|f| f[23] = 6), ["other_protocol"]);
    for source in ["127.0.0.1", "224.0.0.1", "255.255.255.255", "10.0.0.255", "10.0.0.1", "0.0.0.0"]
    {
        let octets = ip(source).octets();
        assert_eq!(sealed(&|f| f[26..30].copy_from_slice(&octets)), ["bad_source"], "{source}");
    }
    // The UDP length: below its own header, beyond the packet.
    assert_eq!(with(&|f| f[39] = 7), ["bad_header"]);
    assert_eq!(with(&|f| f[39] = 16), ["truncated"]);
    assert_eq!(with(&|f| (f[36], f[37], f[40], f[41]) = (0, 9, 0, 0)), ["no_port"]);
}

#[test]
fn padding_and_options_are_skipped() {
    let mut padded = datagram();
    padded.resize(60, 0xEE);
    assert_eq!(payload_of(&mut listening(), &padded).unwrap(), b"payload");
    let mut options = datagram();
    options.splice(34..34, [7, 4, 4, 0, 1, 1, 1, 0]);
    options[14] = 0x47;
    options[17] += 8;
    reseal(&mut options);
    assert_eq!(payload_of(&mut listening(), &options).unwrap(), b"payload");
}

#[test]
fn the_checksum_policy_says_what_is_looked_at() {
    let accepted = |policy, frame: &[u8], checksum_trusted| {
        let mut stack = Stack::new(StackConfig { checksum: policy, ..config(1) }).unwrap();
        due(&mut stack, 0);
        stack.open_port(6000);
        let inbound =
            stack.receive(ReceivedFrame { parts: &[frame], vlan: None, checksum_trusted }, 0);
        (matches!(inbound, Inbound::Udp(_)), stack.counters().partial_checksums)
    };
    use ChecksumPolicy::{AcceptPartial, Ignore, Verify};
    let mut bad = datagram();
    bad[44] ^= 4;
    let mut torn = datagram();
    torn[22] ^= 1;
    let mut none = datagram();
    none[40..42].fill(0);
    let mut partial = datagram();
    let (from, to) = (ip("10.0.0.7"), ip("10.0.0.1"));
    let sum = millstream_wire::checksum::Sum::new().udp_pseudo_header(from, to, 15).folded();
    partial[40..42].copy_from_slice(&sum.to_be_bytes());
    for policy in [Verify, AcceptPartial, Ignore] {
        assert_eq!(accepted(policy, &datagram(), false), (true, 0));
        assert_eq!(accepted(policy, &none, false), (true, 0));
        assert_eq!(accepted(policy, &bad, true), (true, 0));
        assert_eq!(accepted(policy, &torn, true), (false, 0), "the header's is nobody else's");
    }
    assert_eq!(accepted(Verify, &bad, false), (false, 0));
    assert_eq!(accepted(AcceptPartial, &bad, false), (false, 0));
    assert_eq!(accepted(Ignore, &bad, false), (true, 0));
    assert_eq!(accepted(Verify, &partial, false), (false, 0));
    assert_eq!(accepted(AcceptPartial, &partial, false), (true, 1));
}

#[test]
fn the_vlan_has_to_be_ours_wherever_the_tag_is() {
    let inline = |tag: u16| {
        let mut frame = datagram();
        let [high, low] = tag.to_be_bytes();
        frame.splice(12..12, [0x81, 0, high, low]);
        frame
    };
    let accepted = |ours: Option<u16>, frame: &[u8], vlan: Option<u16>| {
        let mut stack = Stack::new(StackConfig { vlan: ours, ..config(1) }).unwrap();
        due(&mut stack, 0);
        stack.open_port(6000);
        let inbound =
            stack.receive(ReceivedFrame { parts: &[frame], vlan, checksum_trusted: false }, 0);
        let is_udp = matches!(inbound, Inbound::Udp(_));
        assert_eq!(stack.counters().other_vlan, u64::from(!is_udp));
        is_udp
    };
    let plain = datagram();
    // Of the tag's 16 bits 4 are priority and drop eligibility.
    for (tag, ours) in [(7, Some(7)), (0x6007, Some(7)), (0, None), (0xE000, None)] {
        assert!(accepted(ours, &inline(tag), None) && accepted(ours, &plain, Some(tag)), "{tag}");
    }
    for (tag, ours) in [(8, Some(7)), (0, Some(7)), (7, None)] {
        assert!(!accepted(ours, &inline(tag), None) && !accepted(ours, &plain, Some(tag)), "{tag}");
    }
    assert!(accepted(None, &plain, None) && !accepted(Some(7), &plain, None));
    assert!(!accepted(Some(7), &inline(7), Some(7)), "a tag in a tag");
}

#[test]
fn a_frame_in_parts_is_the_same_datagram() {
    let frame = datagram();
    for cut in 42..frame.len() {
        let mut stack = listening();
        let parts = [&frame[..cut], &frame[cut..]];
        let whole = ReceivedFrame { parts: &parts, vlan: None, checksum_trusted: false };
        let Inbound::Udp(datagram) = stack.receive(whole, 0) else { panic!("cut at {cut}") };
        assert_eq!(datagram.payload, 42..frame.len());
    }
}

#[test]
fn a_packet_to_everybody_comes_to_everybody() {
    let to = |mac: Mac, address: &str| {
        let mut frame = datagram();
        frame[..6].copy_from_slice(&mac.0);
        frame[30..34].copy_from_slice(&ip(address).octets());
        frame[40..42].fill(0);
        reseal(&mut frame);
        let mut stack = listening();
        match receive(&mut stack, &frame, 0) {
            Inbound::Udp(datagram) => Some(*datagram.destination.ip()),
            _ => None,
        }
    };
    let own = Mac([2, 0, 0, 0, 0, 1]);
    for address in ["10.0.0.255", "255.255.255.255"] {
        assert_eq!(to(Mac::BROADCAST, address), Some(ip(address)));
        assert_eq!(to(own, address), None);
    }
    assert_eq!(to(Mac::BROADCAST, "10.0.0.1"), None);
    assert_eq!(to(own, "10.0.0.1"), Some(ip("10.0.0.1")));
}

#[test]
fn shared_addresses_leave_everything_else_to_the_kernel() {
    let shared = StackConfig { own_addresses: false, ..config(1) };
    let mut stack = Stack::new(shared).unwrap();
    assert_eq!(stack.poll(u64::MAX - 1), None, "nothing is claimed");
    assert_eq!(receive(&mut stack, &datagram(), 0), Inbound::Done);
    assert_eq!(stack.counters().no_port, 1);
    let request = arp(Op::Request, 7, "10.0.0.7", "10.0.0.1");
    assert_eq!(receive(&mut stack, &request, 0), Inbound::Done);
    assert_eq!(stack.counters().not_ours, 1);
    stack.open_port(6000);
    assert!(matches!(receive(&mut stack, &datagram(), 0), Inbound::Udp(_)));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]

    #[test]
    fn every_frame_is_handed_on_answered_or_counted(
        mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..120),
        base in 0usize..4, flips in proptest::collection::vec((0usize..60, 0u8..), 0..4),
    ) {
        let frames = [
            vec![], datagram(), arp(Op::Request, 7, "10.0.0.7", "10.0.0.1"),
            arp(Op::Reply, 7, "10.0.0.7", "10.0.0.1"),
        ];
        let start = frames[base].len();
        bytes.splice(..start.min(bytes.len()), frames[base].iter().copied());
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= value;
            }
        }
        let mut stack = listening();
        let before = stack.counters();
        let inbound = receive(&mut stack, &bytes, 0);
        let counted = changed(&before, &stack.counters());
        proptest::prop_assert!(!counted.is_empty(), "{bytes:?}");
        if let Inbound::Answer(message) = inbound {
            let frame = written(&mut stack, &message, &[&bytes]);
            proptest::prop_assert!(!frame.is_empty() && frame.len() <= 1518);
        }
    }
}

#[test]
fn a_port_is_registered_once_and_alone() {
    let mut stack = stack(1);
    assert!(stack.open_port(0) && stack.open_port(65535) && !stack.open_port(65535));
    assert!((1..65535).all(|port| !stack.has_port(port)));
    stack.close_port(0);
    assert!(!stack.has_port(0) && stack.has_port(65535));
}
