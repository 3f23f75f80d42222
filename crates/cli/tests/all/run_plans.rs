//! `millstream run`: plans by a word, the live view, adaptation, and graphs that stand still.

use crate::common::{Running, command, millstream};
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
    let run = ["run", "graph.toml", "--json", "--plan", "measured"];
    let outcome = millstream(folder.path(), &run);
    let document = outcome.succeeds().json();
    assert!(!document["results"]["run"]["plan"]["partition"].as_array().unwrap().is_empty());
    assert!(outcome.stderr.contains("running the graph for 0.5 s to measure it"), "{outcome:?}");
}

/// A chain of fourteen blocks of which three work: a source of noise, a long filter and a
/// decimator behind it. Equal runs would leave the two longest on one thread.
fn uneven_chain(folder: &Path) {
    let filter = "type = \"fir\"\ndesign = \"low_pass\"\nrate_hz = 1e6\n";
    let mut blocks = vec![
        ("noise".to_owned(), "type = \"noise_source\"".to_owned()),
        ("first".to_owned(), "type = \"head\"\ncount = 100000".to_owned()),
    ];
    let light =
        |n: usize| (format!("light{n}"), "type = \"multiply_const\"\nfactor = 0.5".to_owned());
    blocks.extend((0..4).map(light));
    let heavy = format!("{filter}cutoff_hz = 100e3\ntransition_hz = 10e3");
    blocks.push(("heavy".to_owned(), heavy));
    let fewer = format!("{filter}cutoff_hz = 40e3\ntransition_hz = 20e3\ndecimation = 10");
    blocks.push(("fewer".to_owned(), fewer));
    blocks.extend((4..9).map(light));
    blocks.push(("sink".to_owned(), "type = \"null_sink\"".to_owned()));
    assert_eq!(blocks.len(), 14);
    let names: Vec<&str> = blocks.iter().map(|(name, _)| name.as_str()).collect();
    let chain = format!("[graph]\nconnections = [\"{}\"]\n", names.join(" -> "));
    let block = |(name, rest): &(String, String)| format!("[[block]]\nname = \"{name}\"\n{rest}\n");
    let text: String = blocks.iter().map(block).chain([chain]).collect();
    std::fs::write(folder.join("graph.toml"), text).unwrap();
}

/// CPU times of the three blocks that work, ns an item of the source, measured one by one; the
/// others take 2 ns together.
const MEASURED_NS: [(&str, f64); 3] = [("noise", 24.6), ("heavy", 10.5), ("fewer", 5.0)];

/// The default plan is compared by measured costs, not by its time on this machine.
#[test]
fn the_default_plan_divides_the_work_and_not_the_number_of_blocks() {
    let folder = tempfile::tempdir().unwrap();
    uneven_chain(folder.path());
    let run = ["run", "graph.toml", "--json", "--no-stored-plan"];
    let document = millstream(folder.path(), &run).succeeds().json();
    let partitions = document["results"]["run"]["plan"]["partition"].as_array().unwrap().clone();
    if millstream_cpu::thread::allowed_cpus().unwrap().iter().count() == 1 {
        assert_eq!(partitions.len(), 1);
        return;
    }
    let work = |partition: &serde_json::Value| -> f64 {
        let has =
            |name: &str| partition["blocks"].as_array().unwrap().iter().any(|block| block == name);
        MEASURED_NS.iter().filter(|(name, _)| has(name)).map(|(_, ns)| ns).sum()
    };
    let (all, fullest) = (
        MEASURED_NS.iter().map(|(_, ns)| ns).sum::<f64>(),
        partitions.iter().map(work).fold(0.0, f64::max),
    );
    // What passes between two threads costs each less than 3 ns an item.
    assert!(fullest + 3.0 < all * 0.75, "{fullest} of {all} ns: {partitions:?}");
}

#[test]
fn what_is_neither_a_word_nor_a_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), 1e9, 10);
    let run = |plan: &str| millstream(folder.path(), &["run", "graph.toml", "--plan", plan]);
    run("fast").fails(1, "cannot read the plan file fast: No such file or directory");
    run("fast").fails(1, "you can name a plan: single, per-block, auto, measured");
    let stall = ["run", "graph.toml", "--stall-limit", "0"];
    millstream(folder.path(), &stall).fails(2, "give a number of seconds above 0");
}

#[test]
fn a_graph_that_stands_still_ends_with_the_reason_if_that_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), 1e-6, 10);
    let run = ["run", "graph.toml", "--json", "--stall-limit", "0.5"];
    let outcome = millstream(folder.path(), &run);
    outcome.fails(1, "no item has moved for ");
    outcome.fails(1, "`pace` has asked to be called later");
    outcome
        .fails(
            1,
            "`sink` waits for 1 item of `first`, and has 0; this is longer than \
             --stall-limit, 0.5 s",
        )
        .json();
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

