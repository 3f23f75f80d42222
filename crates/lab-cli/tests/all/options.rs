//! The options of all commands, as the program reports them: one spelling for each kind, one
//! meaning for each name, and a page that lists them.

use clap::Command;
use clap::error::ErrorKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Value names that several options have, and the form of such a value.
const KINDS: [(&str, &str); 30] = [
    ("TIME", "a length of time: `5s`, `200us`, `1min 30s`; without a unit in seconds"),
    ("HZ", "a sample rate or frequency: `6.25e6`, `6.25M`, `100k`"),
    ("PPS", "packets per second: `200k`"),
    ("BIT/S", "bits per second: `10G`"),
    ("N", "a number; for samples and packets also `10M`, `1e6`"),
    ("BYTES", "a size in bytes"),
    ("MIB", "an amount of memory in MiB"),
    ("DEVICE_TIME", "a time of the device: `12.5s` on its clock, `+2s` from now, or its ticks"),
    ("DB", "a ratio in decibels"),
    ("PPM", "a number in parts per million: `20`"),
    ("PERCENT", "a percentage: `5`"),
    ("FACTOR", "a factor: `0.5`"),
    ("SHARE", "a fraction: `0.8`"),
    ("FILE", "the path of a file"),
    ("FOLDER", "the path of a folder"),
    ("PROGRAM", "the path of a program"),
    ("CPU", "the number of one CPU"),
    ("CPUS", "a set of CPUs: `0-3,8`"),
    ("CLASS", "a scheduling class: `other`, `fifo:50`, `rr:50`"),
    ("ARGS", "[device arguments](#device-arguments)"),
    ("LINK", "[a link](links.md)"),
    ("INTERFACE", "a network interface: `eth1`"),
    ("IPV4", "an IP address: `192.168.10.2`"),
    ("PORT", "a UDP or TCP port"),
    ("FORMAT", "a sample format: `sc16`, `cf32`"),
    ("DIRECTION", "a direction of samples: `rx`, `tx`, `both`"),
    ("NAME=VALUE", "a parameter of a graph: `rate=10M`"),
    ("NAME", "a name"),
    ("TEXT", "any text"),
    ("PID", "the number of a process"),
];

/// Retired spellings, each with its replacement.
const OLD: [(&str, &str); 36] = [
    ("time", "duration"),
    ("seconds", "duration"),
    ("budget", "duration"),
    ("check-budget", "check-duration"),
    ("time-ms", "duration"),
    ("measure-ms", "measure"),
    ("check-ms", "check-duration"),
    ("interval-us", "interval"),
    ("interval-ms", "duration"),
    ("period-us", "interval"),
    ("timeout-ms", "timeout"),
    ("limit", "timeout"),
    ("threshold-us", "explain-above"),
    ("explain-above-us", "explain-above"),
    ("handicap-us", "handicap"),
    ("latency-max", "max-latency"),
    ("max", "max-rate"),
    ("repeats", "repeat"),
    ("repetitions", "repeat"),
    ("trials", "repeat"),
    ("samples", "nsamps, repeat or buffer-samples"),
    ("channels", "channel, streams or queues"),
    ("links", "link"),
    ("fifo", "class fifo:N"),
    ("host-cpu", "cpu"),
    ("mbit", "link-rate"),
    ("bulk-bytes", "bulk-size"),
    ("locked-mib", "locked"),
    ("no-peer", "no-gnuradio"),
    ("kernels", "stage"),
    ("items", "item"),
    ("shapes", "shape"),
    ("pairs", "pair"),
    ("ports", "port"),
    ("addresses", "network"),
    ("svg", "picture or out"),
];

/// Columns of a page.
const PAGE_COLUMNS: usize = 120;

/// Lines that fit a terminal of a usual height twice over.
const HELP_LINES: usize = 60;

/// Every visible option: the command, its long and short name, its kind; `None` for a switch.
struct Found {
    command: String,
    long: String,
    short: Option<char>,
    kind: Option<String>,
}

/// The value name without the marks for several values or for file types.
fn kind(value_name: &str) -> String {
    let one = value_name.strip_suffix(",…").unwrap_or(value_name);
    if one.starts_with("FILE.") { "FILE".to_owned() } else { one.to_owned() }
}

fn walk(command: &Command, path: &str, visit: &mut impl FnMut(&str, &Command)) {
    visit(path, command);
    let seen = |verb: &&Command| verb.get_name() != "help" && !verb.is_hide_set();
    for verb in command.get_subcommands().filter(seen) {
        walk(verb, format!("{path} {}", verb.get_name()).trim_start(), visit);
    }
}

fn walk_both(visit: &mut impl FnMut(&str, &Command)) {
    walk(&millstream_cli::command(), "", visit);
    walk(&millstream_lab_cli::command(), "", visit);
}

fn options() -> Vec<Found> {
    let mut found = Vec::new();
    walk_both(&mut |path, command| {
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let Some(long) = arg.get_long().map(str::to_owned) else { continue };
            let takes = arg.get_action().takes_values();
            let names = || arg.get_value_names().unwrap_or_default();
            let kind = takes.then(|| names().first().map_or_else(String::new, |name| kind(name)));
            found.push(Found { command: path.to_owned(), long, short: arg.get_short(), kind });
        }
    });
    assert!(found.len() > 250, "{}", found.len());
    found
}

