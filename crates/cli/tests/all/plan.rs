//! `millstream graph plan` and `draw`: costs measured or given, machines here and elsewhere, and
//! graphs that cannot be planned.

use crate::common::millstream;
use std::path::Path;

const GRAPH: &str = r#"
[parameters]
count = 200000000

[[block]]
name = "zeros"
type = "null_source"
item = "f32"

[[block]]
name = "gain"
type = "multiply_const"
item = "f32"
factor = 2.0

[[block]]
name = "first"
type = "head"
item = "f32"
count = "${count}"

[[block]]
name = "sink"
type = "null_sink"
item = "f32"

[graph]
connections = ["zeros -> gain -> first -> sink"]

[plan]
[[plan.partition]]
name = "all"
blocks = ["zeros", "gain", "first", "sink"]
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("g.toml"), GRAPH).unwrap();
    folder
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn a_plan_is_measured_told_drawn_and_obeyed() {
    let folder = folder();
    let path = folder.path();
    let args = ["--json", "graph", "plan", "g.toml", "--duration", "0.3", "--max-cpus", "1"];
    let outcome = millstream(path, &args);
    let document = outcome.succeeds().json();
    assert!(outcome.stderr.contains("running the graph for 0.3 s to measure it"), "{outcome:?}");
    let results = &document["results"];
    assert_eq!(results["prediction"]["measured"], true);
    assert_eq!(results["prediction"]["exact"], true);
    assert_eq!(results["prediction"]["per_item_of"], "zeros");
    assert_eq!(results["plan"]["partition"].as_array().unwrap().len(), 1);
    assert!(results["profile"]["blocks"][1]["busy_ns"].as_u64().unwrap() > 0);
    std::fs::write(path.join("costs.json"), &outcome.stdout).unwrap();

    // The same costs on another machine, without running anything.
    let other = ["g.toml", "--profile", "costs.json", "--machine", "cortex-a53", "--out"];
    let elsewhere =
        |verb: &str, out: &str| millstream(path, &[&["graph", verb], &other[..], &[out]].concat());
    let outcome = elsewhere("plan", "p.toml");
    let told = &outcome.succeeds().stdout;
    for part in ["g on Four Arm Cortex-A53", "limit ", "cuts ", "else ", "buffers ", "by hand "] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    assert!(!outcome.stderr.contains("running"), "{outcome:?}");
    for out in ["p.svg", "p.dot"] {
        assert!(elsewhere("draw", out).succeeds().stdout.contains(out));
    }
    assert!(read(path, "p.svg").starts_with("<svg ") && read(path, "p.dot").contains("digraph"));
    elsewhere("draw", "p.pdf").fails(1, "use a name that ends in .svg or .dot, or add --as svg");
    let piped = millstream(path, &[&["graph", "draw", "--as", "dot"], &other[..], &["-"]].concat());
    assert_eq!(piped.succeeds().stdout, read(path, "p.dot"));

    // The plan alone goes to standard output.
    let piped = elsewhere("plan", "-");
    assert_eq!(piped.succeeds().stdout, read(path, "p.toml"));
    assert!(piped.stderr.contains("limit "), "{piped:?}");
    millstream(path, &[&["--json", "graph", "plan"], &other[..], &["-"]].concat())
        .fails(1, "cannot both go to standard output");

    // A plan for this machine can be run.
    let here = ["graph", "plan", "g.toml", "--profile", "costs.json", "--out", "p.toml"];
    millstream(path, &here).fails(1, "p.toml exists already");
    millstream(path, &[&here[..], &["--force"]].concat()).succeeds();
    assert!(read(path, "p.toml").contains("cpu = "));
    let run = ["run", "g.toml", "--plan", "p.toml", "--set", "count=1000"];
    millstream(path, &run).succeeds();
}

#[test]
fn what_is_decided_by_hand_stays() {
    let folder = folder();
    let path = folder.path();
    let measure = ["--json", "graph", "plan", "g.toml", "--duration", "0.1"];
    let keep = millstream(path, &[&measure[..], &["--keep"]].concat()).succeeds().json();
    assert_eq!(keep["results"]["plan"]["partition"][0]["name"], "all");
    let other = ["--machine", "i7-6950x", "--pin", "gain=7", "--max-cpus", "1"];
    let pin = millstream(path, &[&measure[..], &other].concat()).succeeds().json();
    assert_eq!(pin["results"]["plan"]["partition"][0]["cpu"], 7);
}

#[test]
fn what_cannot_be_planned_is_told() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("text.json"), "costs").unwrap();
    let other = "{\"elapsed_s\":1,\"blocks\":[],\"edges\":[]}";
    std::fs::write(path.join("other.json"), other).unwrap();
    std::fs::write(path.join("prices.toml"), "sibling = 3").unwrap();
    let plan = |args: &[&str]| millstream(path, &[&["graph", "plan", "g.toml"][..], args].concat());
    plan(&["--machine", "pdp-11"])
        .fails(1, "there is no machine called `pdp-11`; there are: 2x-xeon");
    plan(&["--machine", "g.toml"])
        .fails(1, "cannot use the machine file g.toml: cannot read the description of the machine");
    plan(&["--machine", "."]).fails(1, "cannot read ./sys/devices/system/cpu/online");
    plan(&["--profile", "none.json"]).fails(1, "cannot read the profile none.json");
    plan(&["--profile", "text.json"]).fails(1, "the profile text.json is not JSON");
    plan(&["--profile", "other.json"]).fails(1, "belongs to another graph");
    plan(&["--costs", "prices.toml"]).fails(1, "cannot use prices.toml: TOML parse error");
    plan(&["--duration", "0"]).fails(2, "give a number of seconds above 0");
    plan(&["--max-cpus", "0"]).fails(2, "give a whole number from 1 to");
    plan(&["--pin", "gain"]).fails(2, "write BLOCK=CPU");
    plan(&["--duration", "0.1", "--pin", "gain=99999"])
        .fails(1, "on CPU 99999, but it may use only");
    let draw = ["graph", "draw", "g.toml", "--duration", "0.1", "--out", "no/p.svg"];
    millstream(path, &draw).fails(1, "cannot write no/p.svg: ").fails(1, "; make its folder first");
}

/// A plan made from a receiver without a signal is useless, and says so.
#[test]
fn a_receiver_that_hears_nothing_is_told_to_have_cost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("silence.sc16"), vec![0; 4 * 625_000]).unwrap();
    let graph = crate::common::graph("atsc-rx.toml");
    let plan = ["graph", "plan", &graph, "--set", "in=silence.sc16", "--set", "out=x.ts"];
    let outcome = millstream(folder.path(), &[&plan[..], &["--duration", "2"]].concat());
    assert!(
        outcome.succeeds().stderr.contains("and the plan is only right for that"),
        "{outcome:?}"
    );
}
