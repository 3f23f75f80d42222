//! Standard output and standard error that nobody reads, that are full, or that carry odd names.

use crate::common::{Running, address, command};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;

fn serve_shortly(
    json: &[&str],
    change: impl FnOnce(&mut std::process::Command),
) -> crate::common::Outcome {
    let addr = address().to_string();
    let args = [&["radio", "--addr", &addr, "--duration", "0.1"], json].concat();
    let mut command = command(Path::new("/"), &args);
    change(&mut command);
    Running::start(command).wait()
}

/// The writing end of a pipe whose reader has gone.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_full_standard_output_is_a_failure_with_a_reason() {
    for json in [&["--json"][..], &[]] {
        let outcome = serve_shortly(json, |command| {
            command.stdout(File::options().write(true).open("/dev/full").unwrap());
        });
        outcome.fails(1, "cannot write to standard output: No space left on device");
    }
}

#[test]
fn a_reader_that_has_read_enough_is_no_failure() {
    for json in [&["--json"][..], &[]] {
        let outcome = serve_shortly(json, |command| {
            command.stdout(closed_pipe());
        });
        assert!(outcome.succeeds().stderr.starts_with("ready"), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    }
}

#[test]
fn nobody_has_to_read_standard_error() {
    let outcome = serve_shortly(&["--json"], |command| {
        command.stderr(closed_pipe());
    });
    assert!(outcome.succeeds().json()["results"]["counters"]["rx_packets"] == 0);
}

#[test]
fn a_name_that_is_no_text_is_no_panic() {
    let mut command = command(Path::new("/"), &["run", "--json"]);
    command.arg(OsStr::from_bytes(b"\xff.toml"));
    let outcome = Running::start(command).wait();
    let document = outcome.fails(1, "No such file").json();
    assert_eq!(document["command"][3], "\u{fffd}.toml");
}