#[test]
fn an_option_means_the_same_wherever_it_is_given() {
    let mut kinds: BTreeMap<String, BTreeMap<Option<String>, Vec<String>>> = BTreeMap::new();
    let (mut longs, mut shorts) = (BTreeMap::new(), BTreeMap::new());
    for Found { command, long, short, kind } in options() {
        assert_ne!(kind.as_deref(), Some(""), "`{command} --{long}` has no name of its value");
        let old = OLD.iter().find(|(old, _)| *old == long);
        let new = old.map(|(_, new)| new);
        assert_eq!(new, None, "`{command} --{long}` is an old spelling");
        assert_eq!(*longs.entry(long.clone()).or_insert(short), short, "--{long} is not always so");
        if let Some(short) = short {
            assert_eq!(shorts.entry(short).or_insert(long.clone()), &long, "-{short} has two");
        }
        kinds.entry(long).or_default().entry(kind).or_default().push(command);
    }
    let several: Vec<_> = kinds.iter().filter(|(_, kinds)| kinds.len() > 1).collect();
    assert!(several.is_empty(), "options that take different values: {several:#?}");
}

#[test]
fn every_verb_that_writes_a_file_which_its_user_names_has_force() {
    const WRITTEN: [&str; 4] = ["out", "picture", "sent", "tx-out"];
    let mut longs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Found { command, long, .. } in options() {
        longs.entry(command).or_default().insert(long);
    }
    let writes = |longs: &BTreeSet<String>| WRITTEN.iter().any(|name| longs.contains(*name));
    let writers: Vec<_> = longs.iter().filter(|(_, longs)| writes(longs)).collect();
    assert!(writers.len() >= 12, "{writers:?}");
    for (command, longs) in writers {
        assert!(longs.contains("force"), "`{command}` has no --force");
    }
    assert!(longs["run"].contains("force"), "a graph writes files, too");
}

/// A row of the table, on as many lines as necessary, each of which names the value.
fn row(value: &str, written: &str, options: &[String]) -> String {
    let again = format!("| {value} | as above | ");
    let mut text = format!("| {value} | {written} | ");
    let mut column = text.chars().count();
    for (at, option) in options.iter().enumerate() {
        let comma = if at + 1 < options.len() { ", " } else { "" };
        if column + option.chars().count() + comma.len() + 2 > PAGE_COLUMNS {
            text = format!("{} |\n{again}", text.trim_end());
            column = again.chars().count();
        }
        text += option;
        text += comma;
        column += option.chars().count() + comma.len();
    }
    text + " |\n"
}

/// The table of the page, from the program.
fn table() -> String {
    let mut by_kind: BTreeMap<Option<String>, BTreeMap<String, String>> = BTreeMap::new();
    for Found { long, short, kind, .. } in options() {
        let short = short.map_or_else(String::new, |short| format!("`-{short}` "));
        let shown = format!("{short}`--{long}`");
        by_kind.entry(kind).or_default().insert(long, shown);
    }
    let mut taken = |kind: Option<&str>| -> Vec<String> {
        by_kind.remove(&kind.map(str::to_owned)).unwrap_or_default().into_values().collect()
    };
    let mut text =
        String::from("| value | how it is written | options that take it |\n| --- | --- | --- |\n");
    for (name, written) in KINDS {
        let options = taken(Some(name));
        assert!(!options.is_empty(), "no option takes {name}");
        text += &row(&format!("`{name}`"), written, &options);
    }
    let switches = taken(None);
    let others: BTreeSet<_> = by_kind
        .into_iter()
        .flat_map(|(kind, options)| {
            let kind = kind.unwrap_or_default().replace('|', "\\|");
            options.into_keys().map(move |long| format!("`--{long} {kind}`"))
        })
        .collect();
    text +=
        &row("other values", "see `--help` of a command", &others.into_iter().collect::<Vec<_>>());
    text + &row("no value", "a switch: on if it is given", &switches)
}

#[test]
fn the_page_lists_every_option_by_kind() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/options.md");
    let text = std::fs::read_to_string(page).unwrap();
    let table = table();
    assert!(text.contains(&table), "docs/reference/options.md lacks this table:\n{table}");
}

#[test]
fn every_help_fits_a_screen_or_two() {
    let mut long = Vec::new();
    walk_both(&mut |path, _| {
        let words = ["millstream-lab"].into_iter().chain(path.split_whitespace()).chain(["--help"]);
        let help = millstream_lab_cli::whole_command().try_get_matches_from(words).unwrap_err();
        assert_eq!(help.kind(), ErrorKind::DisplayHelp, "{path}: {help}");
        let lines = help.to_string().lines().count();
        if lines > HELP_LINES {
            long.push(format!("`{path} --help` has {lines} lines"));
        }
    });
    assert!(long.is_empty(), "{}", long.join("\n"));
}
