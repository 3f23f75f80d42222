//! `millstream run`: invalid graphs, parameters and recordings.

use crate::common::{Outcome, Radio, Running, command, graph, growing, millstream, names};
use std::path::Path;

/// Half a second at 6.25 MS/s.
const SAMPLES: usize = 3_125_000;

fn decode(folder: &Path, set: &[&str]) -> Outcome {
    let graph = graph("atsc-rx.toml");
    let mut args = vec!["run", "--json", "--force", &graph];
    set.iter().for_each(|set| args.extend(["--set", set]));
    millstream(folder, &args)
}

fn write_sc16(path: &Path, sample: impl FnMut(usize) -> [i16; 2]) {
    let samples: Vec<u8> = (0..SAMPLES)
        .map(sample)
        .flat_map(|[i, q]| [i.to_le_bytes(), q.to_le_bytes()].concat())
        .collect();
    std::fs::write(path, samples).unwrap();
}

#[test]
fn what_is_no_graph_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("text.toml"), "To whom it may concern\n").unwrap();
    let gain = "[[block]]\nname = \"block\"\ntype = \"gain\"\n";
    std::fs::write(path.join("gain.toml"), gain).unwrap();
    std::fs::write(path.join("bytes.toml"), [0xff; 100]).unwrap();
    for (name, part) in [
        ("none.toml", "none.toml: the file cannot be read: No such file"),
        (".", ".: the file cannot be read: Is a directory"),
        ("gain.toml", "there is no block type `gain`; did you mean `multiply_const`? there are: "),
        ("text.toml", "text.toml: TOML parse error at line 1"),
        ("/dev/zero", "/dev/zero: the file cannot be read: it is larger than 4 MiB, the limit"),
        ("bytes.toml", "bytes.toml: the file cannot be read: stream did not contain valid UTF-8"),
    ] {
        millstream(path, &["run", name]).fails(1, part);
    }
}

#[test]
fn what_cannot_be_set_is_told_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("a.sc16"), [0; 400]).unwrap();
    std::fs::write(path.join("a.wav"), [0; 400]).unwrap();
    std::fs::write(path.join("short.sc16"), [0; 401]).unwrap();
    std::fs::write(path.join("empty.sc16"), []).unwrap();
    let before = names(path);
    for (set, part) in [
        (&[][..], "parameter `in` (recording to read"),
        (&["in=a.sc16"], "has no value: give one with `--set out=VALUE`"),
        (
            &["in=a.sc16", "out=o.ts", "speed=1"],
            "the graph has no parameter `speed`; its parameters are: format,",
        ),
        (&["in=a.sc16", "out"], "`out` is not an assignment: write `NAME=VALUE`"),
        (&["in=a.sc16", "out=o.ts", "rate=fast"], "parameter `rate`: expected a number"),
        (&["in=a.sc16", "out=o.ts", "rate=1e3"], "choose a rate from 5450000 to 64000000 Hz"),
        (&["in=a.sc16", "out=o.ts", "format=u8"], "expected sc16, cf32, cu8, ci8 or auto"),
        (&["in=none.sc16", "out=o.ts"], "cannot read none.sc16: No such file"),
        (&["in=a.wav", "out=o.ts"], "the name of a.wav does not show the sample format"),
        (&["in=short.sc16", "out=o.ts"], "the file is not complete, or it is not a sc16 file"),
        (&["in=empty.sc16", "out=o.ts"], "empty.sc16 is empty"),
        (&["in=a.sc16", "out=no/o.ts"], "; make its folder first"),
        (&["in=a.sc16", "out=a.sc16"], "this graph or another program reads or writes it"),
    ] {
        decode(path, set).fails(1, part).json();
        assert_eq!(names(path), before, "{set:?} left something");
    }
    assert_eq!(std::fs::read(path.join("a.sc16")).unwrap(), [0; 400]);
}

#[test]
fn a_bad_plan_is_told_before_the_graph_is_made() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plan.toml"), "partition = 3").unwrap();
    let graph = graph("atsc-rx.toml");
    for (plan, part) in [
        ("none.toml", "cannot read the plan file none.toml: No such file"),
        ("plan.toml", "cannot use the plan file plan.toml: cannot read the plan"),
    ] {
        let run = ["run", &graph, "--set", "in=none.sc16", "--set", "out=o.ts", "--plan", plan];
        millstream(folder.path(), &run).fails(1, part);
    }
}

