//! Clients that must not be served, and bytes that are no requests.

use crate::bench::Bench;
use millstream_web::{Hello, ServerOptions, Streams, WebServer};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use tungstenite::Message;

fn status(answer: &str) -> u16 {
    answer.get(9..12).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

#[test]
fn foreign_names_and_pages_are_refused() {
    let bench = Bench::usual();
    let host = |host: &str, path: &str| {
        status(&bench.exchange(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()))
    };
    for path in ["/", "/api/status", "/metrics", "/ws"] {
        assert_eq!(host("rebound.example", path), 421, "{path}");
        assert_eq!(host("localhost.example:80", path), 421, "{path}");
    }
    assert_eq!(host("localhost:1", "/api/status"), 200);
    assert_eq!(bench.refused("host"), 8);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let field = format!("Origin: {origin}\r\n");
        assert_eq!(status(&bench.get("/api/status", &field)), 403, "{origin}");
        let refusal = bench.open_at("/ws", &field).err().unwrap();
        assert_eq!(status(&refusal), 403, "{origin}");
    }
    assert_eq!(bench.refused("origin"), 6);
    let own = format!("Origin: http://{}\r\n", bench.address);
    assert!(bench.open_at("/ws", &own).is_ok());
    // No answer lets another page read it.
    let answer = bench.get("/api/status", &own);
    assert!(!answer.contains("Access-Control-"), "{answer}");
    assert!(answer.contains("Content-Security-Policy: default-src 'none'"), "{answer}");
}

#[test]
fn other_machines_need_the_token() {
    let bench = Bench::new("0.0.0.0:0", false, false);
    let token = bench.server.url().split_once("#token=").unwrap().1.to_owned();
    assert_eq!(status(&bench.get("/", "")), 200, "the page itself is no secret");
    let wrong = "0".repeat(32);
    for path in ["/api/status", "/metrics", "/api/report", "/ws"] {
        assert_eq!(status(&bench.get(path, "")), 401, "{path}");
        assert_eq!(status(&bench.get(&format!("{path}?token={wrong}"), "")), 401, "{path}");
        assert_eq!(status(&bench.get(path, "Authorization: Bearer x\r\n")), 401, "{path}");
    }
    let answer = bench.get(&format!("/api/status?token={token}"), "");
    assert_eq!(status(&answer), 200);
    assert!(answer.contains("\"token\": 12\n"), "{answer}");
    assert_eq!(status(&bench.get("/metrics", &format!("Authorization: Bearer {token}\r\n"))), 200);
    assert!(bench.open_at(&format!("/ws?token={token}"), "").is_ok());
}

