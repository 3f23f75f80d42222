//! File names that are not UTF-8: a verb works with them, or says why not.

use crate::common::{Outcome, address, graph, millstream};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A name with a byte that is no UTF-8.
fn name(end: &str) -> OsString {
    OsStr::from_bytes(&[b"bad\xff", end.as_bytes()].concat()).to_owned()
}

/// Runs a command line in which `@` and an ending is such a name.
fn run(folder: &Path, words: &[&str]) -> Outcome {
    let mut command = crate::common::command(folder, &[]);
    let named = |word: &&str| match word.split_once('@') {
        None => OsString::from(word),
        Some((option, end)) => {
            let mut all = OsString::from(option);
            all.push(name(end));
            all
        }
    };
    command.args(words.iter().map(named));
    crate::common::Running::start(command).wait()
}

#[test]
fn a_name_that_is_no_utf_8_works_or_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let samples = [[100i16, 0]; 1000];
    let bytes: Vec<u8> = samples.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(folder.path().join(name(".sc16")), &bytes).unwrap();
    std::fs::write(folder.path().join(name(".sigmf-data")), &bytes).unwrap();
    let meta = r#"{"global": {"core:datatype": "ci16_le", "core:version": "1.0.0",
        "core:sample_rate": 1e6}, "captures": [{"core:sample_start": 0}], "annotations": []}"#;
    std::fs::write(folder.path().join(name(".sigmf-meta")), meta).unwrap();
    std::fs::copy(graph("spectrum.toml"), folder.path().join(name(".toml"))).unwrap();
    let args = format!("addr={}", address());
    for (words, works) in [
        (&["inspect", "--json", "@.sc16"][..], true),
        (&["inspect", "--json", "@.sigmf-meta"], true),
        (&["sim", "generate", "--json", "--duration", "1ms", "--out", "@-2.sc16"], true),
        (&["graph", "draw", "--json", "@.toml", "--out", "@.svg"], false),
        (&["graph", "plan", "--json", "@.toml"], false),
        (&["graph", "tune", "--json", "@.toml"], false),
        (&["run", "--json", "@.toml"], false),
        (&["run", "--json", "x.toml", "--set", "in=@.sc16"], false),
        (&["view", "--json", "@.sc16"], false),
        (&["tx", "--json", "--args", &args, "--rate", "1e6", "--in", "@.sc16"], false),
        (&["rx", "--json", "--args", &args, "--rate", "1e6", "--out", "@-3.sc16"], false),
        (&["batch", "run", "--json", "@.toml"], false),
        (&["batch", "table", "--json", "@.toml", "--out", "@.csv"], false),
        (&["batch", "list", "--json", "@.toml"], false),
        (&["host", "net", "check", "--json", "@.toml"], false),
        (&["sim", "radio", "--json", "--scene", "@.toml"], false),
        (&["sim", "radio", "--json", "--rx-antenna", "file:@.sc16"], false),
        (&["demo", "--json", "--ts", "@.ts"], false),
    ] {
        let outcome = run(folder.path(), words);
        assert!(matches!(outcome.status, Some(0..=2)), "{words:?}: {outcome:?}");
        let document = outcome.json();
        if works {
            assert!(outcome.succeeds().stdout.contains("bad\u{fffd}"), "{words:?}: {document}");
        } else if outcome.status != Some(0) {
            assert!(document["error"].is_string(), "{words:?}: {document}");
            assert!(!outcome.stderr.contains("one or more arguments"), "{words:?}: {outcome:?}");
        }
    }
    let outcome = run(folder.path(), &["run", "x.toml", "--set", "in=@.sc16"]);
    outcome.fails(2, "'in=bad\u{fffd}.sc16' is not valid UTF-8, which this place needs");
}

#[test]
fn an_argument_without_its_option_is_answered_with_the_option() {
    let folder = tempfile::tempdir().unwrap();
    for (words, part) in [
        (&["run", "g.toml", "in=x.sc16"][..], "write `--set in=x.sc16`"),
        (&["tx", "rec.sigmf-meta"], "write `--in rec.sigmf-meta`"),
        (&["rx", "rec.sigmf-meta"], "write `--out rec.sigmf-meta`"),
    ] {
        millstream(folder.path(), words).fails(2, part);
    }
}
