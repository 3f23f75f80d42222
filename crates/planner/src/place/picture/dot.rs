//! A plan for Graphviz.

use super::flow;
use super::paint::{distance_colour, load_colour};
use crate::place::explain::{share_of, time};
use crate::place::{CpuGroup, Placed};
use std::fmt::Write;

impl Placed {
    /// Returns the plan in Graphviz's language: `dot -Tpng plan.dot -o plan.png`.
    #[must_use]
    pub fn dot(&self, title: &str) -> String {
        let mut text = format!(
            "digraph plan {{\n  rankdir=LR; compound=true; fontname=\"sans-serif\";\n  \
             label={}; labelloc=t;\n  node [shape=box, style=\"filled,rounded\", \
             fontname=\"sans-serif\", fontsize=11];\n  \
             edge [fontname=\"sans-serif\", fontsize=9, color=\"#7a828e\"];\n",
            quoted(title)
        );
        let all: Vec<usize> = (0..self.prediction.partitions.len()).collect();
        self.groups(&mut text, 0, &all, 1);
        for edge in &self.prediction.edges {
            let colour = edge.cut.as_ref().map(|cut| distance_colour(cut.distance));
            let _ = writeln!(
                text,
                "  b{} -> b{} [label={}{}];",
                edge.writer,
                edge.reader,
                quoted(&flow(&self.prediction, edge.bytes)),
                colour.map_or_else(String::new, |colour| format!(
                    ", color=\"{colour}\", penwidth=2.5"
                ))
            );
        }
        text.push_str("}\n");
        text
    }

    /// Writes the frames from a depth on that hold some of these partitions, and the partitions
    /// outside of frames.
    fn groups(&self, text: &mut String, depth: usize, partitions: &[usize], indent: usize) {
        let pad = "  ".repeat(indent);
        let mut left: Vec<usize> = partitions.to_vec();
        let here = |frame: &&CpuGroup| frame.depth == depth;
        for (index, frame) in self.frames.iter().enumerate().filter(|(_, frame)| here(frame)) {
            let (inside, outside): (Vec<usize>, Vec<usize>) =
                left.iter().partition(|partition| frame.partitions.contains(partition));
            if inside.is_empty() {
                continue;
            }
            let _ = writeln!(text, "{pad}subgraph cluster_frame{index} {{");
            let _ = writeln!(
                text,
                "{pad}  label={}; style=rounded; color=\"#9aa5b8\"; fontsize=10;",
                quoted(&frame.label)
            );
            self.groups(text, depth + 1, &inside, indent + 1);
            let _ = writeln!(text, "{pad}}}");
            left = outside;
        }
        let deeper = self.frames.iter().any(|frame| frame.depth > depth);
        if deeper && !left.is_empty() {
            self.groups(text, depth + 1, &left, indent);
        } else {
            left.iter().for_each(|partition| self.partition(text, *partition, &pad));
        }
    }

    fn partition(&self, text: &mut String, index: usize, pad: &str) {
        let load = &self.prediction.partitions[index];
        let share = share_of(load, &self.prediction) * 100.0;
        let label = format!("CPU {} · {} · {share:.0} %", load.cpu, load.name);
        let _ = writeln!(text, "{pad}subgraph cluster_partition{index} {{");
        let _ = writeln!(
            text,
            "{pad}  label={}; style=\"filled,rounded\"; color=\"#c8ccd4\"; fillcolor=white;",
            quoted(&label)
        );
        let blocks = self.prediction.blocks.iter().enumerate();
        for (number, block) in blocks.filter(|(_, block)| block.partition == index) {
            let share = block.work_ns / self.prediction.ns_per_item.max(f64::MIN_POSITIVE);
            let _ = writeln!(
                text,
                "{pad}  b{number} [label={}, fillcolor=\"{}\"];",
                quoted(&format!("{}\n{}", block.name, time(block.work_ns))),
                load_colour(share)
            );
        }
        let _ = writeln!(text, "{pad}}}");
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
