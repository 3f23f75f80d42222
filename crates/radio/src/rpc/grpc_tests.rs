//! Tests of the client and of claims against servers that speak gRPC, well or badly.

use super::super::DeviceClaim;
use super::*;
use millstream_mpm::GrpcServer;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{Sender, channel};
use std::thread;

const PATIENCE: Duration = Duration::from_secs(30);

/// What a server of HTTP/2 sends first: no settings.
const HELLO: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

fn listener() -> (TcpListener, SocketAddrV4) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
    (listener, address)
}

/// Answers `most` calls on a connection, or all of them, and returns their names. A client that
/// does not speak gRPC is hung up on.
fn serve(
    mut stream: TcpStream,
    most: usize,
    told: &Sender<&'static str>,
) -> (Vec<&'static str>, TcpStream) {
    let (mut server, mut calls) = (GrpcServer::new(), Vec::new());
    let mut chunk = [0; 4096];
    loop {
        let mut next = server.next_call();
        while let Ok(Some(call)) = next {
            calls.push(call.method.name);
            let _ = told.send(call.method.name);
            let result = if call.method.name == "claim" { "token".into() } else { true.into() };
            server.answer(call, Ok(result));
            next = server.next_call();
        }
        let mut unsent = Vec::new();
        server.drain_into(&mut unsent);
        let sent = stream.write_all(&unsent);
        let more = next.is_ok() && sent.is_ok() && calls.len() < most;
        match more.then(|| stream.read(&mut chunk)) {
            Some(Ok(count @ 1..)) => server.receive(&chunk[..count]),
            _ => return (calls, stream),
        }
    }
}

/// Serves so many connections, and tells each call.
fn device(
    connections: usize,
    told: Sender<&'static str>,
) -> (SocketAddrV4, thread::JoinHandle<Vec<Vec<&'static str>>>) {
    let (listener, address) = listener();
    let device = thread::spawn(move || {
        let serve = |stream| {
            let told = told.clone();
            thread::spawn(move || serve(stream, usize::MAX, &told).0)
        };
        let streams = listener.incoming().take(connections).flatten();
        let threads: Vec<_> = streams.map(serve).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (address, device)
}

#[test]
fn a_device_that_speaks_grpc_is_noticed_and_claimed_so() {
    // Two of MessagePack, and one in place of each.
    let (told, calls) = channel();
    let (address, device) = device(4, told);
    let claim = DeviceClaim::new(address, "test").unwrap();
    let ready = claim.call("supports_feature", &["gpio_power".into()]).unwrap();
    assert_eq!(ready, Value::from(true));
    while calls.recv_timeout(PATIENCE).expect("it is renewed") != "reclaim" {}
    assert_eq!(claim.lost(), None);
    drop(claim);
    let mut calls = device.join().unwrap();
    calls.sort();
    assert_eq!(calls.pop().unwrap(), ["supports_feature"]);
    let renewed = calls.pop().unwrap();
    assert_eq!((renewed[0], renewed[1], *renewed.last().unwrap()), ("claim", "reclaim", "unclaim"));
    assert!(calls.iter().all(Vec::is_empty), "{calls:?}");
}

#[test]
fn hostile_servers_are_errors_in_bounded_time() {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let literal = |name: &str, value: &str| {
        [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
    };
    // Header 8 of the static table: status 200.
    let head = |fields: &[Vec<u8>]| [vec![0x88], fields.concat()].concat();
    let bomb: Vec<u8> = literal("a", &"x".repeat(120)).repeat(130);
    let cases = [
        ("cannot be decoded", vec![0xFF; 100], 1),
        ("cannot be decoded", frame(0, 0, 1, &[0; 20_000]), 1),
        ("cannot be decoded", frame(0, 0, 77, &[0; 5]), 1),
        ("cannot be decoded", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), 1),
        ("cannot be decoded", [frame(1, 0, 1, &bomb), frame(9, 0, 1, &bomb).repeat(9)].concat(), 1),
        ("cannot be decoded", frame(3, 0, 1, &8u32.to_be_bytes()), 1),
        ("the HTTP status 404", frame(1, 5, 1, &[0x8D]), 1),
        ("the answer has no status", frame(1, 5, 1, &head(&[])), 1),
        ("status 7 of gRPC", frame(1, 5, 1, &head(&[literal("grpc-status", "7")])), 1),
        ("an answer too long", frame(0, 0, 1, &[0; 16_000]), 100),
        ("did not answer", frame(0, 0, 1, &[0; 1]), 1),
        ("did not answer", frame(6, 0, 0, &[0; 8]), 1_000_000),
        ("did not answer", vec![], 1),
    ];
    for (number, (part, bytes, times)) in cases.into_iter().enumerate() {
        let (listener, address) = listener();
        let server = thread::spawn(move || {
            let (mut first, _) = listener.accept().unwrap();
            first.write_all(&HELLO).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
            stream.write_all(&HELLO).unwrap();
            assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            if part == "an answer too long" || bytes.get(3) == Some(&0) {
                stream.write_all(&frame(1, 4, 1, &[0x88])).unwrap();
            }
            let mut sent = (0..times).map(|_| stream.write_all(&bytes));
            while let Some(Ok(())) = sent.next() {}
            drop(sent);
            // Until the client hangs up, so that "no answer" is not "closed".
            while let Ok(1..) = stream.read(&mut [0; 4096]) {}
        });
        let began = Instant::now();
        let mut client = RpcClient::connect(address).unwrap();
        let error =
            client.call("claim", vec!["me".into()], Duration::from_millis(500)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(part) && text.contains("\"claim\""), "{number}: {text}");
        assert!(began.elapsed() < PATIENCE);
        drop(client);
        server.join().unwrap();
    }
}

#[test]
fn a_device_that_only_pings_loses_its_claim_and_no_memory() {
    let (listener, address) = listener();
    let device = thread::spawn(move || {
        // Two of MessagePack, and the first of gRPC, which has the claim.
        let old = [listener.accept().unwrap().0, listener.accept().unwrap().0];
        let keeper = thread::spawn({
            let old = old[0].try_clone().unwrap();
            move || serve(old, 0, &channel().0)
        });
        keeper.join().unwrap();
        old[0].shutdown(std::net::Shutdown::Both).unwrap();
        let (calls, mut stream) = serve(listener.accept().unwrap().0, 1, &channel().0);
        assert_eq!(calls, ["claim"]);
        let _calls = listener.accept().unwrap();
        let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8].repeat(1000);
        // Nothing is read, until the client has had enough.
        while stream.write_all(&ping).is_ok() {}
        // It does not come back to one that is gone.
        drop(listener);
    });
    let claim = DeviceClaim::new(address, "test").unwrap();
    device.join().unwrap();
    let until = Instant::now() + PATIENCE;
    while claim.lost().is_none() {
        assert!(Instant::now() < until, "the loss was never noticed");
        thread::sleep(Duration::from_millis(20));
    }
    let reason = claim.lost().unwrap();
    assert!(reason.contains("broke during the call \"reclaim\""), "{reason}");
}
