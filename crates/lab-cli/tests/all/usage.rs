//! The command line itself: help, wrong arguments, and the document of `--json` on every failure.

use crate::common::every_verb;
use crate::common::{Running, address, command, millstream, names};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[test]
fn what_takes_minutes_says_so_in_its_help() {
    for verb in ["packets", "atsc", "convert", "graph", "faults"]
        .map(|name| ["bench", name])
        .into_iter()
        .chain(["radio", "udp", "link", "port"].map(|name| ["latency", name]))
    {
        let help = millstream(Path::new("/"), &[verb[0], verb[1], "--help"]);
        let help = help.succeeds().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("minute"), "{verb:?}: {help}");
    }
}

#[test]
fn every_verb_has_help_and_json() {
    every_verb::has_help_and_json(&millstream_lab_cli::command());
}

#[test]
fn a_wrong_argument_is_named_with_status_2() {
    for (args, part) in [
        (&["bench", "faults", "--direction", "up"][..], "possible values: rx, tx, both"),
        (&["bench", "buffer", "--rate", "1"], "<--latency <TIME>|--buffer-samples <N>|--histogram"),
        (&["bench", "rate"], "<--rate <HZ>|--search|--against-uhd>"),
        (&["timer"], "write `millstream-lab latency timer`"),
    ] {
        let outcome = millstream(Path::new("/"), args);
        outcome.fails(2, part);
        assert_eq!(outcome.stdout, "", "{args:?}");
    }
}

#[test]
fn the_help_shows_the_laboratory_alone_and_the_verbs_of_millstream_run_all_the_same() {
    let help = millstream(Path::new("/"), &["--help"]).succeeds().stdout.clone();
    for verb in ["bench", "latency", "lab"] {
        assert!(help.contains(&format!("\n  {verb} ")), "{help}");
    }
    assert!(!help.contains("\n  sim ") && !help.contains("\n  rx "), "{help}");
    assert!(millstream(Path::new("/"), &["sim", "--help"]).succeeds().stdout.contains("radio"));
}

#[test]
fn every_verb_that_fails_prints_one_document_and_one_reason() {
    let folder = tempfile::tempdir().unwrap();
    let args = format!("addr={}", address());
    let commands = [
        &["bench", "faults", "--json", "--only", "gremlins"][..],
        &["bench", "rate", "--json", "--against-uhd", "--uhd-program", "none"],
        &["lab", "guest", "--json", "--kernel", "none/vmlinuz", "--", "find"],
        &["lab", "--json", "report", "last"],
        &["latency", "--json", "radio", "--args", &args],
    ];
    every_verb::fails_with_one_reason(&millstream_lab_cli::command(), folder.path(), &commands);
    // Except the store of `lab`, which has opened it.
    let left = names(folder.path());
    assert!(left.iter().all(|name| name == ".state"), "{left:?} is left");
}

#[test]
fn a_name_that_is_no_utf_8_works() {
    let folder = tempfile::tempdir().unwrap();
    let name =
        |option: &str| OsStr::from_bytes(&[option.as_bytes(), b"bad\xff"].concat()).to_owned();
    let mut list = command(folder.path(), &["lab", "list", "--json"]);
    list.arg("--store").arg(name(""));
    let outcome = Running::start(list).wait();
    assert!(outcome.succeeds().stdout.contains("bad\u{fffd}"), "{outcome:?}");
    let mut report = command(folder.path(), &["lab", "report", "--json", "last"]);
    report.arg("--store").arg(name("")).arg("--out").arg(name("page-"));
    let outcome = Running::start(report).wait();
    assert!(outcome.json()["error"].is_string(), "{outcome:?}");
    assert!(!outcome.stderr.contains("one or more arguments"), "{outcome:?}");
}