#[test]
fn after_a_live_view_the_document_says_where_buffers_lie_and_what_is_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    // Long enough for a look at its thread on a busy machine.
    graph(folder.path(), 1e6, 1_000_000);
    let run = |live: &[&str]| {
        let run = [&["run", "graph.toml", "--json", "--plan", "single"], live].concat();
        let document = millstream(folder.path(), &run).succeeds().json();
        document["results"]["caches"].clone()
    };
    assert!(run(&[]).is_null());
    let caches = run(&["--live"]);
    let edges = caches["edges"].as_array().unwrap();
    assert_eq!(edges.len(), 3, "{caches}");
    assert!(edges.iter().all(|edge| edge["buffer_bytes"].as_u64() > Some(0)), "{caches}");
    let partition = caches["partitions"].as_object().unwrap().values().next().unwrap();
    let not_counted = caches["not_counted"].to_string();
    for (key, name) in [
        ("last_level_misses", "misses of the last cache"),
        ("l1d_misses", "misses of the first data cache"),
        ("page_faults", "page faults"),
    ] {
        assert_eq!(partition[key].is_null(), not_counted.contains(name), "{caches}");
    }
    let occupancy = &caches["occupancy"];
    assert!(occupancy["bytes"].is_array() || occupancy["missing"].is_string(), "{caches}");
    let text = millstream(folder.path(), &["run", "graph.toml", "--live", "--plan", "single"]);
    let told = text.succeeds().stdout.contains("not counted: ");
    assert_eq!(told, not_counted != "[]", "{text:?}");
}

#[test]
fn messages_are_sent_when_they_are_due() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), 1e6, 1 << 40);
    // The throttle takes a new rate, then an invalid one; the head ends.
    let run = ["run", "graph.toml", "--json", "--send", "0s:pace.rate_hz=2e6"];
    let more = ["--send", "50ms:pace.rate_hz=-1", "--send", "100ms:first.more=10"];
    let never = ["--send", "1h:pace.rate_hz=1"];
    let outcome = millstream(folder.path(), &[&run[..], &more, &never].concat());
    let document = outcome.succeeds().json();
    let events: Vec<_> = document["results"]["events"].as_array().unwrap().iter().collect();
    let told = |part: &str| events.iter().any(|event| event.as_str().unwrap().contains(part));
    assert!(told("sent pace.rate_hz = 2000000"), "{events:?}");
    assert!(told("not sent, pace.rate_hz = 1: the graph ended before 1h"), "{events:?}");
    let messages = &document["results"]["run"]["blocks"][1]["messages"];
    assert_eq!((messages["taken"].as_u64(), messages["refused"].as_u64()), (Some(2), Some(1)));
    let text = millstream(folder.path(), &["run", "graph.toml", "--send", "0s:first.more=9"]);
    assert!(text.succeeds().stdout.contains("messages 1"), "{text:?}");
}

#[test]
fn messages_that_nobody_understands_are_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), 1e9, 10);
    for (send, part) in [
        ("0s:pace.speed=1", "block `pace` has no message `speed`; its messages are: rate_hz"),
        (
            "0s:none.rate_hz=1",
            "there is no block with the name `none`; there are: zeros, pace, first, sink",
        ),
        ("0s:pace.rate_hz=fast", "the message `pace.rate_hz` takes a number, but `fast` was given"),
    ] {
        millstream(folder.path(), &["run", "graph.toml", "--send", send]).fails(1, part);
    }
    let run = ["run", "graph.toml", "--send", "pace.rate_hz=1"];
    millstream(folder.path(), &run).fails(2, "write AFTER:BLOCK.MESSAGE=VALUE");
}

#[test]
fn what_is_under_way_is_told_beside_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), 1e6, 100_000);
    let bound = "\n[plan.latency]\nmax_ms = 2.0\nrate_hz = 1e6\n";
    let path = folder.path().join("graph.toml");
    let text = std::fs::read_to_string(&path).unwrap() + bound;
    std::fs::write(&path, text).unwrap();
    let outcome = millstream(folder.path(), &["run", "graph.toml"]);
    let stdout = &outcome.succeeds().stdout;
    let line = stdout.lines().find(|line| line.starts_with("latency from zeros: median "));
    assert!(
        line.is_some_and(|line| line.contains("; bound 2000 items (2 ms), held back ")),
        "{stdout}"
    );
}
