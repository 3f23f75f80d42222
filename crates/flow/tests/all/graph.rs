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
    assert_eq!(add("a.b"), "`a.b` cannot be the name of a block: use letters, digits, `_` and `-`");
    assert_eq!(add(""), "`` cannot be the name of a block: use letters, digits, `_` and `-`");
    assert_eq!(add("add"), "two blocks have the name `add`: give each block its own name");
}

#[test]
fn connections_that_make_no_sense() {
    let mut graph = graph();
    let mut connect = |from, to| graph.connect(from, to).unwrap_err().to_string();
    for (from, to, expected) in [
        (
            "zeroes",
            "sink",
            "there is no block with the name `zeroes`; there are: zeros, add, sink, iq",
        ),
        ("zeros.o", "sink", "block `zeros` has no output with the name `o`; its outputs are: out"),
        (
            "sink.out",
            "add.a",
            "block `sink` has no output with the name `out`; its outputs are: none",
        ),
        ("sink", "add.a", "block `sink` has no outputs"),
        ("zeros", "add", "block `add` has several inputs (a, b): write for example `add.a`"),
        (
            "zeros",
            "iq",
            "the output `zeros.out` (u32) cannot be connected to the input `iq.in` \
             (Complex<f32>), because their item types differ",
        ),
    ] {
        assert_eq!(connect(from, to), expected);
    }
    graph.connect("zeros", "add.a").unwrap();
    let error = graph.connect("zeros.out", "add.a").unwrap_err().to_string();
    let expected = "the input `add.a` is already connected to `zeros.out`; an input can have only \
         one connection";
    assert_eq!(error, expected);
}

#[test]
fn graphs_that_are_not_complete() {
    assert_eq!(
        Graph::new().check().unwrap_err().to_string(),
        "the graph has no blocks: add at least a source and a sink"
    );
    let mut graph = graph();
    graph.connect("zeros", "add.a").unwrap();
    let expected = "the input `add.b` is not connected: connect an output of type u32 to it";
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
        .strip_prefix("the connections between blocks form a cycle (")
        .and_then(|rest| rest.strip_suffix("), which a graph does not allow: remove one of them"))
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
        "partition `p` of the plan contains block `tail`, which is not in the graph"
    );
    assert_eq!(
        refuse(vec![partition("p", &["head"], None), partition("q", &["head"], None)], None),
        "block `head` is in partition `p` and in partition `q`: keep it in one of them"
    );
    assert_eq!(
        refuse(vec![partition("p", &[], None), partition("p", &["head"], None)], None),
        "two partitions have the name `p`: give each partition its own name"
    );
    for (name, shown) in [("", r#""""#), ("a\0b", r#""a\0b""#), ("a\u{1b}[2J", r#""a\u{1b}[2J""#)] {
        assert_eq!(
            refuse(vec![partition(name, &["head"], None)], None),
            format!(
                "{shown} cannot be the name of a partition: write at least one character, and no \
                 control characters"
            )
        );
    }
    assert_eq!(
        refuse(vec![partition("p", &["head"], Some(4096))], None),
        format!(
            "the plan puts partition `p` on CPU 4096, but this process may use only CPUs {allowed}"
        )
    );
    assert_eq!(
        refuse(vec![], Some("sink.out")),
        "buffers.outputs contains `sink.out`, which is not an output of a block: block `sink` has \
         no output with the name `out`; its outputs are: none"
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
    assert!(error.starts_with("cannot read the plan: TOML parse error at line 2"), "{error}");
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