#[test]
fn what_is_no_request_is_counted() {
    let bench = Bench::usual();
    let get = "GET /api/status HTTP/1.1\r\nHost: localhost\r\n";
    let cases: [(&str, Vec<u8>, u16); 10] = [
        ("malformed", b"\x16\x03\x01\x02\x00\r\n\r\n".to_vec(), 400),
        ("malformed", format!("{get}Host: localhost\r\n\r\n").into_bytes(), 400),
        ("malformed", b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), 400),
        ("method", b"POST /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), 405),
        ("method", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), 405),
        ("body", format!("{get}Content-Length: 9\r\n\r\n123456789").into_bytes(), 413),
        ("head", format!("{get}X: {}\r\n\r\n", "a".repeat(20_000)).into_bytes(), 431),
        ("head", format!("{get}{}\r\n", "X: y\r\n".repeat(65)).into_bytes(), 431),
        ("path", b"GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), 404),
        ("handshake", b"GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), 426),
    ];
    for (reason, bytes, code) in cases {
        let before = bench.refused(reason);
        assert_eq!(status(&bench.exchange(&bytes)), code, "{reason}");
        assert_eq!(bench.refused(reason), before + 1, "{reason}");
    }
    // A head that never ends is told so, and one that is cut off is forgotten.
    let mut slow = bench.connect();
    slow.write_all(get.as_bytes()).unwrap();
    let mut cut = bench.connect();
    cut.write_all(b"GET / HT").unwrap();
    cut.shutdown(Shutdown::Write).unwrap();
    let mut nothing = Vec::new();
    cut.read_to_end(&mut nothing).unwrap();
    assert!(nothing.is_empty());
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert_eq!((status(&answer), bench.refused("slow")), (408, 1));
}

#[test]
fn frames_that_are_wrong_end_their_connection_only() {
    let bench = Bench::usual();
    let mut good = bench.open();
    let mut client = bench.open();
    client.socket.send(Message::binary(vec![1, 2, 3])).unwrap();
    assert_eq!((client.close_code(), bench.refused("binary")), (1003, 1));
    let mut client = bench.open();
    client.socket.send(Message::text("x".repeat(5000))).unwrap();
    assert_eq!((client.close_code(), bench.refused("long")), (1009, 1));
    // Frames of 2⁶³ bytes, without a mask, with reserved bits, and of no text.
    let frames: [&[u8]; 4] = [
        &[0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
        &[0x81, 0x02, b'{', b'}'],
        &[0xf1, 0x80, 0, 0, 0, 0],
        &[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xff],
    ];
    for frame in frames {
        let mut client = bench.open();
        client.socket.get_mut().write_all(frame).unwrap();
        let code = client.close_code();
        assert!([1002, 1007, 1009].contains(&code), "{code}");
    }
    assert_eq!(bench.refused("frame") + bench.refused("long"), 5);
    let mut client = bench.open();
    for _ in 0..20 {
        client.say(&json!({"type": "fly"}));
    }
    assert!(client.text("error")["text"].as_str().unwrap().contains("this is no message"));
    assert_eq!((client.close_code(), bench.refused("message")), (1008, 1));
    good.say(&json!({"type": "subscribe", "stream": 7}));
    assert!(good.text("error")["text"].as_str().unwrap().contains("there is no stream 7"));
    good.say(&json!({"type": "subscribe", "stream": 0}));
    good.line();
}

#[test]
fn connections_without_a_token_keep_nobody_out() {
    let bench = Bench::new("0.0.0.0:0", false, false);
    let token = bench.server.url().split_once("#token=").unwrap().1.to_owned();
    let mut first = bench.open_at(&format!("/ws?token={token}"), "").unwrap();
    first.say(&json!({"type": "subscribe", "stream": 0, "bins": 64, "lines_per_s": 20}));
    // They send nothing, part of a head, or a request without the token.
    let texts = ["", "GET /api/status HTTP/1.1\r\n", "GET /api/status HTTP/1.1\r\nHost: x\r\n\r\n"];
    let hostile = |number: usize| {
        let mut stream = bench.connect();
        // The server may have closed it already.
        let _ = stream.write_all(texts[number % 3].as_bytes());
        stream
    };
    let mut others: Vec<TcpStream> = (0..200).map(hostile).collect();
    for number in 0..100 {
        let answer = bench.get(&format!("/api/status?token={token}"), "");
        assert_eq!(status(&answer), 200, "{number}: {answer}");
        others.push(hostile(number));
    }
    assert!(bench.open_at(&format!("/ws?token={token}"), "").is_ok());
    first.line();
    // The first statuses are from before most of them came; who waited for long went by itself.
    let gone = |status: &Value| {
        let refused = &status["server"]["refused"];
        ["full", "slow"].iter().filter_map(|why| refused[why].as_u64()).sum::<u64>()
    };
    assert!((0..60).any(|_| gone(&first.text("status")) >= 100), "some of them had to go");
}

#[test]
fn a_client_that_has_no_place_is_told_so() {
    let bench = Bench::usual();
    let _all: Vec<_> = (0..64).map(|_| bench.open()).collect();
    assert_eq!(status(&bench.get("/api/status", "")), 503);
    assert_eq!(status(&bench.open_at("/ws", "").err().unwrap()), 503);
}

#[test]
fn a_taken_port_is_an_error_that_helps() {
    let bench = Bench::usual();
    let address = bench.address.to_string().parse().unwrap();
    let (hello, streams) = (Hello::default(), Streams::new());
    let options = ServerOptions { address, control: false, hello, streams };
    let error = WebServer::start(options).err().unwrap().to_string();
    assert!(error.contains(&bench.address.to_string()) && error.contains("port 0"), "{error}");
}
