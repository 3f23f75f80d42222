use super::*;
use crate::device::endpoint::CreditWindow;
use crate::device::tx_fifo::{FifoSize, TxFifo};
use millstream_wire::chdr::Width;
use millstream_wire::regs::sep;
use std::net::Ipv4Addr;

const SOCKET: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5000);
const HOST: HostAddress = HostAddress { link: 0, socket: SOCKET, raw: false };

fn endpoint(instance: u16) -> Endpoint {
    let fifo = TxFifo::new(FifoSize { bytes: 1008, behind_bytes: 0, packets: 10 }, false);
    Endpoint::new(
        instance,
        Width::W64,
        CreditWindow { bytes: 1000, cautious_bytes: 1000, packets: 10 },
        fifo,
    )
}

fn parts() -> (Fabric, Vec<Endpoint>) {
    parts_with(1)
}

/// Returns nodes that know where host endpoint 1 is.
fn parts_with(links: usize) -> (Fabric, Vec<Endpoint>) {
    let mut fabric = Fabric::new(links, 2);
    fabric.device_id = 77;
    let mut parts = (fabric, (0..2).map(endpoint).collect());
    for link in 0..links {
        ask_from(&mut parts, HostAddress { link, ..HOST }, 1, &[ADVERTISE]);
    }
    parts
}

fn ask(parts: &mut (Fabric, Vec<Endpoint>), epid: u16, hops: &[&[Op]]) -> Option<Vec<Op>> {
    ask_from(parts, HOST, epid, hops)
}

fn ask_from(
    parts: &mut (Fabric, Vec<Endpoint>),
    from: HostAddress,
    epid: u16,
    hops: &[&[Op]],
) -> Option<Vec<Op>> {
    let mut packet = MgmtRepr::request(Epid(epid), 5);
    for hop in hops.iter().copied().chain([&[Op::Nop][..]]) {
        packet.push_hop(hop).unwrap();
    }
    let (reply, to) = answer(parts, packet, from)?;
    assert_eq!((reply.dst_epid, reply.src_epid, reply.seq), (Epid(epid), Epid::NONE, 5));
    assert_eq!(to.socket, from.socket);
    assert_eq!(reply.hops().count(), 1, "a reply holds one hop");
    Some(reply.hops().next().unwrap()[1..].to_vec())
}

fn answer(
    parts: &mut (Fabric, Vec<Endpoint>),
    packet: MgmtRepr,
    from: HostAddress,
) -> Option<(MgmtRepr, HostAddress)> {
    let forwarded = match parts.0.forward(packet, from).unwrap() {
        Forwarded::Endpoint(index, packet) => {
            parts.0.execute(packet, &mut parts.1[index]).unwrap().forwarded
        }
        forwarded => forwarded,
    };
    match forwarded {
        Forwarded::Host(reply, to) => Some((reply, to)),
        Forwarded::Nowhere | Forwarded::Endpoint(..) => None,
    }
}

fn node(answer: Option<Vec<Op>>) -> NodeInfo {
    match answer.as_deref() {
        Some(&[Op::InfoResp(info)]) => info,
        other => panic!("{other:?}"),
    }
}

const WHO: &[Op] = &[Op::InfoReq, Op::Return];
const PASS: &[Op] = &[Op::Nop];
const ADVERTISE: &[Op] = &[Op::Advertise, Op::Return];

#[test]
fn the_topology_is_transport_crossbar_and_two_endpoints() {
    let mut parts = parts();
    let info = node(ask(&mut parts, 1, &[WHO]));
    assert_eq!((info.device_id, info.node), (77, Node::Transport { subtype: 1 }));
    let info = node(ask(&mut parts, 1, &[PASS, WHO]));
    assert_eq!(info.node, Node::Crossbar { ports: 3, transports: 1 });
    for port in 1..=2 {
        let info = node(ask(&mut parts, 1, &[PASS, &[Op::SelDest(port)], WHO]));
        assert_eq!(info.instance, port - 1);
        assert!(matches!(info.node, Node::StreamEndpoint { .. }));
    }
    for port in [0, 3, 0xffff] {
        assert_eq!(ask(&mut parts, 1, &[PASS, &[Op::SelDest(port)], WHO]), None);
    }
}

