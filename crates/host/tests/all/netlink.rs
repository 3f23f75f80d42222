//! The answers of netlink, compared with the changes made by `ip`.

use millstream_host::netlink::{
    LaunchQueue, Netlink, NetlinkError, NetlinkRoute, PortShape, QueueOrder, RouteKind, XdpFeatures,
};
use millstream_testkit::netns::{INTERFACE, Namespace, PairOptions, VethPair};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

fn inside<R: Send>(side: &Namespace, job: impl FnOnce(&mut Netlink) -> R + Send) -> R {
    side.run(|| job(&mut Netlink::open().unwrap()))
}

fn index(side: &Namespace) -> u32 {
    inside(side, |netlink| netlink.interface(INTERFACE).unwrap().index)
}

#[test]
fn an_interface_is_what_it_was_made_as() {
    let Some(pair) = VethPair::new(PairOptions { mtu: 3000, queues: 3 }) else { return };
    pair.left.sh(&format!("ip link set {INTERFACE} address 02:00:00:00:00:07"));
    let veth = inside(&pair.left, |netlink| netlink.interface(INTERFACE).unwrap());
    assert_eq!(veth.mac, Some([2, 0, 0, 0, 0, 7]));
    assert_eq!((veth.mtu, veth.receive_queues, veth.transmit_queues), (3000, 3, 3));
    assert_eq!(veth.kind.as_deref(), Some("veth"));
    assert!(veth.up && veth.running && !veth.loopback && veth.xdp.is_none(), "{veth:?}");
    pair.right.sh(&format!("ip link set {INTERFACE} down"));
    let veth = inside(&pair.left, |netlink| netlink.interface(INTERFACE).unwrap());
    assert!(veth.up && !veth.running, "no carrier: {veth:?}");
    let veth = inside(&pair.right, |netlink| netlink.interface(INTERFACE).unwrap());
    assert!(!veth.up && !veth.running, "{veth:?}");
}

#[test]
fn addresses_have_their_networks() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    pair.left.sh(&format!("ip addr add 10.99.0.9/24 brd + dev {INTERFACE}"));
    let found = inside(&pair.left, |netlink| netlink.addresses().unwrap());
    let index = index(&pair.left);
    let mine: Vec<_> = found.iter().filter(|address| address.interface == index).collect();
    assert_eq!(mine.len(), 2, "{found:?}");
    assert_eq!(
        (mine[0].address, mine[0].prefix, mine[0].secondary),
        (pair.left.address, 24, false)
    );
    assert!(mine[1].secondary, "{mine:?}");
    assert_eq!(mine[1].broadcast, Some(Ipv4Addr::new(10, 99, 0, 255)));
    assert!(found.iter().any(|address| address.address == Ipv4Addr::LOCALHOST));
}

#[test]
fn an_interface_is_switched_and_gets_an_address() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let index = index(&pair.left);
    inside(&pair.left, |netlink| {
        for up in [false, true] {
            netlink.set_up(index, up).unwrap();
            assert_eq!(netlink.interface(INTERFACE).unwrap().up, up);
        }
        netlink.add_address(index, [10, 98, 0, 1].into(), 16).unwrap();
        let has = |found: &millstream_host::netlink::NetlinkAddress| {
            found.address.octets() == [10, 98, 0, 1] && found.prefix == 16
        };
        assert!(netlink.addresses().unwrap().iter().any(has));
        let way = netlink.route_to([10, 98, 200, 7].into(), None).unwrap().unwrap();
        assert_eq!(way.interface, Some(index), "the route to its network came along");
        let twice = netlink.add_address(index, [10, 98, 0, 1].into(), 16).unwrap_err();
        assert!(twice.to_string().contains("add an IPv4 address"), "{twice}");
    });
}

#[test]
fn a_queue_knows_launch_times_or_the_kernel_has_no_such_queue() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let index = index(&pair.left);
    let etf = LaunchQueue::Etf { delta: Duration::from_micros(300) };
    for (queue, shown_as) in [(LaunchQueue::Fq, "qdisc fq 1:"), (etf, "delta 300000")] {
        match inside(&pair.left, |netlink| netlink.launch(index, queue)) {
            Ok(()) => {
                let shown = pair.left.sh(&format!("tc qdisc show dev {INTERFACE}"));
                assert!(shown.contains(shown_as), "{shown}");
                let counts = inside(&pair.left, |netlink| netlink.launched(index).unwrap());
                assert_eq!(counts.unwrap().kind, queue.name());
            }
            Err(NetlinkError::NoQueue(name)) => assert_eq!(name, queue.name()),
            Err(other) => panic!("{other}"),
        }
    }
    inside(&pair.left, |netlink| {
        netlink.unshape(index).unwrap();
        assert!(netlink.launched(index).unwrap().is_none(), "the queue has gone");
    });
}

#[test]
fn packets_are_held_back_where_the_kernel_has_netem() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let index = index(&pair.left);
    match inside(&pair.left, |netlink| netlink.hold_back(index, Duration::from_millis(7))) {
        Ok(()) => {
            let shown = pair.left.sh(&format!("tc qdisc show dev {INTERFACE}"));
            assert!(shown.contains("netem") && shown.contains("delay 7ms"), "{shown}");
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("netem") && error.contains("No such file"), "{error}");
        }
    }
}

