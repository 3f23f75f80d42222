//! Tests of both ends against each other and against hostile bytes, from memory to memory.

use super::*;
use rmpv::Value;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 49601);
const TIMEOUT: Duration = Duration::from_secs(2);

type Outcome = Result<Value, GrpcStatus>;

/// Answers calls, by what they say.
fn answer(call: &GrpcCall) -> Outcome {
    match (call.method.name, &call.arguments[..]) {
        ("set_gain", [_, which, gain]) if which.as_str() == Some("RX1") => Ok(gain.clone()),
        ("get_log_buf", _) => {
            let entry = Value::Map(vec![("text".into(), "x".repeat(100_000).into())]);
            Ok(Value::Array(vec![entry; 5]))
        }
        ("claim", _) => Err(GrpcStatus {
            code: GrpcCode::Internal,
            message: "Runtime error in Claim: Ω Double-claim".to_owned(),
        }),
        _ => Err(GrpcStatus::no_method()),
    }
}

/// Lets the server work; returns its bytes.
fn serve(server: &mut GrpcServer, bytes: &[u8]) -> Result<Vec<u8>, ConnectionFault> {
    let mut unsent = Vec::new();
    let mut outcome = Ok(());
    server.receive(bytes);
    loop {
        match server.next_call() {
            Ok(None) => break,
            Ok(Some(call)) => {
                let result = answer(&call);
                server.answer(call, result);
            }
            Err(fault) => {
                outcome = Err(fault);
                break;
            }
        }
    }
    server.drain_into(&mut unsent);
    outcome.map(|()| unsent)
}

fn drained(client: &mut ClientEnd) -> Vec<u8> {
    let mut unsent = Vec::new();
    client.drain_into(&mut unsent);
    unsent
}

/// Makes a call; bytes travel in pieces of so many.
fn call(
    client: &mut ClientEnd,
    server: &mut GrpcServer,
    (id, method, arguments): (u32, &str, Vec<Value>),
    piece: usize,
) -> Result<Value, String> {
    client.call(id, method, arguments, TIMEOUT).unwrap();
    for _ in 0..1000 {
        let mut answers = Vec::new();
        for bytes in drained(client).chunks(piece) {
            answers.extend(serve(server, bytes).unwrap());
        }
        for bytes in answers.chunks(piece) {
            client.receive(bytes);
            if let Some((answered, outcome)) = client.next_answer().unwrap() {
                assert_eq!(answered, u64::from(id));
                return outcome;
            }
        }
    }
    panic!("no answer to {method}");
}

#[test]
fn calls_are_answered_however_the_bytes_are_cut() {
    for piece in [1, 7, 4096] {
        let (mut client, mut server) = (ClientEnd::new(RpcKind::Grpc, SERVER), GrpcServer::new());
        let gain = |id| (id, "db_0_set_gain", vec!["T".into(), "RX1".into(), 31.5.into()]);
        for id in 0..3 {
            assert_eq!(call(&mut client, &mut server, gain(id), piece), Ok(31.5.into()));
        }
        let refused = call(&mut client, &mut server, (3, "claim", vec!["me".into()]), piece);
        assert_eq!(refused, Err("Runtime error in Claim: Ω Double-claim".to_owned()));
        let missing = call(&mut client, &mut server, (4, "unclaim", vec!["T".into()]), piece);
        assert_eq!(missing, Err("Method not found!".to_owned()));
        // Longer than all windows at their start.
        let log = (5, "get_log_buf", vec!["T".into()]);
        let log = call(&mut client, &mut server, log, piece.max(64)).unwrap();
        assert_eq!(log.as_array().map(Vec::len), Some(5));
        assert_eq!(call(&mut client, &mut server, gain(6), piece), Ok(31.5.into()));
    }
}

#[test]
fn a_call_that_was_given_up_is_not_answered() {
    let (mut client, mut server) = (ClientEnd::new(RpcKind::Grpc, SERVER), GrpcServer::new());
    client.call(0, "claim", vec!["me".into()], TIMEOUT).unwrap();
    let late = serve(&mut server, &drained(&mut client)).unwrap();
    let gain = vec!["T".into(), "RX1".into(), 1.0.into()];
    client.call(1, "db_0_set_gain", gain, TIMEOUT).unwrap();
    client.receive(&late);
    assert_eq!(client.next_answer(), Ok(None));
    let answer = serve(&mut server, &drained(&mut client)).unwrap();
    client.receive(&answer);
    assert_eq!(client.next_answer(), Ok(Some((1, Ok(1.0.into())))));
}

#[test]
fn a_call_that_grpc_does_not_have_costs_only_itself() {
    let (mut client, mut server) = (ClientEnd::new(RpcKind::Grpc, SERVER), GrpcServer::new());
    let fault = client.call(0, "get_last_error", vec![], TIMEOUT).unwrap_err();
    assert_eq!(fault.to_string(), "get_last_error is not a method of gRPC");
    let gain = (1, "db_0_set_gain", vec!["T".into(), "RX1".into(), 2.0.into()]);
    assert_eq!(call(&mut client, &mut server, gain, 4096), Ok(2.0.into()));
}

#[test]
fn a_client_of_messagepack_tells_a_server_of_grpc_by_its_first_bytes() {
    let mut hello = Vec::new();
    let mut server = GrpcServer::new();
    assert!(server.next_call().unwrap().is_none());
    server.drain_into(&mut hello);
    let mut client = ClientEnd::new(RpcKind::Msgpack, SERVER);
    for byte in &hello[..3] {
        client.receive(&[*byte]);
        assert_eq!(client.next_answer(), Ok(None));
    }
    client.receive(&hello[3..]);
    assert_eq!(client.next_answer(), Err(ConnectionFault::SpeaksGrpc));
}

