//! A block with two inputs: it passes on the larger of two items, and counts what came from each.

use millstream::flow::Counter;
use millstream::prelude::*;

/// Passes on the larger item. Ports: `left`, `right`; `out`.
#[derive(Ports)]
struct Larger {
    left: In<f32>,
    right: In<f32>,
    output: Out<f32>,
    from_left: Counter,
}

impl Block for Larger {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (left, right) = (self.left.slice(), self.right.slice());
        let items = self.output.slice_mut().len().min(left.len()).min(right.len());
        for (to, (left, right)) in self.output.slice_mut().iter_mut().zip(left.iter().zip(right)) {
            *to = left.max(*right);
        }
        let from_left = left.iter().zip(right).take(items).filter(|(left, right)| left > right);
        self.from_left.add(from_left.count() as u64);
        self.left.consume(items);
        self.right.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.metric("from_left", &self.from_left);
    }
}

/// Returns the items of the block between two vectors, and how many came from the left.
fn run() -> Result<(Vec<f32>, f64), BlockError> {
    let (sink, items) = VectorSink::new();
    let (left, right, output, from_left) = (In::new(), In::new(), Out::new(), Counter::new());
    let mut graph = Graph::new();
    graph.add("up", VectorSource::new(vec![1f32, 2.0, 3.0, 4.0]))?;
    graph.add("down", VectorSource::new(vec![4f32, 3.0, 2.0, 1.0]))?;
    graph.add("larger", Larger { left, right, output, from_left })?;
    graph.add("sink", sink)?;
    graph.connect("up", "larger.left")?;
    graph.connect("down", "larger.right")?;
    graph.connect("larger", "sink")?;
    let from_left =
        graph.run(&Plan::default())?.block("larger").and_then(|block| block.metric("from_left"));
    Ok((items.take(), from_left.ok_or("the block has no metric from_left")?))
}

fn main() -> Result<(), BlockError> {
    println!("items, and how many came from the left: {:?}", run()?);
    Ok(())
}

#[test]
fn the_larger_items_pass() {
    assert_eq!(run().unwrap(), (vec![4.0, 3.0, 3.0, 4.0], 2.0));
}
