//! The command line itself: help, wrong arguments, and the document of `--json` on every failure.

use crate::common::{address, every_verb, millstream, names};
use std::path::Path;

#[test]
fn every_verb_has_help_and_json() {
    every_verb::has_help_and_json(&millstream_cli::command());
    for verb in ["rx", "run"] {
        let outcome = millstream(Path::new("/"), &[verb, "--help"]);
        assert!(outcome.stdout.contains(".part until it is complete"), "{outcome:?}");
    }
}

#[test]
fn a_wrong_argument_is_named_with_status_2() {
    let folder = Path::new("/");
    let rx = ["rx", "--args", "addr=127.0.0.2", "--out", "x.sc16"];
    for (args, part) in [
        (&[][..], "Usage: millstream"),
        (&["fly"], "unrecognized subcommand 'fly'"),
        (&["doctor", "--apply"], "'doctor' belongs to a group of commands: write `millstream host"),
        (&["bench"], "`bench` is in the laboratory: run `millstream-lab bench …` (package"),
        (&["latency", "timer"], "run `millstream-lab latency …` (package millstream-lab)"),
        (&["lab", "run", "x.toml"], "run `millstream-lab lab …` (package millstream-lab)"),
        (&["radio"], "write `millstream sim radio` (Emulates an E310"),
        (&["run"], "<GRAPH.toml>"),
        (&["find", "--timeout", "0"], "give a number of seconds above 0"),
        (&["find", "--timeout", "-5"], "invalid value '-5' for '--timeout <TIME>'"),
        (&["find", "--addr", "localhost"], "invalid value 'localhost' for '--addr <IPV4>'"),
        (
            &["sim", "radio", "--duration", "-1"],
            "give a number of seconds above 0, such as 0.005 or 5ms",
        ),
        (&["sim", "radio", "--time-scale", "nan"], "give a number above 0"),
        (&["sim", "radio", "--rpc-port", "0"], "give a whole number from 1 to 65535"),
        (&["find", "--discovery-port", "0"], "give a whole number from 1 to 65535"),
        (&["demo", "--rate", "inf"], "give a number above 0"),
        (
            &["rx", "--args", "127.0.0"],
            "is not written as name=value; the known arguments are: addr=IPV4",
        ),
        (&[&rx[..], &["--rate", "-5"]].concat(), "give a number above 0"),
        (&[&rx[..], &["--rate", "10 M"]].concat(), "such as 6.25e6 or 6.25M (k, M or G)"),
        (
            &[&rx[..], &["--rate", "1e6", "--nsamps", "0"]].concat(),
            "give a whole number from 1 to ",
        ),
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
    assert_eq!(
        document["error"],
        "invalid value 'fast' for '--rate <HZ>': give a number above 0, such as 6.25e6 or 6.25M \
         (k, M or G)"
    );
    assert_eq!(document["command"][1], "rx");
}

#[test]
fn every_verb_that_fails_prints_one_document_and_one_reason() {
    let folder = tempfile::tempdir().unwrap();
    let addr = address().to_string();
    let args = format!("addr={addr}");
    let commands = [
        &["inspect", "--json", "none.sc16"][..],
        &["watch", "--json", "--pid", "2147483647"],
        &["view", "--json", "none.sigmf-meta"],
        &["probe", "--json", "--args", &args],
        &["graph", "--json", "blocks", "none"],
        &["demo", "--json", "--ts", "none.ts"],
        &["host", "doctor", "--json", "--interface", "none0"],
        &["graph", "draw", "--json", "none.toml", "--out", "none.svg"],
        &["sim", "fault", "--json", "127.0.0.1:9", "list"],
        &["find", "--json", "--addr", &addr, "--timeout", "20ms"],
        &["sim", "generate", "--json", "--out", "none/x.sc16"],
        &["host", "grant", "--json", "--interface", "none0", "--user", "no such user"],
        &["relay", "--json", "--args", &args, "--rate", "1e6", "--to", "127.0.0.1:9"],
        &["serve", "rtl-tcp", "--json", "--args", &args, "--listen", "127.0.0.1:0"],
        &["host", "net", "--json", "check", "none.toml"],
        &["graph", "plan", "--json", "none.toml"],
        &["sim", "radio", "--json", "--addr", &addr, "--rx-antenna", "flute"],
        &["rx", "--json", "--args", &args, "--rate", "1e6", "--out", "x.sc16"],
        &["run", "--json", "none.toml"],
        &["batch", "run", "--json", "none.toml"],
        &["batch", "list", "--json", "none.toml"],
        &["batch", "table", "--json", "none.toml", "--out", "-"],
        &[
            "batch",
            "map",
            "--json",
            "none.toml",
            "--value",
            "v",
            "--x",
            "x",
            "--y",
            "y",
            "--out",
            "-",
        ],
        &["batch", "split", "--json", "none.toml"],
        &["batch", "task", "--json", "none.toml", "0"],
        &["host", "shield", "--json", "1023", "--", "true"],
        &["graph", "tune", "--json", "none.toml"],
        &["tx", "--json", "--args", &args, "--rate", "1e6", "--in", "none.sc16"],
    ];
    every_verb::fails_with_one_reason(&millstream_cli::command(), folder.path(), &commands);
    assert!(names(folder.path()).is_empty());
}
