//! The user's decisions are respected, and invalid ones are refused.

use super::drawn::graph;
use crate::place::{Hints, Prediction, plan, predict};
use millstream_cpu::{CpuSet, RecordedMachine, Topology};
use millstream_flow::Shape;
use millstream_flow::observe::Profile;
use millstream_flow::plan::{Partition, Plan, WaitMode};
use millstream_stats::Random;

fn hand(name: &str, blocks: &[&str], cpu: Option<usize>, wait: WaitMode) -> Partition {
    let blocks = blocks.iter().map(|block| (*block).to_owned()).collect();
    Partition { name: name.to_owned(), blocks, cpu, wait }
}

fn machine() -> Topology {
    RecordedMachine::named("ryzen-7-1700").unwrap().topology
}

fn by_hand(partitions: Vec<Partition>) -> Hints {
    Hints { plan: Plan { partitions, ..Plan::default() }, ..Hints::default() }
}

#[test]
fn partitions_by_hand_stay_as_they_are() {
    let (shape, profile) = graph(&mut Random::new(1), 9);
    let hints = by_hand(vec![
        hand("mine", &["b8", "b1"], Some(5), WaitMode::Park),
        hand("b0", &["b2"], None, WaitMode::Spin),
        hand("empty", &[], None, WaitMode::Park),
    ]);
    let placed = plan(&shape, &profile, &machine(), &hints).unwrap();
    assert_eq!(placed.plan.partitions[..3], hints.plan.partitions[..]);
    let mut blocks: Vec<&String> =
        placed.plan.partitions.iter().flat_map(|partition| &partition.blocks).collect();
    blocks.sort();
    assert_eq!(blocks, ["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8"]);
    // A partition that spins shares its CPU with no other.
    let loads = &placed.prediction.partitions;
    let with_spinner = loads.iter().filter(|load| load.cpu == loads[1].cpu);
    assert!(with_spinner.filter(|load| load.work_ns > 0.0).count() <= 1, "{loads:?}");
    let names: std::collections::BTreeSet<_> =
        placed.plan.partitions.iter().map(|partition| &partition.name).collect();
    assert_eq!(names.len(), placed.plan.partitions.len(), "names are unique");
}

#[test]
fn pinned_blocks_are_where_they_were_pinned() {
    let (shape, profile) = graph(&mut Random::new(2), 9);
    let mut hints = Hints::default();
    hints.pins.insert("b3".to_owned(), 13);
    hints.max_cpus = Some(2);
    let placed = plan(&shape, &profile, &machine(), &hints).unwrap();
    let holds = |partition: &&Partition| partition.blocks.contains(&"b3".to_owned());
    assert_eq!(placed.plan.partitions.iter().find(holds).unwrap().cpu, Some(13));
    assert!(placed.plan.partitions.len() <= 2);
}

#[test]
fn one_cpu_holds_everything_even_spinners() {
    let (shape, profile) = graph(&mut Random::new(3), 5);
    let mut hints = by_hand(vec![
        hand("a", &["b0"], None, WaitMode::Spin),
        hand("b", &["b1"], Some(4), WaitMode::Spin),
    ]);
    hints.allowed = Some(CpuSet::from_iter([4]));
    let placed = plan(&shape, &profile, &machine(), &hints).unwrap();
    assert!(placed.prediction.partitions.iter().all(|load| load.cpu == 4));
}

#[test]
fn hints_about_what_is_not_there_are_refused() {
    let (shape, profile) = graph(&mut Random::new(4), 3);
    let refused =
        |hints: &Hints| plan(&shape, &profile, &machine(), hints).unwrap_err().to_string();
    let hints = by_hand(vec![hand("x", &["b7"], None, WaitMode::Park)]);
    assert_eq!(
        refused(&hints),
        "partition `x` of the plan contains block `b7`, which is not in the graph"
    );
    let hints = by_hand(vec![hand("x", &["b1"], Some(99), WaitMode::Park)]);
    assert_eq!(
        refused(&hints),
        "the plan puts partition `x` on CPU 99, but this process may use only CPUs 0-15"
    );
    let pin = |block: &str, cpu| {
        let mut hints = Hints::default();
        hints.pins.insert(block.to_owned(), cpu);
        refused(&hints)
    };
    assert_eq!(
        pin("b7", 1),
        "the plan puts block `b7` on CPU 1, but this block is not in the graph"
    );
    assert_eq!(pin("b1", 16), "the plan puts block `b1` on CPU 16, but it may use only CPUs 0-15");
}

#[test]
fn empty_graphs_machines_and_profiles_have_plans() {
    let none = Topology::flat(&CpuSet::default());
    let placed = plan(&Shape::default(), &Profile::default(), &none, &Hints::default()).unwrap();
    assert!(placed.plan.partitions.is_empty());
    assert!(placed.words().contains("limit") && placed.svg("x").ends_with("</svg>\n"));
    let (shape, _) = graph(&mut Random::new(5), 4);
    let placed = plan(&shape, &Profile::default(), &machine(), &Hints::default()).unwrap();
    assert!(!placed.prediction.measured);
    assert!(placed.words().starts_with(&format!("{} part", placed.plan.partitions.len())));
}

#[test]
fn a_plan_that_exists_is_judged_by_the_same_model() {
    let (shape, profile) = graph(&mut Random::new(6), 9);
    let best = plan(&shape, &profile, &machine(), &Hints::default()).unwrap();
    let judge = |plan: &Plan| -> Prediction {
        predict(&shape, &profile, &machine(), &Hints::default(), plan).unwrap()
    };
    let again = judge(&best.plan);
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    assert!(close(again.ns_per_item, best.prediction.ns_per_item));
    let all: Vec<&str> = shape.blocks.iter().map(|block| &*block.name).collect();
    let one = Plan { partitions: vec![hand("all", &all, None, WaitMode::Park)], ..Plan::default() };
    let one = judge(&one);
    assert!(close(one.ns_per_item, best.prediction.single_ns_per_item));
    assert!(one.ns_per_item >= best.prediction.ns_per_item);
}

#[test]
fn pictures_hold_every_block_and_escape_what_they_are_given() {
    let (shape, profile) = graph(&mut Random::new(7), 30);
    let hints = by_hand(vec![hand("<&\">", &["b0"], None, WaitMode::Park)]);
    let placed = plan(&shape, &profile, &machine(), &hints).unwrap();
    let (svg, dot) = (placed.svg("a < b"), placed.dot("a \"b\""));
    assert!(svg.contains("a &lt; b") && svg.contains("&lt;&amp;&quot;&gt;"));
    for block in &shape.blocks {
        assert!(svg.contains(&format!(">{}</text>", block.name)), "{}", block.name);
        assert!(dot.contains(&format!("\"{}\\n", block.name)), "{}", block.name);
    }
    assert!(dot.contains("label=\"a \\\"b\\\"\""));
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
}
