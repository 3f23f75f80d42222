//! `millstream demo`, end to end, and that no part of it outlives it.

use crate::common::{Running, command, eventually, growing, is_alive, millstream, names};
use millstream_dsp::chunks::Chunks;
use std::path::Path;

fn demo(folder: &Path, more: &[&str]) -> (Running, u32) {
    let running = Running::start(command(folder, &[&["demo", "--json"], more].concat()));
    let line = running.line("radio ");
    let number = line.split("process ").nth(1).unwrap().split(' ').next().unwrap();
    (running, number.parse().unwrap())
}

#[test]
fn the_whole_path_decodes_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--duration", "2.2", "--time-scale", "0.125"];
    let (running, radio) = demo(folder.path(), &more);
    let document = running.wait().succeeds().json();
    let results = &document["results"];
    let ledger = &results["ledger"];
    assert_eq!((&ledger["expected"], &ledger["balances"]), (&13_750_000.into(), &true.into()));
    assert_eq!(ledger["delivered"], ledger["expected"], "{ledger}");
    assert_eq!(results["signal"]["uncorrected_packets"], 0);
    assert_eq!(results["radio"]["rx_starved_samples"], 0);
    assert!(results["signal_s"].as_f64() >= Some(2.0), "{results}");
    let stream = std::fs::read(folder.path().join("demo.ts")).unwrap();
    let (packets, rest) = stream.in_chunks::<188>();
    assert!(rest.is_empty() && packets.iter().all(|packet| packet[0] == 0x47));
    assert_eq!(results["signal"]["packets"], packets.len());
    // The picture depends on whether ffmpeg is installed; either way the document reports it.
    let (picture, missing) = (&results["picture"], &results["picture_missing"]);
    assert!(picture == "demo.png" || missing.is_string(), "{results}");
    let files = names(folder.path());
    assert_eq!(
        files,
        if picture.is_null() { vec!["demo.ts"] } else { vec!["demo.png", "demo.ts"] }
    );
    assert!(!is_alive(radio));
}

#[test]
fn less_signal_than_needed_is_a_failure_with_figures() {
    let folder = tempfile::tempdir().unwrap();
    let outcome =
        millstream(folder.path(), &["demo", "--duration", "0.3", "--time-scale", "0.1", "--json"]);
    let document = outcome.fails(1, "s of signal were decoded, but 2 s are needed").json();
    assert_eq!(document["results"]["ok"], false);
    assert_eq!(document["results"]["ledger"]["balances"], true);
}

#[test]
fn a_stream_that_cannot_be_sent_is_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("no.ts"), [0; 400]).unwrap();
    std::fs::write(folder.path().join("empty.ts"), []).unwrap();
    for (ts, part) in [
        ("none.ts", "cannot read the transport stream none.ts: No such file"),
        ("no.ts", "not a transport stream: byte 0 is 0x00"),
        ("empty.ts", "the transport stream is empty"),
    ] {
        let outcome = millstream(folder.path(), &["demo", "--ts", ts]);
        outcome
            .fails(1, &format!("the emulated radio did not start: cannot use antenna `atsc:{ts}`"));
        outcome.fails(1, part);
    }
    assert_eq!(names(folder.path()), ["empty.ts", "no.ts"]);
    millstream(folder.path(), &["demo", "--duration", "1e9"]).fails(1, "give 0.1 to 3600 seconds");
    millstream(folder.path(), &["demo", "--out", "no/x.ts"]).fails(1, "; make its folder first");
}

#[test]
fn no_file_is_written_over_another_of_the_same_demo() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("demo.ts"), [0; 188]).unwrap();
    for (more, part) in [
        (
            ["--ts", "demo.ts"],
            "--out ./demo.ts is the file that --ts transmits: give another --out",
        ),
        (
            ["--picture", "demo.ts"],
            "--out and --picture are both ./demo.ts: give two different files",
        ),
        (
            ["--picture", "./demo.ts"],
            "--out and --picture are both ./demo.ts: give two different files",
        ),
    ] {
        let demo = [&["demo", "--out", "./demo.ts"], &more[..]].concat();
        millstream(folder.path(), &demo).fails(1, part);
    }
    assert_eq!(std::fs::read(folder.path().join("demo.ts")).unwrap(), [0; 188]);
    let demo = ["demo", "--out", "./new.ts", "--picture", "new.ts"];
    millstream(folder.path(), &demo)
        .fails(1, "--out and --picture are both ./new.ts: give two different files");
}

#[test]
fn an_interrupt_ends_both_processes_in_order() {
    let folder = tempfile::tempdir().unwrap();
    // The first may have made a picture.
    let more = ["--duration", "3600", "--time-scale", "0.2", "--force"];
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let (running, radio) = demo(folder.path(), &more);
        growing(&folder.path().join("demo.ts.part"));
        running.signal(signal);
        let document = running.wait().fails(1, "interrupted before the end").json();
        assert_eq!(document["results"]["ledger"]["balances"], true);
        assert!(!is_alive(radio));
        assert!(!names(folder.path()).contains(&"demo.ts.part".to_owned()));
        std::fs::remove_file(folder.path().join("demo.ts")).unwrap();
    }
}

#[test]
fn a_radio_that_is_killed_ends_the_demo_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (running, radio) = demo(folder.path(), &["--duration", "3600", "--time-scale", "0.2"]);
    growing(&folder.path().join("demo.ts.part"));
    // SAFETY: plain system call on a process that the demo has not waited for.
    assert_eq!(unsafe { libc::kill(radio as i32, libc::SIGKILL) }, 0);
    let outcome = running.wait();
    outcome.fails(
        1,
        "the emulated radio ended before the measurement was complete (signal: 9 (SIGKILL))",
    );
    outcome.fails(1, "; the file demo.ts.part contains the data up to that point");
    assert_eq!(names(folder.path()), ["demo.ts.part"]);
}

#[test]
fn a_demo_that_is_killed_takes_its_radio_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let mut demo = command(folder.path(), &["demo", "--duration", "3600", "--time-scale", "0.2"]);
    demo.env("TMPDIR", temporary.path());
    let running = Running::start(demo);
    let line = running.line("radio ");
    let radio = line.split("process ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(is_alive(radio));
    growing(&folder.path().join("demo.ts.part"));
    running.signal(libc::SIGKILL);
    assert_eq!(running.wait().status, None);
    eventually("the end of the radio", || !is_alive(radio));
    assert!(names(temporary.path()).is_empty(), "nothing is left in the temporary folder");
}
