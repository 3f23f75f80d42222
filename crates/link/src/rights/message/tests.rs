//! Messages are decoded as they were encoded, and other bytes do no harm.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn steers() -> impl Strategy<Value = Steer> {
    let lists = (vec(any::<u32>(), 0..=ADDRESSES_MAX), vec(any::<u16>(), 0..=300));
    (any::<(bool, bool)>(), lists, proptest::option::of(0..4096u16), vec(any::<u16>(), 0..9))
        .prop_map(|((everything, own_addresses), (addresses, udp_ports), vlan, ethertypes)| Steer {
            everything,
            addresses: addresses.into_iter().map(Ipv4Addr::from).collect(),
            udp_ports,
            own_addresses,
            vlan,
            ethertypes,
        })
}

fn requests() -> impl Strategy<Value = BrokerRequest> {
    let hello = (any::<u16>(), "[a-z]{0,15}", "[a-z][a-z0-9._-]{0,14}")
        .prop_map(|(version, link, interface)| BrokerRequest::Hello { version, link, interface });
    let attach = (0..3u32, any::<bool>(), any::<u32>()).prop_map(|(hook, parts, rate_max_hz)| {
        BrokerRequest::Attach(Attach { hook: hook_of(hook).unwrap(), parts, rate_max_hz })
    });
    let poll = any::<(u32, u32)>().prop_map(|(busy_poll_us, budget)| {
        BrokerRequest::BusyPoll(BusyPoll { busy_poll_us, budget })
    });
    prop_oneof![
        hello,
        Just(BrokerRequest::Socket),
        any::<u64>().prop_map(|bytes| BrokerRequest::AllowLocked { bytes }),
        poll,
        attach,
        any::<u32>().prop_map(|queue| BrokerRequest::Watch { queue }),
        steers().prop_map(BrokerRequest::Steer),
        any::<u32>().prop_map(|count| BrokerRequest::Channels { count }),
        Just(BrokerRequest::Ports),
    ]
}

proptest! {
    #[test]
    fn a_request_comes_back_as_it_was(request in requests()) {
        let bytes = request.encode();
        prop_assert!(bytes.len() <= MESSAGE_BYTES_MAX);
        prop_assert_eq!(BrokerRequest::decode(&bytes), Ok(request));
    }

    #[test]
    fn a_request_that_was_cut_or_has_grown_is_refused_whole(
        request in requests(),
        cut in any::<prop::sample::Index>(),
        more in vec(any::<u8>(), 1..9),
    ) {
        let mut bytes = request.encode();
        let short = &bytes[..cut.index(bytes.len())];
        prop_assert_eq!(BrokerRequest::decode(short), Err(Malformed::Short));
        let extra = more.len();
        bytes.extend(more);
        prop_assert_eq!(BrokerRequest::decode(&bytes), Err(Malformed::Long(extra)));
    }

    #[test]
    fn what_is_accepted_means_what_it_says(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(request) = BrokerRequest::decode(&bytes) {
            prop_assert_eq!(request.encode(), bytes.clone());
        }
        if let Ok(reply) = BrokerReply::decode(&bytes) {
            prop_assert_eq!(reply.encode(), bytes);
        }
    }

    #[test]
    fn a_reply_comes_back_as_it_was(
        value in any::<u32>(),
        errno in any::<i32>(),
        reason in ".{0,200}",
        ports in vec(any::<(u16, u16)>(), 0..9),
    ) {
        let note = reason.clone();
        let ports = ports.into_iter().map(|(a, b)| a.min(b)..=a.max(b)).collect();
        let done = BrokerReply::Done { value, note };
        for reply in [done, BrokerReply::Refused { errno, reason }, BrokerReply::Ports(ports)] {
            prop_assert_eq!(BrokerReply::decode(&reply.encode()), Ok(reply));
        }
    }
}

#[test]
fn the_largest_request_fits_a_message() {
    let steer = Steer {
        addresses: vec![Ipv4Addr::LOCALHOST; ADDRESSES_MAX],
        udp_ports: vec![1; PORTS_MAX],
        ethertypes: vec![2; ADDRESSES_MAX],
        ..Steer::default()
    };
    assert!(fits(&steer));
    assert!(BrokerRequest::Steer(steer.clone()).encode().len() <= MESSAGE_BYTES_MAX);
    let beyond = Steer { udp_ports: vec![1; PORTS_MAX + 1], ..steer };
    assert!(!fits(&beyond));
}

#[test]
fn a_claimed_length_beyond_the_limit_is_refused_before_it_is_read() {
    let mut bytes = vec![7, 0, 0];
    bytes.extend(u16::MAX.to_le_bytes());
    bytes.extend(u16::MAX.to_le_bytes());
    assert_eq!(BrokerRequest::decode(&bytes), Err(Malformed::Value("addresses")));
}

#[test]
fn ranges_of_ports_are_bounded_and_in_order() {
    let many = BrokerReply::Ports(vec![1..=2; RANGES_MAX + 1]);
    assert!(many.encode().len() <= MESSAGE_BYTES_MAX);
    assert_eq!(
        BrokerReply::decode(&many.encode()),
        Ok(BrokerReply::Ports(vec![1..=2; RANGES_MAX]))
    );
    let wrong = Err(Malformed::Value("range of ports"));
    assert_eq!(BrokerReply::decode(&[2, 1, 0, 5, 0, 4, 0]), wrong);
    assert_eq!(BrokerReply::decode(&[2, 0xff, 0xff]), Err(Malformed::Value("ranges of ports")));
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    for interface in ["", "..", "a/b", "a b", "eth0\0", "é"] {
        let hello = BrokerRequest::Hello {
            version: VERSION,
            link: "xdp".into(),
            interface: interface.into(),
        };
        assert_eq!(BrokerRequest::decode(&hello.encode()), Err(Malformed::Value("interface")));
    }
}

#[test]
fn a_long_reason_is_cut_at_a_character() {
    let reply = BrokerReply::Refused { errno: 1, reason: "é".repeat(2000) };
    let Ok(BrokerReply::Refused { reason, .. }) = BrokerReply::decode(&reply.encode()) else {
        panic!()
    };
    assert_eq!(reason, "é".repeat(512));
}