#[test]
fn a_port_has_its_rate_and_counts_what_it_sends_and_drops() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let index = index(&pair.left);
    // No IPv6 packets among the counted ones; a kernel without IPv6 has no file.
    let ipv6 = format!("/proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6");
    pair.left.run(|| drop(std::fs::write(ipv6, "1")));
    // A frame of 1500 bytes takes longer than this test: a minute, the longest time of htb.
    let shape =
        |order| PortShape { rate_bps: 160, overhead: 24, least: 84, credit: Duration::ZERO, order };
    let limited = shape(QueueOrder::Arrival { limit: 3 });
    if let Err(error) = inside(&pair.left, |netlink| netlink.shape(index, &limited)) {
        assert!(error.to_string().contains("No such file"), "{error}");
        eprintln!("skipped: this kernel has no htb ({error})");
        return;
    }
    // A receiver that does not exist: its address is set, so that no ARP request is in the way.
    let to = format!("10.99.0.77 lladdr 02:00:00:00:00:77 dev {INTERFACE}");
    pair.left.sh(&format!("ip neigh replace {to}"));
    let send = || {
        pair.left.run(|| {
            let socket = std::net::UdpSocket::bind((pair.left.address, 0)).unwrap();
            (0..10).for_each(|_| drop(socket.send_to(&[0; 1472], "10.99.0.77:9")));
        });
        inside(&pair.left, |netlink| netlink.queued(index).unwrap()).expect("its queue")
    };
    let seen = send();
    assert_eq!(seen.kind, "pfifo");
    let accounted = (u64::from(seen.packets), seen.waiting, seen.drops);
    assert_eq!((seen.bytes, accounted), (1514, (1, 3, 6)), "one leaves, three wait");
    let shown = pair.left.sh(&format!("tc -s -d class show dev {INTERFACE}"));
    assert!(shown.contains("rate 160bit overhead 24"), "{shown}");
    let shown = pair.left.sh(&format!("tc -s qdisc show dev {INTERFACE}"));
    assert!(shown.contains("limit 3p") && shown.contains("dropped 6,"), "{shown}");
    inside(&pair.left, |netlink| netlink.shape(index, &shape(QueueOrder::Priority)).unwrap());
    let seen = send();
    let accounted = (&*seen.kind, seen.packets, seen.waiting, seen.drops);
    assert_eq!(accounted, ("pfifo_fast", 1, 9, 0), "counts begin anew");
    inside(&pair.left, |netlink| {
        netlink.unshape(index).unwrap();
        netlink.unshape(index).unwrap();
        assert_eq!(netlink.queued(index).unwrap(), None);
    });
}

#[test]
fn the_longest_match_is_the_way() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    pair.left.sh(&format!("ip route add 192.0.2.0/24 via {} metric 7", pair.right.address));
    pair.left.sh("ip route add blackhole 192.0.2.128/25");
    pair.left.sh(&format!(
        "ip route add 198.51.100.0/24 nexthop via {} nexthop via 10.99.0.77",
        pair.right.address
    ));
    let index = index(&pair.left);
    inside(&pair.left, |netlink| {
        let mut way = |to: [u8; 4], out| netlink.route_to(to.into(), out).unwrap();
        let route = way([192, 0, 2, 5], None).unwrap();
        assert_eq!((route.gateway, route.interface), (Some(pair.right.address), Some(index)));
        assert_eq!(route.source, Some(pair.left.address));
        assert_eq!(way(pair.right.address.octets(), Some(index)).unwrap().gateway, None);
        assert_eq!(way(pair.left.address.octets(), None).unwrap().kind, RouteKind::Local);
        assert_eq!(way([10, 99, 0, 255], None).unwrap().kind, RouteKind::Broadcast);
        assert_eq!(way([192, 0, 2, 200], None), None, "a blackhole is no way");
        assert_eq!(way([203, 0, 113, 1], None), None);
        let routes = netlink.routes().unwrap();
        let via = |prefix: [u8; 4]| {
            let same = |route: &&NetlinkRoute| route.destination == Ipv4Addr::from(prefix);
            routes.iter().filter(same).collect::<Vec<_>>()
        };
        assert_eq!((via([192, 0, 2, 0])[0].metric, via([192, 0, 2, 0])[0].prefix), (7, 24));
        assert_eq!(via([192, 0, 2, 128])[0].kind, RouteKind::Refused);
        let gateways: Vec<_> = via([198, 51, 100, 0]).iter().map(|route| route.gateway).collect();
        assert_eq!(gateways, [Some(pair.right.address), Some([10, 99, 0, 77].into())]);
        assert!(via([10, 99, 0, 0])[0].gateway.is_none());
    });
}

#[test]
fn a_neighbour_is_resolved_when_it_is_used() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let there = inside(&pair.right, |netlink| netlink.interface(INTERFACE).unwrap().mac);
    let index = index(&pair.left);
    inside(&pair.left, |netlink| {
        let peer = pair.right.address;
        assert_eq!(netlink.neighbour(index, peer).unwrap(), None);
        netlink.use_neighbour(index, peer).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let found = loop {
            let found = netlink.neighbour(index, peer).unwrap().expect("an entry");
            if found.mac.is_some() || Instant::now() > until {
                break found;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(found.mac, there);
    });
    pair.left.sh(&format!("ip neigh replace 10.99.0.50 nud failed dev {INTERFACE}"));
    let failed = inside(&pair.left, |netlink| netlink.neighbour(index, [10, 99, 0, 50].into()));
    assert!(failed.unwrap().is_some_and(|failed| failed.failed && failed.mac.is_none()));
}

#[test]
fn a_driver_says_what_it_can_do_for_xdp() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let index = index(&pair.left);
    let Some(veth) = pair.left.run(|| XdpFeatures::of(index).unwrap()) else {
        eprintln!("skipped: this kernel does not tell (it is older than 6.3)");
        return;
    };
    assert!(veth.native && !veth.zero_copy, "{veth:?}");
    assert_eq!(pair.left.run(|| XdpFeatures::of(99_999)).ok().flatten(), None);
}
