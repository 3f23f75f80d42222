//! Tests of streams to a host that does not control the device, on simulated time.

use crate::device::test_bench::*;
use crate::device::*;
use millstream_wire::chdr::{DataRepr, Packet};

const ELSEWHERE: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 9), 1234);

/// Runs a capture of 250 samples from time 100 on to the other host; returns what it got.
fn captured(raw: bool) -> Vec<Vec<u8>> {
    let mut bench = Bench::new();
    bench.connect();
    bench.open_stream(1 << 30);
    let to = HostAddress { link: 0, socket: ELSEWHERE, raw };
    bench.device.execute(DeviceCommand::Route(RemoteRoute { epid: Epid(STREAM), to }));
    let sent = SentTo::default();
    bench.send_by(witness(&sent));
    for (address, value) in [(0x1018, 250), (0x101C, 0), (0x1020, 100), (0x1024, 0)] {
        bench.write(address, value, None);
    }
    bench.write(0x1014, 1 << 31 | 1, None);
    bench.run(1_000);
    let sent = sent.lock().unwrap();
    let (there, here): (Vec<_>, Vec<_>) = sent.iter().partition(|(to, _)| *to == ELSEWHERE);
    assert!(here.iter().all(|(to, packet)| *to == HOST.socket && packet[6] >> 5 == 4));
    assert_eq!(here.len(), 5, "acknowledgements still come to the host");
    there.into_iter().map(|(_, packet)| packet.clone()).collect()
}

#[test]
fn a_route_takes_every_sample_to_the_other_host_with_or_without_the_headers() {
    let whole = captured(false);
    let parse = |packet: &Vec<u8>| {
        let packet = Packet::parse(packet, Width::W64).unwrap();
        let data = DataRepr::parse(&packet).unwrap();
        ((data.seq, data.timestamp, data.eob), packet.payload().to_vec())
    };
    let (headers, payloads): (Vec<_>, Vec<_>) = whole.iter().map(parse).unzip();
    let want = [(0, Some(100), false), (1, Some(200), false), (2, Some(300), true)];
    assert_eq!(headers, want);
    let samples: Vec<u8> = payloads.concat();
    assert_eq!(samples.len(), 4 * 250);
    assert_eq!(captured(true), payloads, "a datagram has the payload of a packet");
}

#[test]
fn routes_last_until_the_power_fails() {
    let mut bench = Bench::new();
    let to = HostAddress { link: 0, socket: ELSEWHERE, raw: true };
    let route = RemoteRoute { epid: Epid(STREAM), to };
    bench.device.execute(DeviceCommand::Route(route));
    assert_eq!(bench.device.fabric.host(Epid(STREAM)), Some(to));
    bench
        .device
        .execute(DeviceCommand::Route(RemoteRoute { to: HostAddress { link: 9, ..to }, ..route }));
    bench.device.execute(DeviceCommand::PowerCycle(bench.device.keeper));
    assert_eq!(bench.device.fabric.host(Epid(STREAM)), None);
}

#[test]
fn an_endpoint_of_this_device_with_the_same_id_from_before_takes_nothing() {
    let mut bench = Bench::new();
    bench.connect();
    // It had this id of its own in an earlier session, and no route leads to it.
    bench.device.endpoints[1].epid = Epid(STREAM);
    bench.open_stream(1 << 30);
    for (address, value) in [(0x1018, 250), (0x101C, 0), (0x1020, 100), (0x1024, 0)] {
        bench.write(address, value, None);
    }
    bench.write(0x1014, 1 << 31 | 1, None);
    assert_eq!(data(&bench.run(1_000)).len(), 3);
}
