//! `millstream graph tune`: the plans that it stores, those that it leaves alone, and their users.

use crate::common::{Outcome, millstream, names};
use std::path::Path;

const GRAPH: &str = r#"
[parameters]
out = { help = "where to write" }
[[block]]
name = "zeros"
type = "null_source"
[[block]]
name = "half"
type = "multiply_const"
factor = 0.5
[[block]]
name = "first"
type = "head"
count = 500000
[[block]]
name = "file"
type = "file_sink"
item = "cf32"
path = "${out}"
[graph]
connections = ["zeros -> half -> first -> file"]
"#;

fn tune(folder: &Path, more: &[&str]) -> Outcome {
    let mut args =
        vec!["graph", "tune", "g.toml", "--json", "--set", "out=o.cf32", "--repeat", "8"];
    args.extend(more);
    millstream(folder, &args)
}

/// A record as `tune` would have written it, for the graph in `folder`.
fn store_by_hand(folder: &Path, plan: &str) {
    let forget = tune(folder, &["--forget"]).succeeds().json();
    assert_eq!(forget["results"]["forgotten"], false);
    let path = Path::new(forget["results"]["path"].as_str().unwrap());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let record = format!(
        "graph = \"g.toml\"\nmachine = \"this\"\ntuned_at = \"today\"\nwhat = \"by hand\"\n\
         unit = \"items/s\"\nfigure = 1.0\ngain = 1.5\ngain_low = 1.4\ngain_high = 1.6\n\
         ns_per_item = 1e9\nns_per_item_spread = 0.01\nitems = 1000\n{plan}"
    );
    std::fs::write(path, record).unwrap();
}

#[test]
fn a_store_that_takes_nothing_is_an_error_before_the_search() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("g.toml"), GRAPH).unwrap();
    // A file where the folder would be made, which stops root, too.
    std::fs::write(folder.path().join(".state"), "").unwrap();
    let text = "no plan could be stored (--no-store searches without): cannot write into ";
    tune(folder.path(), &["--duration", "600s"]).fails(1, text);
}

#[test]
fn it_measures_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("g.toml"), GRAPH).unwrap();
    let more = ["--duration", "6s", "--no-store", "--picture", "p.svg", "--out", "plan.toml"];
    let document = tune(folder.path(), &more).succeeds().json();
    let results = &document["results"];
    assert!(results["attempts"].as_array().is_some_and(|all| all.len() > 3), "{document}");
    assert_eq!(results["left_out"][0], "file");
    assert_eq!(names(folder.path()), ["g.toml", "p.svg", "plan.toml"]);
    let run = ["run", "g.toml", "--plan", "plan.toml", "--set", "out=o.cf32"];
    millstream(folder.path(), &run).succeeds();
}

#[test]
fn run_starts_from_the_stored_plan_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("g.toml"), GRAPH).unwrap();
    let plan = "[[plan.partition]]\nname = \"mine\"\n\
                blocks = [\"zeros\", \"half\", \"first\", \"file\"]\n";
    store_by_hand(path, plan);
    let partition = |more: &[&str]| {
        let mut args = vec!["run", "--json", "--force", "g.toml", "--set", "out=other.cf32"];
        args.extend(more);
        let outcome = millstream(path, &args);
        let document = outcome.succeeds().json();
        (document["results"]["run"]["blocks"][0]["partition"].clone(), outcome)
    };
    let (name, outcome) = partition(&[]);
    assert_eq!(name, "mine");
    assert!(
        outcome.stderr.contains("plan: stored by `millstream graph tune` at today"),
        "{outcome:?}"
    );
    // The stored cost is a second for each item; no machine is that slow.
    assert!(outcome.stderr.contains("run `millstream graph tune g.toml` again"), "{outcome:?}");
    assert_ne!(partition(&["--no-stored-plan"]).0, "mine");
    let own = "\n[[plan.partition]]\nname = \"own\"\nblocks = [\"zeros\"]\n";
    std::fs::write(path.join("g.toml"), format!("{GRAPH}{own}")).unwrap();
    let (name, outcome) = partition(&[]);
    assert_eq!(name, "own", "what is written in the graph wins");
    assert!(outcome.stderr.contains("has its own `partition.own`"), "{outcome:?}");
    let listed = millstream(path, &["graph", "tune", "--list"]);
    assert!(listed.succeeds().stdout.contains("g.toml: +50.0 %"), "{listed:?}");
    tune(path, &["--forget"]).succeeds();
    assert!(millstream(path, &["graph", "tune", "--list"]).stdout.contains("nothing is stored"));
}

#[test]
fn what_makes_no_sense_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("g.toml"), GRAPH).unwrap();
    tune(folder.path(), &["--duration", "1ms"])
        .fails(1, "the search has 0.0 s left, which is too short");
    millstream(folder.path(), &["graph", "tune", "g.toml", "--repeat=3"])
        .fails(2, "give a whole number from 8 to 1000");
    millstream(folder.path(), &["graph", "tune"]).fails(2, "GRAPH.toml");
    millstream(folder.path(), &["graph", "tune", "none.toml"])
        .fails(1, "the file cannot be read: No such file");
}

#[test]
fn measuring_a_plan_leaves_recordings_alone_and_sends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_nonblocking(true).unwrap();
    let to = receiver.local_addr().unwrap();
    let graph = GRAPH
        .replace("half -> first -> file", "half -> first -> file\", \"first -> send")
        .replace("type = \"file_sink\"\nitem = \"cf32\"", "type = \"sigmf_sink\"\nrate_hz = 1e6")
        + &format!(
            "[[block]]\nname = \"send\"\ntype = \"udp_sink\"\nitem = \"cf32\"\nto = \"{to}\"\n"
        );
    std::fs::write(path.join("g.toml"), graph).unwrap();
    for name in ["o.sigmf-meta", "o.sigmf-data"] {
        std::fs::write(path.join(name), "an older recording").unwrap();
    }
    let set = ["--set", "out=o.sigmf-meta"];
    let tuned = ["graph", "tune", "g.toml", "--duration", "1s", "--no-store", "--repeat", "8"];
    millstream(path, &[&tuned[..], &set].concat()).succeeds();
    millstream(path, &[&["graph", "plan", "g.toml"][..], &set].concat()).succeeds();
    assert_eq!(names(path), ["g.toml", "o.sigmf-data", "o.sigmf-meta"]);
    for name in ["o.sigmf-meta", "o.sigmf-data"] {
        assert_eq!(std::fs::read_to_string(path.join(name)).unwrap(), "an older recording");
    }
    let received = receiver.recv(&mut [0; 2000]).map_err(|error| error.kind());
    assert_eq!(received, Err(std::io::ErrorKind::WouldBlock), "a datagram was sent");
}
