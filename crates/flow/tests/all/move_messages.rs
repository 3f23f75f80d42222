//! Messages to blocks that are moved.

use crate::common::Nibble;
use crate::common::moving::{LIMIT, Random};
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Emitter, Graph, In, MessageError, Out, ParameterKind,
    ParameterValue, Ports, Work,
};
use std::sync::{Arc, Mutex};

const MOVES: usize = 100;

/// Produces items without end and records every message that it takes.
#[derive(Ports)]
struct Listener {
    output: Out<u32>,
    heard: Arc<Mutex<Vec<(String, i64)>>>,
}

impl Block for Listener {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.output.slice_mut().len().min(100);
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        for name in ["outside", "block"] {
            facts.message(name, ParameterKind::Integer, "a number");
        }
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let value = value.as_integer().ok_or("a number was promised")?;
        self.heard.lock().unwrap().push((name.to_owned(), value));
        Ok(())
    }
}

/// Emits its number of calls, now and then.
#[derive(Ports)]
struct Teller {
    input: In<u32>,
    #[port("count")]
    emitter: Emitter,
    told: i64,
}

impl Block for Teller {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.input.slice().len().min(1000);
        self.input.consume(items);
        let lost = self.emitter.lost().get();
        self.emitter.emit(self.told);
        // A message that was lost is emitted again.
        self.told += i64::from(self.emitter.lost().get() == lost);
        Ok(Work::Continue)
    }
}

#[test]
fn messages_arrive_once_and_in_order_through_moves() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Listener { output: Out::new(), heard: Arc::clone(&heard) };
    let mut graph = Graph::new();
    graph.add("listener", listener).unwrap();
    graph.add("between", Nibble::new(3, 100)).unwrap();
    let emitter = Emitter::new(ParameterKind::Integer);
    graph.add("teller", Teller { input: In::new(), emitter, told: 0 }).unwrap();
    graph.chain(&["listener", "between", "teller"]).unwrap();
    graph.connect_message("teller.count", "listener.block").unwrap();
    let names: Vec<String> = graph.block_names().map(str::to_owned).collect();
    let mut random = Random::new(11);
    let mut running = graph.start(&random.plan(&names, "mm")).unwrap();
    let mut sent = 0i64;
    for _ in 0..MOVES {
        for _ in 0..random.below(20) {
            match running.send("listener", "outside", sent) {
                Ok(()) => sent += 1,
                Err(MessageError::Full { .. }) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        running.repartition(&random.plan(&names, "mm"), LIMIT).unwrap();
    }
    let told = |name: &str| -> Vec<i64> {
        let heard = heard.lock().unwrap();
        heard.iter().filter(|(from, _)| from == name).map(|(_, value)| *value).collect()
    };
    while told("outside").len() < sent as usize || told("block").len() < MOVES {
        std::thread::yield_now();
    }
    running.stopper().stop();
    let snapshot = running.wait().unwrap();
    let (outside, block) = (told("outside"), told("block"));
    println!("{sent} messages from outside, {} of a block", block.len());
    assert_eq!(outside, (0..sent).collect::<Vec<_>>());
    assert_eq!(block, (0..block.len() as i64).collect::<Vec<_>>());
    let stats = snapshot.block("listener").unwrap().messages.clone().unwrap();
    assert_eq!((stats.taken, stats.refused), ((outside.len() + block.len()) as u64, 0));
}
