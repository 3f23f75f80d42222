use super::*;
use crate::rpc::Identity;
use crate::tcp::{CONNECTIONS_MAX, Server};
use crate::time::{DeviceClock, SampleClock, monotonic_ns};
use rmpv::Value;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

pub(super) struct Running {
    address: std::net::SocketAddr,
    pub counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub fn start() -> Self {
        Self::of(crate::UhdGeneration::Auto)
    }

    pub fn of(uhd: crate::UhdGeneration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let identity = Identity {
            limited: false,
            scene: None,
            uhd,
            personality: crate::DeviceKind::default().personality(),
            serial: "S1".to_owned(),
            name: "n".to_owned(),
            chdr: vec![SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1)],
            rates: crate::ClockRates::ANY,
            width: millstream_wire::chdr::Width::W64,
        };
        let keeper = DeviceClock::new(SampleClock::new(monotonic_ns(), 0, 16e6, 1.0));
        let mpm = Mpm::new(identity, keeper, Arc::default(), channel().0);
        let counters = Arc::new(Counters::default());
        let stop = Arc::new(AtomicBool::new(false));
        let machine = Arc::new(DeviceFaults::new(16e6, 1.0));
        let rpc = Rpc { mpm, counters: counters.clone(), machine };
        let server = Server::new(listener, rpc).unwrap();
        let flag = stop.clone();
        let thread = Some(std::thread::spawn(move || server.run(&flag)));
        Self { address, counters, stop, thread }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn request(msgid: u64, method: &str, args: Vec<Value>) -> Vec<u8> {
    let parts = vec![Value::from(0), Value::from(msgid), Value::from(method), Value::Array(args)];
    let mut out = Vec::new();
    rmpv::encode::write_value(&mut out, &Value::Array(parts)).unwrap();
    out
}

fn call(stream: &mut TcpStream, method: &str, args: Vec<Value>) -> Vec<Value> {
    stream.write_all(&request(9, method, args)).unwrap();
    reply(stream)
}

fn reply(stream: &mut TcpStream) -> Vec<Value> {
    rmpv::decode::read_value(stream).unwrap().as_array().unwrap().clone()
}

pub(super) fn assert_closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset and an orderly end are both a closed connection.
    let _ = stream.read_to_end(&mut rest).map_err(|error| {
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    });
}

#[test]
fn calls_are_answered_however_the_bytes_are_cut() {
    let server = Running::start();
    let mut stream = server.connect();
    let two = [request(1, "get_proto_ver", vec![]), request(2, "get_chdr_width", vec![])].concat();
    for piece in two.chunks(3) {
        stream.write_all(piece).unwrap();
    }
    let answer =
        |id: u64, value: u64| vec![Value::from(1), Value::from(id), Value::Nil, Value::from(value)];
    assert_eq!(reply(&mut stream), answer(1, 256));
    assert_eq!(reply(&mut stream), answer(2, 64));
    assert_eq!(server.counters.snapshot().rpc_calls, 2);
}

#[test]
fn garbage_costs_its_connection_and_one_count() {
    let server = Running::start();
    let mut good = server.connect();
    for garbage in
        [&[0xc1u8; 4][..], b"GET / HTTP/1.1\r\n\r\n", &[0x91; 64], &[0xdd, 255, 255, 0, 0]]
    {
        let before = server.counters.snapshot().rpc_malformed;
        let mut bad = server.connect();
        bad.write_all(garbage).unwrap();
        assert_closed(&mut bad);
        assert_eq!(server.counters.snapshot().rpc_malformed, before + 1, "{garbage:?}");
    }
    assert_eq!(call(&mut good, "get_proto_ver", vec![])[3], Value::from(256));
}

#[test]
fn an_endless_message_is_cut_off() {
    let server = Running::start();
    let mut bad = server.connect();
    // A map that announces fewer items than its limit, followed by slow long strings.
    let mut bytes = vec![0xdc, 0x03, 0xff];
    bytes.extend([[0xda, 0x10, 0x00].as_slice(), &[b'x'; 0x1000]].concat().repeat(5));
    let _ = bad.write_all(&bytes);
    assert_closed(&mut bad);
    assert_eq!(server.counters.snapshot().rpc_malformed, 1);
}

#[test]
fn connections_are_bounded() {
    let server = Running::start();
    let mut held: Vec<_> = (0..CONNECTIONS_MAX).map(|_| server.connect()).collect();
    for stream in &mut held {
        call(stream, "get_proto_ver", vec![]);
    }
    assert_closed(&mut server.connect());
    assert_eq!(server.counters.snapshot().rpc_refused, 1);
    drop(held.pop());
    // The free place is taken as soon as the server has detected the end of the other one.
    let again = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        let mut stream = server.connect();
        stream.write_all(&request(1, "get_proto_ver", vec![])).unwrap();
        rmpv::decode::read_value(&mut stream).is_ok()
    });
    assert!(again);
}

#[test]
fn a_peer_that_does_not_read_is_dropped() {
    let server = Running::start();
    let mut stream = server.connect();
    let many = request(1, "get_device_info", vec![]).repeat(1000);
    // Until both socket buffers are full and the server gives up.
    while server.counters.snapshot().rpc_refused == 0 {
        if stream.write_all(&many).is_err() {
            break;
        }
    }
    assert_closed(&mut stream);
    assert_eq!(server.counters.snapshot().rpc_refused, 1);
}
