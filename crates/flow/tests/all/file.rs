//! Graph files: their contents, and the errors of wrong ones.

use crate::common::gain::registry;
use millstream_flow::{GraphFile, Plan};
use num_complex::Complex;
use proptest::prelude::*;
use std::fs;

const EXAMPLE: &str = r#"
description = "The first samples, at half the amplitude."

[parameters]
in = { help = "recording to read" }
out = { help = "where to write", default = "half.cf32" }
count = 1000
factor = 0.5

[[block]]
name = "source"
type = "file_source"
path = "${in}"
format = "sc16"

[[block]]
name = "half"
type = "gain"
factor = "${factor}"

[[block]]
name = "first"
type = "head"
count = "${count}"

[[block]]
name = "sink"
type = "file_sink"
item = "cf32"
path = "${out}.tmp"

[graph]
connections = ["source -> half -> first.in", "first.out -> sink"]

[[plan.partition]]
name = "disk"
blocks = ["source", "sink"]
"#;

fn build(text: &str, overrides: &[&str]) -> Result<millstream_flow::Graph, String> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    GraphFile::parse("g.toml", text)
        .and_then(|file| file.build(&registry(), &overrides))
        .map_err(|error| error.to_string())
}

fn refuse(text: &str, overrides: &[&str]) -> String {
    build(text, overrides).err().expect("a graph that is refused")
}

/// Replaces one piece of the example's text.
fn with(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from));
    EXAMPLE.replacen(from, to, 1)
}

#[test]
fn a_graph_file_runs_with_what_was_set() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.bin");
    let samples: Vec<i16> = (0..4000).collect();
    fs::write(&input, bytemuck::cast_slice(&samples)).unwrap();
    let file = GraphFile::parse("g.toml", EXAMPLE).unwrap();
    assert_eq!(file.description(), "The first samples, at half the amplitude.");
    assert_eq!(file.parameters()["in"].help, "recording to read");
    let out = folder.path().join("out");
    let overrides = [
        format!("in={}", input.display()),
        format!("out={}", out.display()),
        "count=1e1".to_owned(),
    ];
    let graph = file.build(&registry(), &overrides).unwrap();
    let snapshot = graph.run(file.plan()).unwrap();
    assert_eq!(snapshot.block("source").unwrap().partition, "disk");
    let bytes = fs::read(folder.path().join("out.tmp")).unwrap();
    let written: Vec<Complex<f32>> =
        bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
    assert_eq!(written.len(), 10);
    assert_eq!(written[9].im, 19.0 * (1.0 / 32767.0) * 0.5);
}

#[test]
fn parameters_that_cannot_be_set() {
    assert_eq!(
        refuse(EXAMPLE, &[]),
        "g.toml: parameter `in` (recording to read) has no value: give one with `--set in=VALUE`"
    );
    assert_eq!(
        refuse(EXAMPLE, &["gain=1"]),
        "g.toml: the graph has no parameter `gain`; its parameters are: count, factor, in, out"
    );
    assert_eq!(
        refuse(EXAMPLE, &["gain"]),
        "g.toml: `gain` is not an assignment: write `NAME=VALUE`"
    );
    assert_eq!(
        refuse(EXAMPLE, &["in=x", "factor=much"]),
        "g.toml: parameter `factor`: expected a number, but found `much`"
    );
    assert_eq!(
        refuse(
            &with("path = \"${in}\"\nformat = \"sc16\"", "path = \"/dev/null\"\nformat = \"sc16\""),
            &["in=x", "count=2.5"]
        ),
        "g.toml: block `first`, count: expected a whole number, but found `2.5`"
    );
}

