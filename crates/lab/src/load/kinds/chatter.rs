//! Two threads that wake each other up.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

/// The size of hackbench's messages.
const BYTES: usize = 100;
/// Messages before the other side's answer.
const BURST: u64 = 20;

/// Sends bursts of messages to a thread of its own, which answers each burst.
pub fn run(ready: impl Fn(), did: impl Fn(u64) -> bool) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("cannot talk through sockets: {error}");
    let (mut here, mut there) = UnixStream::pair().map_err(fail)?;
    let answering = move || -> std::io::Result<()> {
        let mut message = [0; BYTES];
        loop {
            for _ in 0..BURST {
                there.read_exact(&mut message)?;
            }
            there.write_all(&message)?;
        }
    };
    // It inherits this thread's CPUs, and ends when this thread drops its end.
    thread::Builder::new().spawn(answering).map_err(fail)?;
    ready();
    let mut message = [7; BYTES];
    while did(BURST + 1) {
        for _ in 0..BURST {
            here.write_all(&message).map_err(fail)?;
        }
        here.read_exact(&mut message).map_err(fail)?;
    }
    Ok(())
}