#[test]
fn answers_through_the_crossbar_leave_for_the_address_that_was_advertised() {
    let mut parts = parts();
    assert!(ask(&mut parts, 9, &[WHO]).is_some(), "the transport turns packets round itself");
    let to_endpoint: &[&[Op]] = &[PASS, &[Op::SelDest(1)], WHO];
    for hops in [&[PASS, WHO], to_endpoint] {
        assert_eq!(ask(&mut parts, 9, hops), None);
    }
    assert_eq!(parts.0.host(Epid(9)), None);
    assert_eq!(ask(&mut parts, 9, &[ADVERTISE]), Some(vec![]));
    for hops in [&[PASS, WHO], to_endpoint] {
        assert!(ask(&mut parts, 9, hops).is_some(), "without a route it leaves by the first link");
    }
    assert_eq!(parts.0.host(Epid(9)), Some(HOST));
    let other = HostAddress { socket: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6000), ..HOST };
    let mut request = MgmtRepr::request(Epid(9), 5);
    [PASS, WHO, PASS].iter().for_each(|hop| request.push_hop(hop).unwrap());
    let (_, to) = answer(&mut parts, request, other).unwrap();
    assert_eq!(to, HOST, "whoever asks");
    parts.0.reset();
    assert_eq!(parts.0.host(Epid(9)), None);
}

#[test]
fn a_read_of_the_crossbar_stops_its_link() {
    let mut parts = parts_with(2);
    assert_eq!(ask(&mut parts, 1, &[PASS, &[Op::CfgRead { address: 1 }, Op::Return]]), None);
    assert_eq!(ask(&mut parts, 1, &[PASS, WHO]), None);
    assert!(ask(&mut parts, 1, &[WHO]).is_some());
    let far = HostAddress { link: 1, ..HOST };
    assert!(ask_from(&mut parts, far, 1, &[PASS, WHO]).is_some());
    assert!(parts.0.is_stopped(0) && !parts.0.is_stopped(1));
    parts.0.reset();
    assert!(!parts.0.is_stopped(0));
}

#[test]
fn an_endpoint_is_reached_by_its_route() {
    let mut parts = parts();
    assert_eq!(parts.0.endpoint_of(Epid(3)), None);
    let hop = [Op::CfgWrite { address: 3, value: 2 }, Op::SelDest(2)];
    let set = [Op::CfgWrite { address: sep::EPID_SELF, value: 3 }, Op::Return];
    ask(&mut parts, 1, &[PASS, &hop, &set]);
    assert_eq!(parts.0.endpoint_of(Epid(3)), Some(1));
    assert_eq!(parts.1[1].epid, Epid(3));
    let bad = [Op::CfgWrite { address: 3, value: 3 }, Op::Return];
    ask(&mut parts, 1, &[PASS, &bad]);
    assert_eq!(parts.0.endpoint_of(Epid(3)), None, "a route to nowhere is none");
}

#[test]
fn with_two_links_the_endpoints_follow_behind_both_and_packets_leave_by_the_route() {
    let mut parts = parts_with(2);
    let far = HostAddress::new(1, SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6000));
    for from in [HOST, far] {
        ask_from(&mut parts, from, 1, &[ADVERTISE]);
        let entry = from.link as u16;
        let ask = |parts: &mut _, hops: &[&[Op]]| node(ask_from(parts, from, 1, hops));
        assert_eq!(ask(&mut parts, &[WHO]).instance, entry);
        let crossbar = ask(&mut parts, &[PASS, WHO]);
        assert_eq!(crossbar.node, Node::Crossbar { ports: 4, transports: 2 });
        assert_eq!(crossbar.instance, entry, "the port by which the request came");
        ask_from(
            &mut parts,
            from,
            1,
            &[PASS, &[Op::CfgWrite { address: 1, value: entry.into() }, Op::Return]],
        );
        assert_eq!(ask(&mut parts, &[PASS, &[Op::SelDest(3)], WHO]).instance, 1);
    }
    for from in [HOST, far] {
        ask_from(&mut parts, from, 9, &[&[Op::Advertise, Op::Return]]);
    }
    for from in [HOST, far] {
        let route = Op::CfgWrite { address: 9, value: from.link as u32 };
        ask(&mut parts, 1, &[PASS, &[route, Op::Return]]);
        assert_eq!(parts.0.host(Epid(9)), Some(from));
    }
    assert_eq!(ask(&mut parts, 1, &[PASS, &[Op::SelDest(4)], WHO]), None);
}

#[test]
fn a_crowd_of_strangers_takes_everybodys_place_as_in_real_radios() {
    let mut parts = parts();
    for epid in 2..=64 {
        ask(&mut parts, epid, &[ADVERTISE]);
    }
    assert_eq!(parts.0.host(Epid(1)), Some(HOST));
    ask(&mut parts, 65, &[ADVERTISE]);
    assert_eq!(parts.0.host(Epid(1)), None);
    ask(&mut parts, 1, &[ADVERTISE]);
    assert_eq!(parts.0.host(Epid(1)), Some(HOST));
}
