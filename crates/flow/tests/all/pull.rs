//! Items that a program takes out of a graph in a loop of its own.

use millstream_flow::blocks::{Head, NullSource, VectorSource};
use millstream_flow::{
    Block, BlockError, Context, Graph, GraphError, In, Out, Partition, Plan, Ports, PullError,
    PullRead, PullReader, WaitMode, Work, keys,
};
use millstream_ring::locks_taken;
use millstream_testkit::allocations;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest wait for another thread; generous, as the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Items from one tag to the next: so many that the tags of a full ring find room in a queue that
/// has not grown.
const EVERY: u64 = 10_000;

/// Passes items on and says that one is missing before every 10 000th. Fails at an item, if one is
/// given, and notes what its thread has allocated and locked.
#[derive(Ports)]
struct Gaps {
    input: In<u64>,
    output: Out<u64>,
    fails_at: Option<u64>,
    used: Arc<AtomicU64>,
}

impl Gaps {
    fn new() -> Self {
        Self { input: In::new(), output: Out::new(), fails_at: None, used: Arc::default() }
    }
}

impl Block for Gaps {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        self.used.store(allocations() + locks_taken(), Ordering::Relaxed);
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        let position = self.output.position();
        let first = position.next_multiple_of(EVERY) - position;
        for index in (first..items as u64).step_by(EVERY as usize) {
            self.output.tag(index as usize, keys::LOSS_ITEMS, 1u64);
        }
        self.input.consume(items);
        self.output.produce(items);
        match self.fails_at {
            Some(at) if position >= at => Err("it broke".into()),
            _ => Ok(Work::Continue),
        }
    }
}

/// Reads to the end; returns the items, and the numbers of those before which items are missing.
fn read_all(reader: &mut PullReader<u64>) -> Result<(Vec<u64>, Vec<u64>), PullError> {
    let (mut buffer, mut items, mut gaps) = ([0; 300], Vec::new(), Vec::new());
    loop {
        let read = reader.recv(&mut buffer, PATIENCE)?;
        if read.is_ended {
            return Ok((items, gaps));
        }
        assert!(read.items > 0, "nothing came in {PATIENCE:?}");
        assert_eq!(read.missing, reader.tags().len() as u64, "only losses are tagged here");
        if read.missing > 0 {
            gaps.push(items.len() as u64);
        }
        items.extend_from_slice(&buffer[..read.items]);
    }
}

#[test]
fn every_item_comes_once_and_a_tag_is_on_the_first_item_of_a_read() {
    // More than the ring holds, so the graph waits for the program.
    let sent: Vec<u64> = (0..400_000).collect();
    let mut graph = Graph::new();
    graph.add("numbers", VectorSource::new(sent.clone())).unwrap();
    graph.add("gaps", Gaps::new()).unwrap();
    graph.chain(&["numbers", "gaps"]).unwrap();
    let mut reader = graph.pull::<u64>("gaps.out").unwrap();
    let running = graph.start(&Plan::default()).unwrap();
    let (items, gaps) = read_all(&mut reader).unwrap();
    assert!(items == sent, "{} items", items.len());
    assert_eq!(gaps, (0..40).map(|gap| gap * EVERY).collect::<Vec<_>>());
    let ended = PullRead { is_ended: true, ..PullRead::default() };
    assert_eq!(reader.recv(&mut [0], PATIENCE).unwrap(), ended, "the end stays");
    running.wait().unwrap();
}

#[test]
fn a_graph_that_fails_gives_what_it_made_and_then_an_error() {
    let mut graph = Graph::new();
    graph.add("numbers", VectorSource::new((0..100_000u64).collect())).unwrap();
    graph.add("gaps", Gaps { fails_at: Some(0), ..Gaps::new() }).unwrap();
    graph.chain(&["numbers", "gaps"]).unwrap();
    let mut reader = graph.pull::<u64>("gaps").unwrap();
    let running = graph.start(&Plan::default()).unwrap();
    let error = read_all(&mut reader).unwrap_err().to_string();
    assert!(error.contains("a block failed") && error.contains("RunningGraph::wait"), "{error}");
    assert!(running.wait().unwrap_err().to_string().contains("it broke"));
}

#[test]
fn a_read_without_items_ends_with_its_time_and_a_graph_goes_on_without_its_reader() {
    let mut graph = Graph::new();
    graph.add("zeros", NullSource::<u64>::new()).unwrap();
    graph.add("some", Head::<u64>::new(1_000_000)).unwrap();
    graph.chain(&["zeros", "some"]).unwrap();
    let mut reader = graph.pull::<u64>("some").unwrap();
    let none = reader.recv(&mut [0], Duration::from_millis(1)).unwrap();
    assert_eq!(none, PullRead::default(), "the graph was not started");
    let running = graph.start(&Plan::default()).unwrap();
    assert_eq!(reader.recv(&mut [0], PATIENCE).unwrap().items, 1);
    drop(reader);
    running.wait().unwrap();
}

#[test]
fn an_output_of_other_items_or_none_is_refused() {
    let mut graph = Graph::new();
    graph.add("zeros", NullSource::<u64>::new()).unwrap();
    let error = graph.pull::<f32>("zeros").err().unwrap();
    assert!(matches!(error, GraphError::ItemTypes { .. }), "{error}");
    let error = graph.pull::<u64>("ones").err().unwrap();
    assert!(matches!(error, GraphError::UnknownBlock { .. }), "{error}");
}

#[test]
fn neither_side_allocates_or_locks_in_the_steady_state() {
    let gaps = Gaps::new();
    let used = Arc::clone(&gaps.used);
    let mut graph = Graph::new();
    graph.add("zeros", NullSource::<u64>::new()).unwrap();
    graph.add("gaps", gaps).unwrap();
    graph.chain(&["zeros", "gaps"]).unwrap();
    let mut reader = graph.pull::<u64>("gaps").unwrap();
    let blocks = graph.block_names().map(str::to_owned).collect();
    let partition = Partition { name: "all".into(), blocks, cpu: None, wait: WaitMode::Park };
    let plan = Plan { partitions: vec![partition], ..Plan::default() };
    let running = graph.start(&plan).unwrap();
    let mut buffer = vec![0; 10_000];
    let mut read = |items: usize| {
        let mut left = items;
        while left > 0 {
            left = left.saturating_sub(reader.recv(&mut buffer, PATIENCE).unwrap().items);
        }
    };
    let all = || (used.load(Ordering::Relaxed), allocations() + locks_taken());
    read(1_000_000);
    let warm = all();
    read(5_000_000);
    assert_eq!(all(), warm, "of the graph's thread, and of this one");
    running.stopper().stop();
    drop(reader);
    running.wait().unwrap();
}
