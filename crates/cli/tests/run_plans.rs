//! `millstream run`: plans by a word, the live view, adaptation, and graphs that stand still.

mod common;

use common::{Running, command, millstream};
use std::path::Path;

/// A source, a throttle, the first items and a sink.
fn graph(folder: &Path, rate_hz: f64, count: u64) {
    let block = |name: &str, kind: &str, rest: &str| {
        format!("[[block]]\nname = \"{name}\"\ntype = \"{kind}\"\n{rest}\n")
    };
    let text = [
        block("zeros", "null_source", ""),
        block("pace", "throttle", &format!("rate_hz = {rate_hz:.6}")),
        block("first", "head", &format!("count = {count}")),
        block("sink", "null_sink", ""),
        "[graph]\nconnections = [\"zeros -> pace -> first -> sink\"]\n".to_owned(),
    ];
    std::fs::write(folder.join("graph.toml"), text.concat()).unwrap();
}

#[test]
fn plans_by_a_word_are_obeyed_and_what_they_cost_is_in_the_document() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), 1e9, 1_000_000);
    for (word, partitions) in [("single", 1), ("per-block", 4)] {
        let run = ["run", "graph.toml", "--json", "--plan", word];
        let document = millstream(folder.path(), &run).succeeds().json();
        let run = &document["results"]["run"];
        assert_eq!(run["plan"]["partition"].as_array().unwrap().len(), partitions, "{run}");
        assert_eq!(run["partitions"].as_array().unwrap().len(), partitions, "{run}");
        let profile = &run["profile"];
        assert_eq!(profile["blocks"][3]["items_in"], 1_000_000, "{profile}");
        assert_eq!(profile["edges"][2]["to"], "sink.in", "{profile}");
        assert_eq!(document["results"]["moves"], 0);
    }
    let run = ["run", "graph.toml", "--plan", "auto", "--adapt"];
    millstream(folder.path(), &run).succeeds();
}

#[test]
fn what_is_neither_a_word_nor_a_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), 1e9, 10);
    let run = |plan: &str| millstream(folder.path(), &["run", "graph.toml", "--plan", plan]);
    run("fast").fails(1, "cannot read the plan fast: No such file or directory");
    run("fast").fails(1, "plans by a word are single, per-block, auto");
    let stall = ["run", "graph.toml", "--stall-limit", "0"];
    millstream(folder.path(), &stall).fails(2, "give a number above 0");
}

#[test]
fn a_graph_that_stands_still_ends_with_the_reason_if_that_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), 1e-6, 10);
    let run = ["run", "graph.toml", "--json", "--stall-limit", "0.5"];
    let outcome = millstream(folder.path(), &run);
    outcome.fails(1, "nothing has moved for ");
    outcome.fails(1, "`pace` has asked to be called later");
    outcome.fails(1, "`sink` waits for 1 item of `first`, has 0; --stall-limit is 0.5 s").json();
}

#[test]
fn over_a_pipe_the_live_view_is_plain_lines() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), 1e6, 1 << 40);
    let run = ["run", "graph.toml", "--live", "--plan", "single"];
    let running = Running::start(command(folder.path(), &run));
    let line = running.line(" ");
    assert!(line.contains(" s") && line.ends_with(" %"), "{line}");
    assert!(!line.contains('\x1b'), "{line:?}");
    running.signal(libc::SIGINT);
    running.wait().succeeds();
}
