//! The command line itself: help, wrong arguments, and the document of `--json` on every failure.

use crate::common::{address, millstream};
use std::path::Path;

/// Groups whose verbs have little in common.
const GROUPS: [&str; 4] = ["batch", "graph", "sim", "host"];

/// All verbs, as the program reports them: those of a group with its name.
fn verbs() -> Vec<Vec<String>> {
    let commands = millstream_cli::command();
    let mut verbs = Vec::new();
    for verb in commands.get_subcommands() {
        let name = verb.get_name().to_owned();
        verbs.push(vec![name.clone()]);
        if GROUPS.contains(&&*name) {
            let inner = verb.get_subcommands().map(|one| one.get_name().to_owned());
            verbs.extend(inner.map(|one| vec![name.clone(), one]));
        }
    }
    verbs
}

#[test]
fn every_verb_has_help_and_json() {
    let folder = Path::new("/");
    for verb in verbs() {
        let words: Vec<_> = verb.iter().map(String::as_str).collect();
        let outcome = millstream(folder, &[&words[..], &["--help"]].concat());
        assert!(outcome.succeeds().stdout.contains("--json"), "{outcome:?}");
        assert_eq!(outcome.stderr, "");
        let (name, group) = words.split_last().unwrap();
        let all = millstream(folder, &[group, &["--help"]].concat()).stdout;
        let listed = all.lines().any(|line| line.starts_with(&format!("  {name} ")));
        assert!(listed, "{verb:?} is not listed: {all}");
    }
    for verb in ["rx", "run"] {
        let outcome = millstream(folder, &[verb, "--help"]);
        assert!(outcome.stdout.contains(".part until it is complete"), "{outcome:?}");
    }
}

/// Every option with a value, of every verb, with the words that lead to it.
fn options() -> Vec<(Vec<String>, clap::Arg)> {
    fn find(command: &clap::Command, path: &[String], found: &mut Vec<(Vec<String>, clap::Arg)>) {
        for arg in command.get_arguments() {
            if let Some(long) = arg.get_long().filter(|_| arg.get_action().takes_values()) {
                found.push(([path, &[format!("--{long}")]].concat(), arg.clone()));
            }
        }
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            find(verb, &[path, &[verb.get_name().to_owned()]].concat(), found);
        }
    }
    let mut found = Vec::new();
    find(&millstream_cli::command(), &["millstream".to_owned()], &mut found);
    assert!(found.len() > 200, "{}", found.len());
    found
}