#[test]
fn a_recording_without_atsc_fails_and_leaves_an_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let recording = path.join("in.sc16");
    std::fs::write(path.join("out.ts"), "an older one").unwrap();
    let fails = |part: &str| {
        let outcome = decode(path, &["in=in.sc16", "out=out.ts"]);
        let document = outcome.fails(1, part).json();
        assert_eq!(document["results"]["signals"][0]["packets"], 0, "{document}");
        assert_eq!(names(path), ["in.sc16", "out.ts"]);
        assert_eq!(std::fs::read(path.join("out.ts")).unwrap(), b"", "no older result stays");
        std::fs::write(path.join("out.ts"), "an older one").unwrap();
    };
    write_sc16(&recording, |_| [0, 0]);
    fails("no ATSC signal was received: ");
    write_sc16(&recording, |n| {
        let phase = n as f64 * 0.3;
        [(9000.0 * phase.cos()) as i16, (9000.0 * phase.sin()) as i16]
    });
    fails("no ATSC signal was received: ");
    // Multiplicative hash: noise that is the same every time.
    let noise = |n: usize| (n as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29;
    write_sc16(&recording, |n| [noise(2 * n) as i16 / 4, noise(2 * n + 1) as i16 / 4]);
    fails("no ATSC signal was received: ");
    std::fs::write(&recording, [0; 400]).unwrap();
    fails("too few samples to find a signal in: give 0.1 s or more");
}

#[test]
fn a_radio_that_dies_ends_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let picture = concat!("atsc:", env!("CARGO_MANIFEST_DIR"), "/assets/test-picture.ts");
    let radio = Radio::start(path, &["--rx-antenna", picture, "--time-scale", "0.2"]);
    let (graph, args) = (graph("radio-atsc-rx.toml"), format!("args={}", radio.args()));
    let run = ["run", "--json", &graph, "--set", &args, "--set", "out=o.ts"];
    let running = Running::start(command(path, &run));
    growing(&path.join("o.ts.part"));
    radio.running.signal(libc::SIGKILL);
    running.wait().fails(1, "block `radio` failed").fails(1, "stopped answering").json();
    assert_eq!(names(path), ["o.ts.part"]);
}

#[test]
fn a_graph_without_end_ends_in_order_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let radio = Radio::start(path, &["--rx-antenna", "noise", "--time-scale", "0.2"]);
    let (graph, args) = (graph("radio-atsc-rx.toml"), format!("args={}", radio.args()));
    let run = ["run", "--json", &graph, "--set", &args, "--set", "out=o.ts"];
    let running = Running::start(command(path, &run));
    // The first status line.
    running.line(" ");
    running.signal(libc::SIGINT);
    let document = running.wait().succeeds().json();
    let results = &document["results"];
    assert_eq!(results["run"]["interrupted"], true);
    assert_eq!(results["ledgers"][0]["balances"], true);
    assert_eq!(names(path), ["o.ts"]);
    assert_eq!(path.join("o.ts").metadata().unwrap().len(), 0, "noise has no packets");
    assert_eq!(radio.stop()["rx_late_commands"], 0);
}

/// The samples of a file of floats, as the radio's 16-bit integers.
fn on_the_wire(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let halves = bytes.chunks_exact(4).map(|half| {
        let value = f32::from_le_bytes(half.try_into().unwrap());
        ((value * 32767.0).round_ties_even() as i16).to_le_bytes()
    });
    halves.flatten().collect()
}

#[test]
fn a_graph_transmits_its_tone_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let radio = Radio::start(path, &["--tx-out", "sent.sc16"]);
    let (args, tone) = (format!("args={}", radio.args()), graph("radio-tone-tx.toml"));
    let set = ["--set", &args, "--set", "samples=50000", "--set", "tone=-12345.6"];
    let tuned = ["--set", "freq=915e6", "--set", "gain=20"];
    let run = millstream(path, &[&["run", "--json", &tone], &set[..], &tuned].concat());
    let blocks = run.succeeds().json()["results"]["run"]["blocks"].take();
    let block = blocks.as_array().unwrap().iter().find(|block| block["name"] == "radio").unwrap();
    assert_eq!(block["metrics"]["transmitted"], 50_000.0, "{block}");
    radio.stop();
    let own = "[[block]]\nname = \"tone\"\ntype = \"signal_source\"\nrate_hz = 1e6\n\
               frequency_hz = -12345.6\namplitude = 0.5\n[[block]]\nname = \"burst\"\n\
               type = \"head\"\ncount = 50000\n[[block]]\nname = \"file\"\ntype = \"file_sink\"\n\
               item = \"cf32\"\npath = \"tone.cf32\"\n\
               [graph]\nconnections = [\"tone -> burst -> file\"]\n";
    std::fs::write(path.join("own.toml"), own).unwrap();
    millstream(path, &["run", "own.toml"]).succeeds();
    let wanted = on_the_wire(&path.join("tone.cf32"));
    assert_eq!(wanted.len(), 200_000);
    assert!(std::fs::read(path.join("sent.sc16")).unwrap() == wanted);
}

#[test]
fn the_list_of_blocks_has_columns_and_the_ports_of_every_type() {
    let list = millstream(Path::new("/"), &["graph", "blocks"]).succeeds().stdout.clone();
    let rows: Vec<_> = list.lines().take_while(|line| !line.is_empty()).collect();
    assert!(rows.len() > 40, "{list}");
    // The ports begin in one column: only spaces stand directly before it.
    let names = rows.iter().map(|row| row.split(' ').next().unwrap().len()).max().unwrap();
    for row in &rows {
        let (name, rest) = row.split_at(names);
        assert!(!name.trim().contains(' ') && rest.starts_with("  "), "{row}");
        assert!(!row.contains("  - > -"), "no ports: {row}");
    }
}
