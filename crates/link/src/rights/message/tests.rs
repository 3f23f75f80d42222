//! Messages are decoded as they were encoded, and other bytes do no harm.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::Ipv4Addr;

/// More than a link has.
const ADDRESSES: usize = 64;

/// Every hook.
const HOOKS: [Hook; 3] = [Hook::Auto, Hook::Driver, Hook::Generic];

fn steers() -> impl Strategy<Value = Steer> {
    let lists = (vec(any::<u32>(), 0..=ADDRESSES), vec(any::<u16>(), 0..=300));
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
    let attach = (0..3usize, any::<bool>(), any::<u32>()).prop_map(|(hook, parts, rate_max_hz)| {
        BrokerRequest::Attach(Attach { hook: HOOKS[hook], parts, rate_max_hz })
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
        prop_assert_eq!(BrokerRequest::decode(&bytes).unwrap(), request);
    }

    #[test]
    fn a_request_that_was_cut_or_has_grown_is_refused_whole(
        request in requests(),
        cut in any::<prop::sample::Index>(),
        more in vec(any::<u8>(), 1..9),
    ) {
        let mut bytes = request.encode();
        let short = &bytes[..cut.index(bytes.len())];
        prop_assert!(matches!(BrokerRequest::decode(short), Err(Malformed::Form)));
        bytes.extend(more);
        prop_assert!(matches!(BrokerRequest::decode(&bytes), Err(Malformed::Form)));
    }

    #[test]
    fn what_is_accepted_means_what_it_says(
        request in requests(),
        damage in vec(any::<(prop::sample::Index, u8)>(), 0..3),
    ) {
        let mut bytes = request.encode();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(request) = BrokerRequest::decode(&bytes) {
            prop_assert_eq!(request.encode(), bytes.clone());
        }
        if let Ok(reply) = BrokerReply::decode(&bytes) {
            prop_assert_eq!(reply.encode(), bytes);
        }
    }

    #[test]
    fn a_reply_comes_back_as_it_was(
        hook in 0..3usize,
        number in any::<u32>(),
        errno in any::<i32>(),
        reason in ".{0,200}",
        ports in vec(any::<(u16, u16)>(), 0..9),
    ) {
        let refused = reason.clone();
        let ports = ports.into_iter().map(|(a, b)| a.min(b)..=a.max(b)).collect();
        for reply in [
            BrokerReply::Done,
            BrokerReply::Attached { hook: HOOKS[hook], refused },
            BrokerReply::Queues(number),
            BrokerReply::Refused { errno, reason },
            BrokerReply::Ports(ports),
        ] {
            prop_assert_eq!(BrokerReply::decode(&reply.encode()).unwrap(), reply);
        }
    }
}

#[test]
fn the_largest_request_fits_a_message() {
    let steer = Steer {
        addresses: vec![Ipv4Addr::BROADCAST; ADDRESSES],
        udp_ports: vec![u16::MAX; 4096],
        ethertypes: vec![u16::MAX; ADDRESSES],
        ..Steer::default()
    };
    assert!(BrokerRequest::Steer(steer).encode().len() <= MESSAGE_BYTES_MAX);
}

#[test]
fn a_message_has_one_text() {
    let text = r#"{"Channels":{"count":7}}"#;
    assert!(BrokerRequest::decode(text.as_bytes()).is_ok());
    for other in [
        r#"{"Channels": {"count":7}}"#,
        r#"{"Channels":{"count":7,"more":1}}"#,
        r#"{"Channels":{"count":7,"count":7}}"#,
        r#"{"Channels":{"count":7.0}}"#,
        r#"{"Channels":[7]}"#,
        r#"{"Ports":null}"#,
    ] {
        let refused = BrokerRequest::decode(other.as_bytes());
        assert!(matches!(refused, Err(Malformed::Form)), "{other}");
    }
}

#[test]
fn ranges_of_ports_are_bounded_and_in_order() {
    let most = BrokerReply::Ports(vec![u16::MAX..=u16::MAX; RANGES_MAX]);
    assert!(most.encode().len() <= MESSAGE_BYTES_MAX);
    let (first, last) = (5, 4);
    let wrong = BrokerReply::Ports(vec![1..=2, first..=last]).encode();
    assert!(matches!(BrokerReply::decode(&wrong), Err(Malformed::Value("range of ports"))));
}

#[test]
fn a_vlan_has_twelve_bits() {
    let of = |vlan| BrokerRequest::Steer(Steer { vlan: Some(vlan), ..Steer::default() }).encode();
    assert!(BrokerRequest::decode(&of(4095)).is_ok());
    assert!(matches!(BrokerRequest::decode(&of(4096)), Err(Malformed::Value("vlan"))));
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    for interface in ["", "..", "a/b", "a b", "eth0\0", "é", "a-name-of-16-byt"] {
        let hello = BrokerRequest::Hello {
            version: VERSION,
            link: "xdp".into(),
            interface: interface.into(),
        };
        let refused = BrokerRequest::decode(&hello.encode());
        assert!(matches!(refused, Err(Malformed::Value("interface"))), "{interface}");
    }
}

#[test]
fn a_version_is_read_from_any_first_request() {
    let hello = br#"{"Hello":{"version":9,"link":"xdp","interface":"eth1","more":[]}}"#;
    assert!(BrokerRequest::decode(hello).is_err());
    assert_eq!(version_of(hello), Some(9));
    assert_eq!((version_of(b"\x01\x03\x00"), version_of(b"7")), (None, None));
}

#[test]
fn a_long_reason_is_cut_at_a_character() {
    let reply = BrokerReply::Refused { errno: 1, reason: "é".repeat(2000) };
    let Ok(BrokerReply::Refused { reason, .. }) = BrokerReply::decode(&reply.encode()) else {
        panic!()
    };
    assert_eq!(reason, "é".repeat(512));
}