/// Rates and times accept their units wherever one is given.
#[test]
fn every_rate_and_every_time_may_have_its_unit() {
    /// Names of options, and words of help texts, that indicate a rate or a time.
    const NAMES: [&str; 6] = ["rate", "step", "offset", "duration", "seconds", "time"];
    const WORDS: [&str; 4] = ["Hz", "per second", "seconds", "a second that"];
    let (mut rates, mut times, mut wrong) = (0, 0, Vec::new());
    for (line, arg) in options() {
        let named = arg.get_value_names().unwrap_or_default()[0].to_string();
        let values: &[&str] = match named.split([',', ':']).next().unwrap_or_default() {
            "HZ" | "PPS" => &["10k", "0.01M"],
            "BIT/S" => &["10M", "0.01G"],
            "TIME" => &["2s", "500ms"],
            // An echo has four units, and a factor has none; a goal is a word.
            "FACTOR" | "DB" | "ECHO" | "GOAL" => continue,
            _ => {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let named = NAMES.contains(&arg.get_long().unwrap_or_default());
                if named || WORDS.iter().any(|word| help.contains(word)) {
                    wrong.push(format!("{line:?} is a rate or a time, and not named like one"));
                }
                continue;
            }
        };
        let count = if values[0].starts_with("10") { &mut rates } else { &mut times };
        *count += 1;
        for value in values {
            let value = value.to_string() + if named == "HZ:DB" { ":-10" } else { "" };
            let line = [&line[..], &[value]].concat();
            let Err(error) = millstream_cli::command().try_get_matches_from(&line) else {
                continue;
            };
            // The verb's other arguments are missing here.
            if error.kind() == clap::error::ErrorKind::ValueValidation {
                wrong.push(format!("{line:?}: {error}"));
            }
        }
    }
    assert!(rates > 15 && times > 15, "{rates} rates, {times} times");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

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

/// What a user sees of a wrong value names the form that is expected, and never shows the words of
/// a parser inside.
#[test]
fn every_wrong_value_is_answered_with_the_form_that_is_expected() {
    const PARSERS: [&str; 12] = [
        "invalid digit",
        "integral type",
        "float literal",
        "address syntax",
        "is not in ",
        "number too",
        "cannot parse",
        "ParseInt",
        "invalid port",
        "from empty string",
        "valid boolean",
        "invalid value for one",
    ];
    const FORMS: [&str; 13] = [
        "give ",
        "possible values",
        "write ",
        "written",
        "a value is required",
        "known",
        "unknown",
        "expected",
        "such as",
        " are: ",
        "the devices are",
        "the widths are",
        "there is no",
    ];
    let mut wrong = Vec::new();
    for (line, arg) in options() {
        for value in
            ["\u{7}junk", "-5", "1.5", "1e20", "4294967296", "99999999999999999999", "0 1", "A", ""]
        {
            let line = [&line[..], &[value.to_owned()]].concat();
            let Err(error) = millstream_cli::command().try_get_matches_from(&line) else {
                continue;
            };
            use clap::error::ErrorKind::{InvalidValue, ValueValidation};
            let text = error.to_string();
            let of_value = matches!(error.kind(), InvalidValue | ValueValidation);
            let essence = text.split("\n\nFor more").next().unwrap_or_default().to_owned();
            let inside = PARSERS.iter().any(|words| essence.contains(words));
            let form = FORMS.iter().any(|words| essence.contains(words));
            if inside || (of_value && !form) {
                wrong.push(format!("{} {value:?}: {essence}", arg.get_id()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The option reports the error of its own value.
#[test]
fn a_negative_value_belongs_to_its_option() {
    for (mut line, _) in options() {
        line.push("-5".to_owned());
        let Err(error) = millstream_cli::command().try_get_matches_from(&line) else { continue };
        let is_stranger = error.kind() == clap::error::ErrorKind::UnknownArgument;
        assert!(!is_stranger, "{line:?}: {error}");
    }
    let outcome = millstream(Path::new("/"), &["find", "--timeout", "-5"]);
    outcome.fails(2, "invalid value '-5' for '--timeout <TIME>'");
}

#[test]
fn a_wrong_argument_is_named_with_status_2() {
    let folder = Path::new("/");
    let rx = ["rx", "--args", "addr=127.0.0.2", "--out", "x.sc16"];
    for (args, part) in [
        (&[][..], "Usage: millstream"),
        (&["fly"], "unrecognized subcommand 'fly'"),
        (&["doctor", "--apply"], "'doctor' belongs to a group of commands: write `millstream host"),
        (&["radio"], "write `millstream sim radio` (Emulates an E310"),
        (&["run"], "<GRAPH.toml>"),
        (&["find", "--timeout", "0"], "give a number of seconds above 0"),
        (&["find", "--addr", "localhost"], "invalid value 'localhost' for '--addr <IPV4>'"),
        (
            &["sim", "radio", "--duration", "-1"],
            "give a number of seconds above 0, such as 0.005 or 5ms",
        ),
        (&["sim", "radio", "--time-scale", "nan"], "give a number above 0"),
        (&["sim", "radio", "--rpc-port", "0"], "give a whole number from 1 to 65535"),
        (&["find", "--discovery-port", "0"], "give a whole number from 1 to 65535"),
        (&["bench", "faults", "--direction", "up"], "possible values: rx, tx, both"),
        (&["bench", "buffer", "--rate", "1"], "<--latency <TIME>|--buffer-samples <N>|--histogram"),
        (&["bench", "rate"], "<--rate <HZ>|--search|--against-uhd>"),
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
        &["view", "--json", "none.sigmf-meta"],
        &["probe", "--json", "--args", &args],
        &["bench", "faults", "--json", "--only", "gremlins"],
        &["bench", "rate", "--json", "--against-uhd", "--uhd-program", "none"],
        &["graph", "--json", "blocks", "none"],
        &["demo", "--json", "--ts", "none.ts"],
        &["host", "doctor", "--json", "--interface", "none0"],
        &["graph", "draw", "--json", "none.toml", "--out", "none.svg"],
        &["sim", "fault", "--json", "127.0.0.1:9", "list"],
        &["find", "--json", "--addr", &addr, "--timeout", "20ms"],
        &["sim", "generate", "--json", "--out", "none/x.sc16"],
        &["host", "grant", "--json", "--interface", "none0", "--user", "no such user"],
        &["lab", "guest", "--json", "--kernel", "none/vmlinuz", "--", "find"],
        &["lab", "--json", "report", "last"],
        &["relay", "--json", "--args", &args, "--rate", "1e6", "--to", "127.0.0.1:9"],
        &["serve", "rtl-tcp", "--json", "--args", &args, "--listen", "127.0.0.1:0"],
        &["latency", "--json", "radio", "--args", &args],
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
    for verb in verbs() {
        let of = |command: &[&str]| {
            let words: Vec<_> = command.iter().filter(|word| **word != "--json").collect();
            words.len() >= verb.len() && verb.iter().zip(words).all(|(word, said)| word == said)
        };
        assert!(commands.iter().any(|command| of(command)), "no command for {verb:?}");
    }
    for command in commands {
        let outcome = millstream(folder.path(), command);
        let document = outcome.fails(1, "millstream: ").json();
        assert!(document.get("results").is_none(), "{document}");
        let reason = document["error"].as_str().unwrap();
        // A note of the searched networks may come before; the reason comes once, and last.
        assert!(outcome.stderr.ends_with(&format!("millstream: {reason}\n")), "{outcome:?}");
        assert_eq!(outcome.stderr.matches("millstream: ").count(), 1, "{outcome:?}");
    }
    // Except the store of `lab`, which has opened it.
    let left = crate::common::names(folder.path());
    assert!(left.iter().all(|name| name == ".state"), "{left:?} is left");
}
