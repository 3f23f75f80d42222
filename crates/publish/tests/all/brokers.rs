//! Small brokers, which write down what they get and go away when they are told.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A connection's end, as its broker decides it.
#[derive(Clone, Copy, Debug)]
pub enum Visit {
    /// It takes this many messages and closes, without an acknowledgement of the last ones.
    Takes(usize),
    /// It takes messages until the client closes.
    Stays,
    /// It refuses the first messages, so many, and then stays.
    Refuses(usize),
}

/// What a broker got, in its order.
pub type Got = Receiver<Value>;

/// Serves one connection, and gives each message to a function.
pub type Serve = fn(TcpStream, Visit, &mut dyn FnMut(Value)) -> std::io::Result<()>;

fn document(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// Starts a broker for one connection after another; returns its address and what it gets.
pub fn broker(visits: &'static [Visit], serve: Serve) -> (String, Got) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, got) = channel();
    thread::spawn(move || {
        for visit in visits {
            let Ok((stream, _)) = listener.accept() else { return };
            // The client may close at any time, and the test may have ended.
            let _ = serve(stream, *visit, &mut |document| drop(sender.send(document)));
        }
    });
    (address, got)
}

/// A NATS server.
pub fn nats(stream: TcpStream, visit: Visit, got: &mut dyn FnMut(Value)) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    out.write_all(b"INFO {\"max_payload\":65536}\r\nPING\r\n")?;
    let (mut line, mut taken) = (String::new(), 0);
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["PING"] => out.write_all(b"PONG\r\n")?,
            ["PUB", "radio.test", length] => {
                let mut message = vec![0; length.parse::<usize>().unwrap() + 2];
                input.read_exact(&mut message)?;
                assert!(message.ends_with(b"\r\n"));
                taken += 1;
                match visit {
                    Visit::Refuses(first) if taken <= first => {
                        let what = "Permissions Violation for Publish to \"radio.test\"";
                        out.write_all(format!("-ERR '{what}'\r\n").as_bytes())?;
                        continue;
                    }
                    _ => got(document(&message[..message.len() - 2])),
                }
                if matches!(visit, Visit::Takes(most) if taken == most) {
                    return Ok(());
                }
            }
            _ => assert!(words[0] == "CONNECT" || words[0] == "PONG", "{line}"),
        }
    }
}

/// An MQTT broker.
pub fn mqtt(stream: TcpStream, visit: Visit, got: &mut dyn FnMut(Value)) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut taken = 0;
    loop {
        let mut head = [0];
        input.read_exact(&mut head)?;
        let (mut length, mut shift) = (0, 0);
        loop {
            let mut byte = [0];
            input.read_exact(&mut byte)?;
            length |= usize::from(byte[0] & 0x7F) << shift;
            shift += 7;
            if byte[0] < 0x80 {
                break;
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        match head[0] {
            0x10 => out.write_all(&[0x20, 2, 0, 0])?,
            0x32 | 0x3A => {
                assert_eq!(&body[..12], b"\0\x0aradio/test");
                taken += 1;
                got(document(&body[14..]));
                if matches!(visit, Visit::Takes(most) if taken == most) {
                    return Ok(());
                }
                out.write_all(&[0x40, 2, body[12], body[13]])?;
            }
            0xE0 => return Ok(()),
            other => panic!("packet {other:#x}"),
        }
    }
}
