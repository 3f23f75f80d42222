//! Tests of the management port with clients that speak gRPC.

use super::tests::{Running, assert_closed};
use crate::UhdGeneration;
use millstream_mpm::{ClientEnd, RpcKind};
use rmpv::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

/// A host of UHD 4.11.
struct Host {
    stream: TcpStream,
    end: ClientEnd,
    calls: u32,
}

impl Host {
    fn of(server: &Running) -> Self {
        let stream = server.connect();
        let Ok(SocketAddr::V4(address)) = stream.peer_addr() else { panic!("not IPv4") };
        Self { stream, end: ClientEnd::new(RpcKind::Grpc, address), calls: 0 }
    }

    fn call(&mut self, method: &str, arguments: &[Value]) -> Result<Value, String> {
        self.calls += 1;
        let timeout = Duration::from_secs(2);
        self.end.call(self.calls, method, arguments.to_vec(), timeout).unwrap();
        loop {
            let mut unsent = Vec::new();
            self.end.drain_into(&mut unsent);
            self.stream.write_all(&unsent).unwrap();
            if let Some((id, outcome)) = self.end.next_answer().unwrap() {
                assert_eq!(id, u64::from(self.calls));
                return outcome;
            }
            let mut chunk = [0; 4096];
            let count = self.stream.read(&mut chunk).unwrap();
            assert_ne!(count, 0, "the server has closed the connection in {method}");
            self.end.receive(&chunk[..count]);
        }
    }
}

#[test]
fn a_host_of_uhd_4_11_is_told_its_version_on_the_same_port() {
    for uhd in [UhdGeneration::Auto, UhdGeneration::V4_11] {
        let server = Running::of(uhd);
        let mut host = Host::of(&server);
        let token = host.call("claim", &["UHD".into()]).unwrap();
        let version = |host: &mut Host| host.call("get_mpm_compat_num", &[]).unwrap().to_string();
        assert_eq!(version(&mut host), "[7, 0]");
        assert_eq!(host.call("get_proto_ver", &[]), Ok(0x0200.into()));
        assert_eq!(host.call("reclaim", std::slice::from_ref(&token)), Ok(true.into()));
        let gain = [token.clone(), "RX1".into(), 30.0.into()];
        assert_eq!(host.call("db_0_set_gain", &gain), Ok(30.0.into()));
        let map = Value::Map(vec![("mgmt_addr".into(), "127.0.0.1".into())]);
        assert_eq!(host.call("init", &[token.clone(), map]), Ok(true.into()));
        let links = host.call("get_chdr_link_options", &[token.clone(), "udp".into()]).unwrap();
        assert!(links.to_string().contains("ipv4"), "{links}");
        assert_eq!(host.call("unclaim", &[token]), Ok(true.into()));
        assert_eq!(server.counters.snapshot().rpc_call_errors, 0);
    }
}

#[test]
fn refusals_have_the_texts_of_mpm() {
    let server = Running::start();
    let (mut host, mut other) = (Host::of(&server), Host::of(&server));
    let token = host.call("claim", &["UHD".into()]).unwrap();
    let second = other.call("claim", &["me".into()]).unwrap_err();
    assert!(second.starts_with("Runtime error in Claim: Double-claim"), "{second}");
    for (method, arguments, text) in [
        ("reclaim", vec![Value::from("0123456789abcdef")], "Invalid token"),
        ("db_7_set_gain", vec!["wrong".into(), "RX1".into(), 1.0.into()], "Invalid token"),
        (
            "db_7_set_gain",
            vec![token.clone(), "RX1".into(), 1.0.into()],
            "Invalid db_idx: 7 (valid range: 0-0)",
        ),
        ("dio_get_voltage_level", vec![token.clone(), "A".into()], "Method not found!"),
        (
            "set_clock_source",
            vec![token.clone(), "moon".into()],
            "Runtime error in SetClockSource: source moon is neither internal nor external",
        ),
    ] {
        assert_eq!(other.call(method, &arguments), Err(text.to_owned()), "{method}");
    }
    assert_eq!(server.counters.snapshot().rpc_call_errors, 6);
    assert_eq!(host.call("reclaim", &[token]), Ok(true.into()), "nobody was disturbed");
}

#[test]
fn a_device_of_uhd_4_11_speaks_first_and_an_older_one_closes_a_connection_of_grpc() {
    let server = Running::of(UhdGeneration::V4_11);
    let mut head = [0; 4];
    server.connect().read_exact(&mut head).unwrap();
    assert_eq!((head[0], head[3]), (0, 4), "SETTINGS");
    // A call by MessagePack costs its connection there.
    let mut old = server.connect();
    let call = [0x94, 0, 1, 0xA5, b'c', b'l', b'a', b'i', b'm', 0x91, 0xA1, b'x'];
    old.write_all(&call.repeat(3)).unwrap();
    assert_closed(&mut old);
    assert_eq!(server.counters.snapshot().rpc_malformed, 1);
    let server = Running::of(UhdGeneration::V4_9);
    let mut new = server.connect();
    new.write_all(PREFACE).unwrap();
    assert_closed(&mut new);
    assert_eq!(server.counters.snapshot().rpc_malformed, 1);
}

/// Returns a frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[test]
fn hostile_clients_cost_their_connection_and_one_count() {
    let server = Running::start();
    let mut good = Host::of(&server);
    let path = b"/mpm_server.MpmServerService/Claim";
    // Static names (RFC 7541): POST, http; a literal path.
    let head = [&[0x83, 0x86, 0x04, path.len() as u8], &path[..]].concat();
    let body = [frame(1, 4, 1, &head), frame(0, 0, 1, &[0; 10_000]).repeat(3)].concat();
    for bytes in [
        // A frame longer than allowed, and one that nobody may send.
        vec![0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 1],
        frame(0, 0, 1, &[0; 100]),
        // Headers that never end, and a request that never ends.
        [frame(1, 0, 1, &head), frame(9, 0, 1, &[0; 16_000]).repeat(8)].concat(),
        body,
        b"this is not a frame".repeat(100),
    ] {
        let before = server.counters.snapshot().rpc_malformed;
        let mut bad = server.connect();
        // The server may be quicker than the rest of it.
        let _ = bad.write_all(&[PREFACE, &bytes].concat());
        assert_closed(&mut bad);
        assert_eq!(server.counters.snapshot().rpc_malformed, before + 1);
    }
    assert_eq!(good.call("get_proto_ver", &[]), Ok(0x0200.into()));
}

#[test]
fn half_a_preface_waits_and_holds_up_nobody() {
    let server = Running::start();
    let mut half = server.connect();
    half.write_all(&PREFACE[..10]).unwrap();
    let mut host = Host::of(&server);
    assert_eq!(host.call("get_proto_ver", &[]), Ok(0x0200.into()));
    half.write_all(&PREFACE[10..]).unwrap();
    let mut head = [0; 4];
    half.read_exact(&mut head).unwrap();
    assert_eq!(head[3], 4, "SETTINGS");
    assert_eq!(server.counters.snapshot().rpc_malformed, 0);
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let server = Running::start();
    let mut stream = server.connect();
    stream.write_all(PREFACE).unwrap();
    // Until both socket buffers are full of acknowledgements and the server gives up.
    let pings = frame(6, 0, 0, &[0; 8]).repeat(1000);
    while server.counters.snapshot().rpc_refused == 0 {
        if stream.write_all(&pings).is_err() {
            break;
        }
    }
    assert_closed(&mut stream);
    assert_eq!(server.counters.snapshot().rpc_refused, 1);
}
