//! The command line itself: help, wrong arguments, and the document of `--json` on every failure.

use crate::common::{address, millstream};
use std::path::Path;

const VERBS: [&str; 13] = [
    "bench", "blocks", "demo", "fault", "find", "grant", "lab", "latency", "net", "radio", "rx",
    "run", "tx",
];

#[test]
fn every_verb_has_help_and_json() {
    let folder = Path::new("/");
    for verb in VERBS {
        let outcome = millstream(folder, &[verb, "--help"]);
        assert!(outcome.succeeds().stdout.contains("--json"), "{outcome:?}");
        assert_eq!(outcome.stderr, "");
    }
    for verb in ["rx", "run"] {
        let outcome = millstream(folder, &[verb, "--help"]);
        assert!(outcome.stdout.contains(".part until it is whole"), "{outcome:?}");
    }
    let all = millstream(folder, &["--help"]).stdout;
    let listed = |verb: &&str| all.lines().any(|line| line.starts_with(&format!("  {verb} ")));
    assert!(VERBS.iter().all(listed), "{all}");
}

#[test]
fn a_wrong_argument_is_named_with_status_2() {
    let folder = Path::new("/");
    let rx = ["rx", "--args", "addr=127.0.0.2", "--out", "x.sc16"];
    for (args, part) in [
        (&[][..], "Usage: millstream"),
        (&["fly"], "unrecognized subcommand 'fly'"),
        (&["run"], "<GRAPH.toml>"),
        (&["find", "--timeout-ms", "0"], "0 is not in 1..=60000"),
        (&["find", "--addr", "localhost"], "invalid value 'localhost' for '--addr <IPV4>'"),
        (&["radio", "--duration", "-1"], "give a number above 0"),
        (&["radio", "--time-scale", "nan"], "give a number above 0"),
        (&["radio", "--rpc-port", "0"], "0 is not in 1..=65535"),
        (&["find", "--discovery-port", "0"], "0 is not in 1..=65535"),
        (&["bench", "faults", "--direction", "up"], "possible values: rx, tx, both"),
        (&["bench", "buffer", "--rate", "1"], "<--latency <SECONDS>|--samples <N>|--histogram"),
        (&["bench", "rate"], "<--rate <HZ>|--search|--against-uhd>"),
        (&["demo", "--rate", "inf"], "give a number above 0"),
        (&["rx", "--args", "127.0.0.2"], "is not of the form name=value; known: addr=IPV4"),
        (&[&rx[..], &["--rate", "-5"]].concat(), "give a number above 0"),
        (&[&rx[..], &["--rate", "1e6", "--nsamps", "0"]].concat(), "0 is not in 1.."),
        (
            &[&rx[..], &["--rate", "1", "--nsamps", "1", "--duration", "1"]].concat(),
            "cannot be used",
        ),
        (&[&rx[..], &["--rate", "1", "--format", "u8"]].concat(), "possible values: sc16, cf32"),
    ] {
        let outcome = millstream(folder, args);
        outcome.fails(2, part);
        assert_eq!(outcome.stdout, "", "{args:?}");
    }
}

#[test]
fn a_wrong_argument_is_one_document_too() {
    let outcome = millstream(Path::new("/"), &["rx", "--json", "--rate", "fast"]);
    let document = outcome.fails(2, "For more information").json();
    assert_eq!(document["error"], "invalid value 'fast' for '--rate <HZ>': give a number above 0");
    assert_eq!(document["command"][1], "rx");
}

#[test]
fn every_verb_that_fails_prints_one_document_and_one_reason() {
    let folder = tempfile::tempdir().unwrap();
    let addr = address().to_string();
    let args = format!("addr={addr}");
    for command in [
        &["demo", "--json", "--ts", "none.ts"][..],
        &["bench", "faults", "--json", "--only", "gremlins"],
        &["bench", "rate", "--json", "--against-uhd", "--uhd-program", "none"],
        &["fault", "--json", "127.0.0.1:9", "list"],
        &["find", "--json", "--addr", &addr, "--timeout-ms", "20"],
        &["radio", "--json", "--addr", &addr, "--rx-antenna", "flute"],
        &["rx", "--json", "--args", &args, "--rate", "1e6", "--out", "x.sc16"],
        &["run", "--json", "none.toml"],
    ] {
        let outcome = millstream(folder.path(), command);
        let document = outcome.fails(1, "millstream: ").json();
        assert!(document.get("results").is_none(), "{document}");
        let reason = document["error"].as_str().unwrap();
        assert_eq!(outcome.stderr, format!("millstream: {reason}\n"));
    }
    assert!(crate::common::names(folder.path()).is_empty(), "nothing is left");
}
