//! Brokers that send what they should not, and one that changes its mind.

use crate::{Bench, PATIENCE, options};
use millstream_publish::{NatsLogin, NatsOutlet, Outlet, PublishOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Starts a server that gives every connection to `serve`; returns an outlet to it.
fn server(serve: fn(TcpStream) -> std::io::Result<()>) -> Box<dyn Outlet> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            // The client closes when it likes.
            let _ = serve(stream);
        }
    });
    Box::new(NatsOutlet::new(&address, "radio.test", NatsLogin::default()).unwrap())
}

/// Sends `greeting`, reads CONNECT and PING, and sends `answer`.
fn greet(stream: &TcpStream, greeting: &str, answer: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    (&mut &*stream).write_all(greeting.as_bytes())?;
    let mut line = String::new();
    while line != "PING\r\n" {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    (&mut &*stream).write_all(answer.as_bytes())
}

#[test]
fn a_server_that_sends_without_end_does_not_keep_the_sink_from_its_end() {
    fn after_the_greeting(stream: TcpStream) -> std::io::Result<()> {
        greet(&stream, "INFO {}\r\n", "PONG\r\n")?;
        loop {
            (&mut &stream).write_all(&b"+OK\r\n".repeat(20_000))?;
        }
    }
    fn before_it(mut stream: TcpStream) -> std::io::Result<()> {
        loop {
            stream.write_all(&b"+OK\r\n".repeat(20_000))?;
        }
    }
    for serve in [after_the_greeting, before_it] {
        let settings = PublishOptions { linger: Duration::from_millis(100), ..options() };
        let mut bench = Bench::new(server(serve), settings);
        bench.publish(0..10);
        std::thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        assert_eq!(bench.end().dropped["at_end"], 10);
        assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
    }
}

#[test]
fn answers_to_a_server_that_does_not_read_them_do_not_pile_up() {
    fn asks(stream: TcpStream) -> std::io::Result<()> {
        greet(&stream, "INFO {}\r\n", "PONG\r\n")?;
        loop {
            (&mut &stream).write_all(&b"PING\r\n".repeat(20_000))?;
        }
    }
    let settings = PublishOptions { linger: Duration::ZERO, ..options() };
    let bench = {
        let mut bench = Bench::new(server(asks), settings);
        bench.publish(0..1);
        bench
    };
    bench.until("an error", |ledger| {
        let error = ledger.last_error.as_deref().unwrap_or_default();
        error.starts_with("the other side asks again and again")
    });
    bench.end();
}

#[test]
fn only_answers_to_what_was_sent_acknowledge() {
    // A second INFO in the greeting, and an answer that nobody asked for behind the first.
    fn twice(stream: TcpStream) -> std::io::Result<()> {
        let infos = "INFO {}\r\nINFO {\"max_payload\":1000}\r\n";
        greet(&stream, infos, "PONG\r\nPONG\r\n")?;
        (&stream).read_to_end(&mut Vec::new()).map(drop)
    }
    let settings = PublishOptions { linger: Duration::from_millis(50), ..options() };
    let mut bench = Bench::new(server(twice), settings);
    bench.publish(0..1);
    bench.until("an error", |ledger| {
        let error = ledger.last_error.as_deref().unwrap_or_default();
        error.contains("it answers a PING that was not sent")
    });
    let ledger = bench.end();
    assert_eq!(ledger.acknowledged, 0, "{}", ledger.summary());
}

#[test]
fn an_operation_that_is_none_ends_the_connection_and_acknowledges_once() {
    fn garbles(stream: TcpStream) -> std::io::Result<()> {
        greet(&stream, "INFO {}\r\n", "PONG\r\n")?;
        // The message and its PING.
        greet(&stream, "", "PONG\r\nGARBLED\r\n")?;
        (&stream).read_to_end(&mut Vec::new()).map(drop)
    }
    let mut bench = Bench::new(server(garbles), options());
    bench.publish(0..1);
    bench.until("an acknowledgement", |ledger| ledger.acknowledged == 1);
    bench.publish(1..2);
    bench.until("another one", |ledger| ledger.acknowledged == 2);
    let ledger = bench.end();
    assert_eq!((ledger.offered, ledger.acknowledged), (2, 2), "{}", ledger.summary());
    assert!(ledger.connections >= 2, "{}", ledger.summary());
}

#[test]
fn a_server_may_say_later_what_it_takes() {
    // Right behind the answer of the greeting, so without any further byte.
    fn later(stream: TcpStream) -> std::io::Result<()> {
        greet(&stream, "INFO {}\r\n", "PONG\r\nINFO {\"max_payload\":50}\r\n")?;
        (&stream).read_to_end(&mut Vec::new()).map(drop)
    }
    let mut bench = Bench::new(server(later), options());
    bench.mock.run().unwrap();
    bench.until("a connection", |ledger| ledger.connections == 1);
    std::thread::sleep(Duration::from_millis(300));
    bench.publish(0..1);
    bench.until("a drop", |ledger| ledger.dropped["too_large"] == 1);
    bench.end();
}

#[test]
fn people_hear_once_of_an_outage_and_of_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let outlet = NatsOutlet::new(&address, "radio.test", NatsLogin::default()).unwrap();
    let settings = PublishOptions { linger: Duration::ZERO, ..options() };
    let mut bench = Bench::new(Box::new(outlet), settings);
    bench.publish(0..1);
    bench.until("an error", |ledger| ledger.last_error.is_some());
    let first = format!("nats radio.test at {address}: cannot connect to {address}: ");
    std::thread::sleep(Duration::from_millis(400));
    let notes = bench.publications.take_notes();
    assert!(notes.len() == 1 && notes[0].starts_with(&first), "{notes:?}");
    let Ok(listener) = TcpListener::bind(&address) else { return };
    std::thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        greet(&stream, "INFO {}\r\n", "PONG\r\n")?;
        greet(&stream, "", "PONG\r\n")?;
        (&stream).read_to_end(&mut Vec::new())
    });
    bench.until("all there", |ledger| ledger.acknowledged == 1);
    let end = Instant::now() + PATIENCE;
    let mut notes = Vec::new();
    while notes.is_empty() && Instant::now() < end {
        notes = bench.publications.take_notes();
    }
    let expected = format!("nats radio.test at {address}: the connection is there");
    assert_eq!(notes, [expected]);
    bench.end();
}
