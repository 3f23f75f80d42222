//! Standard output and standard error without a reader, on a full disk, or with odd names.

use crate::common::{Radio, Running, address, command, names};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;

/// Runs a command with its streams changed.
fn run(args: &[&str], change: impl FnOnce(&mut std::process::Command)) -> crate::common::Outcome {
    let mut command = command(Path::new("/"), args);
    change(&mut command);
    Running::start(command).wait()
}

/// Commands that write a document and text to standard output.
const WRITING: [&[&str]; 2] = [&["graph", "blocks", "fir", "--json"], &["graph", "blocks", "fir"]];

/// The writing end of a pipe whose reader has gone.
#[expect(clippy::incompatible_msrv, reason = "tests need a newer Rust than the program")]
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_full_standard_output_is_a_failure_with_a_reason() {
    for args in WRITING {
        let outcome = run(args, |command| {
            command.stdout(File::options().write(true).open("/dev/full").unwrap());
        });
        outcome.fails(1, "cannot write to standard output: No space left on device");
    }
}

#[test]
fn a_reader_that_has_read_enough_is_no_failure() {
    for args in WRITING {
        let outcome = run(args, |command| {
            command.stdout(closed_pipe());
        });
        assert_eq!(outcome.succeeds().stderr, "", "{outcome:?}");
    }
}

#[test]
fn nobody_has_to_read_standard_error() {
    let addr = address().to_string();
    let outcome = run(&["sim", "radio", "--addr", &addr, "--duration", "0.1", "--json"], |radio| {
        radio.stderr(closed_pipe());
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

/// Records 20000 samples to `out`, which names `stdout`.
fn record_to(folder: &Path, radio: &Radio, out: &str, stdout: Stdio) -> crate::common::Outcome {
    let args = radio.args();
    let rx = ["rx", "--args", &args, "--rate", "1e6", "--nsamps", "20000", "--format", "sc16"];
    let mut command = command(folder, &[&rx[..], &["--out", out]].concat());
    command.stdout(stdout);
    Running::start(command).wait()
}

/// A pipe holds samples and nothing else.
#[test]
fn samples_on_standard_output_are_alone_there_and_the_summary_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(Path::new("/"), &["--rx-antenna", "noise"]);
    for out in ["-", "/dev/stdout"] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let thread = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
            bytes.len()
        });
        let outcome = record_to(folder.path(), &radio, out, writer.into());
        let summary = "standard output: 1 segment; 20000 samples expected";
        assert!(outcome.succeeds().stderr.contains(summary), "{outcome:?}");
        assert_eq!(thread.join().unwrap(), 4 * 20_000, "{out}");
        // A file that the shell opened to append to, with an earlier line in it.
        let path = folder.path().join("both");
        std::fs::write(&path, "head").unwrap();
        let file = File::options().append(true).open(&path).unwrap();
        let outcome = record_to(folder.path(), &radio, out, file.into());
        assert!(outcome.succeeds().stderr.contains(summary), "{outcome:?}");
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!((&bytes[..4], bytes.len()), (&b"head"[..], 4 + 4 * 20_000), "{out}");
        std::fs::remove_file(&path).unwrap();
    }
    assert!(names(folder.path()).is_empty(), "no file called -, and no part of one");
    let args = radio.args();
    let rx = ["rx", "--args", &args, "--rate", "1e6", "--nsamps", "1", "--out", "-"];
    let run = |more: &[&str]| crate::common::millstream(folder.path(), &[&rx[..], more].concat());
    run(&["--format", "sc16", "--json"]).fails(1, "cannot both go to standard output");
    run(&[]).fails(1, "add --format sc16 or --format cf32");
    radio.stop();
}

#[test]
fn a_generated_recording_can_be_piped() {
    let generate = ["sim", "generate", "--out", "-", "--format", "cf32", "--duration", "0.001"];
    let mut command = command(Path::new("/"), &generate);
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer);
    let running = Running::start(command);
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
    assert_eq!(bytes.len(), 8 * 6250);
    let outcome = running.wait();
    assert!(outcome.succeeds().stderr.contains("standard output: 0.001 s"), "{outcome:?}");
}

#[test]
fn what_a_graph_writes_can_be_piped() {
    let folder = tempfile::tempdir().unwrap();
    let graph = r#"
        [parameters]
        out = {}
        [[block]]
        name = "zeros"
        type = "null_source"
        item = "f32"
        [[block]]
        name = "some"
        type = "head"
        count = 5000
        item = "f32"
        [[block]]
        name = "file"
        type = "file_sink"
        item = "f32"
        path = "${out}"
        "#;
    let graph = format!("{graph}\n[graph]\nconnections = [\"zeros -> some -> file\"]\n");
    std::fs::write(folder.path().join("g.toml"), graph).unwrap();
    let run = ["run", "g.toml", "--set", "out=-"];
    let outcome = Running::start(command(folder.path(), &run)).wait();
    assert!(outcome.succeeds().stdout.bytes().all(|byte| byte == 0), "{outcome:?}");
    assert!(!outcome.stdout.is_empty() && outcome.stderr.contains("zeros"), "{outcome:?}");
    let json = Running::start(command(folder.path(), &[&run[..], &["--json"]].concat())).wait();
    json.fails(1, "cannot both go to standard output");
}