#[test]
fn blocks_that_cannot_be_made() {
    let refuse = |from, to| refuse(&with(from, to), &["in=/dev/null"]);
    assert_eq!(
        refuse("type = \"head\"", "type = \"tail\""),
        "g.toml: block `first`: there is no block type `tail`; there are: copy, file_sink, \
         file_source, gain, head, null_sink, null_source, throttle"
    );
    assert_eq!(
        refuse("count = \"${count}\"", "number = 3"),
        "g.toml: block `first`: the type `head` has no parameter `number`; it has: count, item"
    );
    assert_eq!(
        refuse("count = \"${count}\"", ""),
        "g.toml: block `first`: the parameter `count` is missing; it is a whole number: number of \
         items"
    );
    assert_eq!(
        refuse("count = \"${count}\"", "count = true"),
        "g.toml: block `first`, count: expected a whole number, but found `true`"
    );
    assert_eq!(
        refuse("count = \"${count}\"", "count = -1"),
        "g.toml: block `first`: count = `-1`: expected 0 or more"
    );
    assert_eq!(
        refuse("format = \"sc16\"", "format = \"mp3\""),
        "g.toml: block `source`: format = `mp3`: expected sc16, cf32, cu8, ci8 or auto"
    );
    assert_eq!(
        refuse("count = \"${count}\"", "count = [1]"),
        "g.toml: block `first`, count: expected a whole number, but found `[1.0]`"
    );
    assert_eq!(
        refuse("count = \"${count}\"", "count = [1, \"x\"]"),
        "g.toml: block `first`, count: expected a list of numbers, but one element is not a number"
    );
    assert_eq!(
        refuse("count = \"${count}\"", "count = { of = 3 }"),
        "g.toml: block `first`, count: expected text, a number, true or false, or a list of \
         numbers, but found table"
    );
    assert_eq!(
        refuse("item = \"cf32\"", "item = \"c32\""),
        "g.toml: block `sink`: item = `c32`: expected u8, cf32, f32 or sc16; did you mean `cf32`?"
    );
    assert_eq!(
        refuse("${count}", "${counts}"),
        "g.toml: block `first`, count: the graph has no parameter `counts`; its parameters are: \
         count, factor, in, out; did you mean `count`?"
    );
    assert_eq!(
        refuse("${count}", "${count"),
        "g.toml: block `first`, count: `${` has no closing `}`"
    );
    assert_eq!(
        refuse("name = \"half\"", "name = \"source\""),
        "g.toml: two blocks have the name `source`: give each block its own name"
    );
}

#[test]
fn connections_that_cannot_be_made() {
    let refuse = |from, to| refuse(&with(from, to), &["in=/dev/null"]);
    assert_eq!(
        refuse("first.out -> sink", "first"),
        "g.toml: connection `first` cannot be read: write `from -> to`"
    );
    assert_eq!(
        refuse("first.out -> sink", "first.out -> drain"),
        "g.toml: there is no block with the name `drain`; there are: source, half, first, sink"
    );
    assert_eq!(
        refuse("item = \"cf32\"", "item = \"u8\""),
        "g.toml: the output `first.out` (Complex<f32>) cannot be connected to the input `sink.in` \
         (u8), because their item types differ"
    );
    assert_eq!(
        refuse(", \"first.out -> sink\"", ""),
        "g.toml: the input `sink.in` is not connected: connect an output of type Complex<f32> to it"
    );
}

#[test]
fn text_that_is_no_graph() {
    let error = refuse("[blocks]", &[]);
    assert!(error.starts_with("g.toml: TOML parse error at line 1"), "{error}");
    assert!(error.contains("unknown field `blocks`"), "{error}");
    let error = refuse("x = ", &[]);
    assert!(error.starts_with("g.toml: TOML parse error at line 1, column"), "{error}");
    assert_eq!(
        refuse("", &[]),
        "g.toml: the graph has no blocks: add at least a source and a sink"
    );
    let error = refuse("[parameters]\nx = { defualt = 3 }", &[]);
    assert!(error.contains("parameter `x`: ") && error.contains("`defualt`"), "{error}");
    let error = refuse("[[block]]\ntype = \"copy\"", &[]);
    assert!(error.contains("missing field `name`"), "{error}");
    let missing = GraphFile::read(std::path::Path::new("/no/such.toml")).unwrap_err();
    assert!(
        missing.to_string().starts_with("/no/such.toml: the file cannot be read: No such file")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Any text gives a graph or an error.
    #[test]
    fn damaged_files_never_panic(
        at in 0..EXAMPLE.len(),
        length in 0usize..12,
        text in "[a-z0-9.\"'=$\\{\\}\\[\\]> \n-]{0,4}",
    ) {
        let end = EXAMPLE.len().min(at + length);
        let damaged = format!("{}{text}{}", &EXAMPLE[..at], &EXAMPLE[end..]);
        if let Err(error) = build(&damaged, &["in=/dev/null"]) {
            prop_assert!(error.starts_with("g.toml: "), "{}", error);
        }
    }
}

#[test]
fn a_failing_sink_ends_the_run_with_its_reason() {
    let text = r#"
        [[block]]
        name = "zeros"
        type = "null_source"
        item = "u8"
        [[block]]
        name = "sink"
        type = "file_sink"
        path = "/dev/full"
        [graph]
        connections = ["zeros -> sink"]
    "#;
    let error = build(text, &[]).unwrap().run(&Plan::default()).unwrap_err().to_string();
    assert!(
        error.starts_with("block `sink` failed: cannot write /dev/full: No space left"),
        "{error}"
    );
}
