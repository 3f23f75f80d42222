//! Errors before the start, and their texts.

use crate::common::{Add, Nibble};
use millstream_flow::blocks::{Head, NullSink, NullSource};
use millstream_flow::{Graph, Partition, Plan, WaitMode};
use num_complex::Complex;

fn graph() -> Graph {
    let mut graph = Graph::new();
    graph.add("zeros", NullSource::<u32>::new()).unwrap();
    graph.add("add", Add::new()).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.add("iq", NullSink::<Complex<f32>>::new()).unwrap();
    graph
}

#[test]
fn names_that_connections_cannot_tell_apart() {
    let mut graph = graph();
    let mut add = |name| graph.add(name, Add::new()).unwrap_err().to_string();
    assert_eq!(add("a.b"), "a block cannot be called `a.b`; use letters, digits, `_` and `-`");
    assert_eq!(add(""), "a block cannot be called ``; use letters, digits, `_` and `-`");
    assert_eq!(add("add"), "there are two blocks called `add`; give each its own name");
}

#[test]
fn connections_that_make_no_sense() {
    let mut graph = graph();
    let mut connect = |from, to| graph.connect(from, to).unwrap_err().to_string();
    for (from, to, expected) in [
        ("zeroes", "sink", "there is no block called `zeroes`; there are: zeros, add, sink, iq"),
        ("zeros.o", "sink", "block `zeros` has no output `o`; its outputs: out"),
        ("sink.out", "add.a", "block `sink` has no output `out`; its outputs: none"),
        ("sink", "add.a", "block `sink` has no outputs"),
        ("zeros", "add", "block `add` has several inputs (a, b); write `add.a`"),
        (
            "zeros",
            "iq",
            "cannot connect `zeros.out` (u32) to `iq.in` (Complex<f32>): the item types differ",
        ),
    ] {
        assert_eq!(connect(from, to), expected);
    }
    graph.connect("zeros", "add.a").unwrap();
    let error = graph.connect("zeros.out", "add.a").unwrap_err().to_string();
    let expected = "`add.a` is connected to `zeros.out` already; an input reads one output";
    assert_eq!(error, expected);
}

#[test]
fn graphs_that_are_not_complete() {
    assert_eq!(Graph::new().check().unwrap_err().to_string(), "the graph has no blocks");
    let mut graph = graph();
    graph.connect("zeros", "add.a").unwrap();
    let expected = "`add.b` is not connected; connect an output of type u32 to it";
    assert_eq!(graph.check().unwrap_err().to_string(), expected);
}

#[test]
fn a_cycle_is_told_in_the_order_that_items_would_flow() {
    let mut graph = Graph::new();
    graph.add("zeros", NullSource::<u32>::new()).unwrap();
    graph.add("add", Add::new()).unwrap();
    graph.add("a", Nibble::new(1, 1)).unwrap();
    graph.add("b", Nibble::new(1, 1)).unwrap();
    graph.connect("zeros", "add.a").unwrap();
    graph.chain(&["add", "a", "b", "add.b"]).unwrap();
    let error = graph.check().unwrap_err().to_string();
    let cycle = error
        .strip_prefix("blocks form a cycle (")
        .and_then(|rest| rest.strip_suffix("); feedback is not possible in a graph"))
        .unwrap_or_else(|| panic!("{error}"));
    assert!(
        ["add -> a -> b -> add", "a -> b -> add -> a", "b -> add -> a -> b"].contains(&cycle),
        "{error}"
    );
}

fn chain() -> Graph {
    let mut graph = Graph::new();
    graph.add("zeros", NullSource::<u32>::new()).unwrap();
    graph.add("head", Head::<u32>::new(10)).unwrap();
    graph.add("sink", NullSink::<u32>::new()).unwrap();
    graph.chain(&["zeros", "head", "sink"]).unwrap();
    graph
}

fn partition(name: &str, blocks: &[&str], cpu: Option<usize>) -> Partition {
    let blocks = blocks.iter().map(|block| (*block).to_owned()).collect();
    Partition { name: name.to_owned(), blocks, cpu, wait: WaitMode::Park }
}

#[test]
fn plans_that_do_not_fit() {
    let allowed = millstream_cpu::thread::allowed_cpus().unwrap();
    let refuse = |partitions, output: Option<&str>| {
        let mut plan = Plan { partitions, ..Plan::default() };
        plan.buffers.outputs.extend(output.map(|name| (name.to_owned(), 1)));
        chain().run(&plan).unwrap_err().to_string()
    };
    assert_eq!(
        refuse(vec![partition("p", &["tail"], None)], None),
        "partition `p` lists block `tail`, which the graph does not have"
    );
    assert_eq!(
        refuse(vec![partition("p", &["head"], None), partition("q", &["head"], None)], None),
        "block `head` is in partition `p` and in `q`; it can be in one only"
    );
    assert_eq!(
        refuse(vec![partition("p", &[], None), partition("p", &["head"], None)], None),
        "there are two partitions called `p`; give each its own name"
    );
    for (name, shown) in [("", r#""""#), ("a\0b", r#""a\0b""#), ("a\u{1b}[2J", r#""a\u{1b}[2J""#)] {
        assert_eq!(
            refuse(vec![partition(name, &["head"], None)], None),
            format!(
                "{shown} is not a name of a partition; write at least one character, and no \
                 control characters"
            )
        );
    }
    assert_eq!(
        refuse(vec![partition("p", &["head"], Some(4096))], None),
        format!("partition `p` is planned on CPU 4096; this process may use CPUs {allowed}")
    );
    assert_eq!(
        refuse(vec![], Some("sink.out")),
        "buffers.outputs has `sink.out`, which is not an output: \
         block `sink` has no output `out`; its outputs: none"
    );
}

#[test]
fn a_plan_reads_as_it_is_written() {
    let text = r#"
        [[partition]]
        name = "front"
        blocks = ["zeros", "head"]
        cpu = 1
        wait = "spin"

        [buffers]
        between_bytes = 8192
        [buffers.outputs]
        "head.out" = 4096
    "#;
    let plan = Plan::from_toml(text).unwrap();
    assert_eq!(plan.partitions[0].cpu, Some(1));
    assert_eq!(plan.partitions[0].wait, WaitMode::Spin);
    assert_eq!(plan.buffers.inside_bytes, 64 << 10, "what is not said keeps its default");
    assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);

    let error = Plan::from_toml("[buffers]\nhuge = true").unwrap_err().to_string();
    assert!(error.starts_with("the plan cannot be read: TOML parse error at line 2"), "{error}");
    assert!(error.contains("unknown field `huge`"), "{error}");
}

#[test]
fn blocks_the_plan_leaves_out_are_placed() {
    let plan = Plan { partitions: vec![partition("mine", &["head"], None)], ..Plan::default() };
    let snapshot = chain().run(&plan).unwrap();
    assert_eq!(snapshot.block("head").unwrap().partition, "mine");
    assert!(snapshot.partitions.len() >= 2);
    assert_eq!(snapshot.block("sink").unwrap().items_in, 10);
}