#[test]
fn a_server_of_messagepack_or_anything_else_is_a_fault() {
    let answer = [0x94, 1, 0, 0xC0, 0xC3];
    let http1 = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    for bytes in [&answer.repeat(20)[..], http1, &[0; 64], &[0xFF; 64]] {
        let mut client = ClientEnd::new(RpcKind::Grpc, SERVER);
        client.call(0, "claim", vec!["me".into()], TIMEOUT).unwrap();
        client.receive(bytes);
        let fault = client.next_answer().unwrap_err();
        assert!(matches!(fault, ConnectionFault::Malformed(_)), "{fault}");
    }
}

/// Returns a frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    [&length.to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Returns literal headers (RFC 7541, 6.2.2).
fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

fn request(method: &str) -> Vec<u8> {
    let path = format!("/mpm_server.MpmServerService/{method}");
    headers(&[(":method", "POST"), (":scheme", "http"), (":path", &path), (":authority", "x")])
}

/// Returns a server that has had the preface and settings of a client.
fn greeted() -> GrpcServer {
    let mut server = GrpcServer::new();
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[])].concat();
    serve(&mut server, &preface).unwrap();
    server
}

/// Sends `bytes` until the server closes the connection; returns what it kept to send at most.
fn until_closed(server: &mut GrpcServer, mut bytes: impl FnMut(u32) -> Vec<u8>) -> usize {
    let mut most = 0;
    for n in 0..100_000 {
        match serve(server, &bytes(n)) {
            Ok(unsent) => most = most.max(unsent.len()),
            Err(_) => return most,
        }
    }
    panic!("it goes on for ever");
}

#[test]
fn a_client_that_breaks_the_rules_costs_its_connection() {
    let many = [b'x'; 127];
    let bomb: Vec<u8> = headers(&[("a", std::str::from_utf8(&many).unwrap())]).repeat(100);
    let claims = |n: u32| frame(HEADERS, END_HEADERS, 2 * n + 1, &request("Claim"));
    // A frame longer than allowed; headers that never end; garbage; a frame of nobody.
    until_closed(&mut greeted(), |_| vec![0xFF, 0xFF, 0xFF, DATA, 0, 0, 0, 0, 1]);
    until_closed(&mut greeted(), |n| match n {
        0 => frame(HEADERS, 0, 1, &bomb),
        _ => frame(CONTINUATION, 0, 1, &bomb),
    });
    until_closed(&mut greeted(), |n| frame(DATA, 0, 2 * n + 1, &[0; 10]));
    until_closed(&mut GrpcServer::new(), |_| b"GET / HTTP/1.1\r\n\r\n".to_vec());
    // A body that never ends, in pieces of one byte and of many, and as frames of nothing.
    for piece in [1, 1000] {
        until_closed(&mut greeted(), |n| match n {
            0 => claims(0),
            _ => frame(DATA, 0, 1, &[0; 1000][..piece]),
        });
    }
    until_closed(&mut greeted(), |n| match n {
        0 => claims(0),
        _ => frame(DATA, 0, 1, &[]),
    });
}

#[test]
fn calls_at_a_time_are_bounded_and_resets_free_them() {
    let mut server = greeted();
    let open = |n: u32| frame(HEADERS, END_HEADERS, 2 * n + 1, &request("Claim"));
    for n in 0..100 {
        // Those beyond the limit are refused one by one, until it is too much.
        if serve(&mut server, &open(n)).is_err() {
            assert!(n > 16);
            break;
        }
    }
    let mut server = greeted();
    let mut memory = 0;
    for n in 0..10_000 {
        let reset = frame(RESET, 0, 2 * n + 1, &8u32.to_be_bytes());
        serve(&mut server, &open(n)).unwrap();
        // A peer may be cut off for it, but needs not be.
        let Ok(unsent) = serve(&mut server, &reset) else { return };
        memory = memory.max(unsent.len());
    }
    assert!(memory < 1000, "{memory}");
}

#[test]
fn a_ping_is_answered_and_a_call_behind_it() {
    let mut server = greeted();
    let pong = serve(&mut server, &frame(PING, 0, 0, &[7; 8])).unwrap();
    assert_eq!(pong, frame(PING, 1, 0, &[7; 8]));
    let call = [
        frame(HEADERS, END_HEADERS, 1, &request("NoSuchMethod")),
        frame(DATA, END_STREAM, 1, &[0; 5]),
    ];
    let refused = serve(&mut server, &call.concat()).unwrap();
    assert_eq!(refused[3], HEADERS, "{refused:02X?}");
}

#[test]
fn an_answer_waits_for_the_window_of_the_peer() {
    let mut server = GrpcServer::new();
    let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &no_window].concat();
    serve(&mut server, &preface).unwrap();
    let token = [0, 0, 0, 0, 3, 0x0A, 1, b'T'];
    for n in 0..16 {
        let call = [
            frame(HEADERS, END_HEADERS, 2 * n + 1, &request("GetLogBuf")),
            frame(DATA, END_STREAM, 2 * n + 1, &token),
        ];
        let unsent = serve(&mut server, &call.concat()).unwrap();
        assert!(unsent.len() < 200, "only the head of an answer: {}", unsent.len());
    }
    // What waits is bounded: there is no further call at a time.
    let more = frame(HEADERS, END_HEADERS, 33, &request("GetLogBuf"));
    let refused = serve(&mut server, &more);
    assert!(refused.is_err() || refused.unwrap()[3] == RESET);
}
