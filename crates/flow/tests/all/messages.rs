//! Messages reach running blocks, from outside and from block to block.

use crate::common::gain::Gain;
use millstream_flow::blocks::{Head, NullSink, NullSource, Throttle, VectorSink};
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Emitter, Graph, GraphFile, In, MessageError, Out,
    ParameterKind, ParameterValue, Partition, Plan, PortVisitor, Ports, Registry, RunningGraph,
    WaitMode, Work,
};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Produces ones without end, slowly; reports each message it takes, refuses odd numbers.
#[derive(Ports)]
struct Listener {
    output: Out<f32>,
    told: SyncSender<(String, ParameterValue, std::thread::ThreadId)>,
}

impl Listener {
    fn new() -> (Self, Receiver<(String, ParameterValue, std::thread::ThreadId)>) {
        let (told, heard) = sync_channel(1000);
        (Self { output: Out::new(), told }, heard)
    }
}

impl Block for Listener {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let room = self.output.slice_mut();
        let items = room.len().min(10);
        room[..items].fill(1.0);
        self.output.produce(items);
        Ok(Work::Again(Duration::from_millis(1)))
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.message("number", ParameterKind::Integer, "an even number").message(
            "word",
            ParameterKind::Text,
            "any word",
        );
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.told.send((name.to_owned(), value.clone(), std::thread::current().id()))?;
        match value.as_integer() {
            Some(n) if n % 2 != 0 => Err("expected an even number".into()),
            _ => Ok(()),
        }
    }
}

const LONG: Duration = Duration::from_secs(20);

fn listening() -> (RunningGraph, Receiver<(String, ParameterValue, std::thread::ThreadId)>) {
    let (graph, heard) = listener();
    (graph.start(&Plan::default()).unwrap(), heard)
}

fn listener() -> (Graph, Receiver<(String, ParameterValue, std::thread::ThreadId)>) {
    let (listener, heard) = Listener::new();
    let mut graph = Graph::new();
    graph.add("listener", listener).unwrap();
    graph.add("sink", NullSink::<f32>::new()).unwrap();
    graph.chain(&["listener", "sink"]).unwrap();
    (graph, heard)
}

fn stop(running: RunningGraph) -> millstream_flow::Snapshot {
    running.stopper().stop();
    running.wait().unwrap()
}

#[test]
fn messages_arrive_in_order_on_the_thread_of_the_block() {
    let (running, heard) = listening();
    for n in 0..50i64 {
        running.send("listener", "number", 2 * n).unwrap();
    }
    running.send("listener", "word", "end").unwrap();
    let mut threads = Vec::new();
    for n in 0..50i64 {
        let (name, value, thread) = heard.recv_timeout(LONG).unwrap();
        assert_eq!((name.as_str(), value), ("number", ParameterValue::Integer(2 * n)));
        threads.push(thread);
    }
    assert_eq!(heard.recv_timeout(LONG).unwrap().1, ParameterValue::from("end"));
    threads.dedup();
    assert_eq!(threads.len(), 1);
    assert_ne!(threads[0], std::thread::current().id());
    let snapshot = stop(running);
    let messages = snapshot.block("listener").unwrap().messages.clone().unwrap();
    assert_eq!((messages.taken, messages.refused, messages.refusal), (51, 0, None));
    assert_eq!(snapshot.block("sink").unwrap().messages, None);
}

#[test]
fn a_refused_message_harms_nobody_and_is_told() {
    let (running, heard) = listening();
    running.send("listener", "number", 3i64).unwrap();
    running.send("listener", "number", 4.0).unwrap();
    assert_eq!(heard.recv_timeout(LONG).unwrap().1, ParameterValue::Integer(3));
    assert_eq!(heard.recv_timeout(LONG).unwrap().1, ParameterValue::Integer(4));
    let messages = stop(running).block("listener").unwrap().messages.clone().unwrap();
    assert_eq!((messages.taken, messages.refused), (2, 1));
    assert_eq!(messages.refusal.unwrap(), "number = 3: expected an even number");
}

#[test]
fn what_cannot_be_sent_says_what_can() {
    let (running, _heard) = listening();
    let send = |block: &str, message: &str, value: ParameterValue| {
        running.send(block, message, value).unwrap_err().to_string()
    };
    let one = || ParameterValue::Integer(1);
    assert_eq!(
        send("speaker", "number", one()),
        "there is no block with the name `speaker`; there are: listener, sink"
    );
    assert_eq!(
        send("listener", "sentence", one()),
        "block `listener` has no message `sentence`; its messages are: number, word"
    );
    assert_eq!(
        send("sink", "number", one()),
        "block `sink` has no message `number`; its messages are: none"
    );
    assert_eq!(
        send("listener", "number", ParameterValue::Number(0.5)),
        "the message `listener.number` takes a whole number, but `0.5` was given"
    );
    let (graph, _heard) = listener();
    let read = |text: &str| graph.read_message("listener", "number", text);
    assert_eq!(read("1e3").unwrap(), ParameterValue::Integer(1000));
    assert!(matches!(
        read("many"),
        Err(millstream_flow::GraphError::Message(MessageError::WrongKind { .. }))
    ));
    stop(running);
}

#[test]
fn too_many_messages_and_a_finished_block_are_told_apart() {
    // Takes the first message and does not return before it is released.
    struct Deaf(Receiver<()>, Out<f32>);
    impl Ports for Deaf {
        fn ports(&mut self, ports: &mut dyn PortVisitor) {
            ports.output("out", &mut self.1);
        }
    }

    impl Block for Deaf {
        fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
            self.0.recv_timeout(LONG)?;
            Ok(Work::Finished)
        }
        fn facts(&self, facts: &mut BlockFacts) {
            facts.message("hello", ParameterKind::Boolean, "nothing");
        }

        fn message(&mut self, _: &str, _: &ParameterValue) -> Result<(), BlockError> {
            Ok(())
        }
    }
    let (let_go, wait) = sync_channel(1);
    let mut graph = Graph::new();
    graph.add("deaf", Deaf(wait, Out::new())).unwrap();
    graph.add("sink", NullSink::<f32>::new()).unwrap();
    graph.chain(&["deaf", "sink"]).unwrap();
    let running = graph.start(&Plan::default()).unwrap();
    let error = (0..1000).find_map(|_| running.send("deaf", "hello", true).err()).unwrap();
    assert_eq!(error, MessageError::Full { block: "deaf".into(), waiting: 64 });
    assert!(error.to_string().contains("send again when it has handled them"));
    let_go.send(()).unwrap();
    while !running.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let error = running.send("deaf", "hello", true).unwrap_err();
    assert_eq!(error, MessageError::Finished { block: "deaf".into() });
    running.wait().unwrap();
}

#[test]
fn an_idle_partition_wakes_for_a_message() {
    let mut graph = Graph::new();
    graph.add("source", NullSource::<f32>::new()).unwrap();
    // One item in three years, in a partition that sleeps all that time.
    graph.add("pace", Throttle::<f32>::new(1e-8).unwrap()).unwrap();
    graph.add("head", Head::<f32>::new(100)).unwrap();
    graph.add("sink", NullSink::<f32>::new()).unwrap();
    graph.chain(&["source", "pace", "head", "sink"]).unwrap();
    let running = graph.start(&Plan::default()).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    running.send("pace", "rate_hz", 1e6).unwrap();
    assert_eq!(running.wait().unwrap().block("sink").unwrap().items_in, 100);
}

/// Passes items on and emits their number.
#[derive(Ports)]
struct Teller {
    input: In<f32>,
    output: Out<f32>,
    passed: Emitter,
}

impl Block for Teller {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.input.slice().len().min(self.output.slice_mut().len());
        self.output.slice_mut()[..items].copy_from_slice(&self.input.slice()[..items]);
        self.input.consume(items);
        self.output.produce(items);
        if items > 0 {
            self.passed.emit(self.output.position() as i64);
        }
        Ok(Work::Continue)
    }
}

fn telling(to: &str) -> (Graph, Result<(), millstream_flow::GraphError>) {
    let mut graph = Graph::new();
    let (listener, heard) = Listener::new();
    drop(heard);
    let passed = Emitter::new(ParameterKind::Integer);
    graph.add("listener", listener).unwrap();
    graph.add("teller", Teller { input: In::new(), output: Out::new(), passed }).unwrap();
    graph.add("gain", Gain::<f32>::new(1.0)).unwrap();
    graph.add("head", Head::<f32>::new(500)).unwrap();
    let (sink, _) = VectorSink::<f32>::new();
    graph.add("sink", sink).unwrap();
    graph.chain(&["listener", "teller", "gain", "head", "sink"]).unwrap();
    let connected = graph.connect_message("teller.passed", to);
    (graph, connected)
}

#[test]
fn a_block_tells_another_in_every_plan() {
    for each in [false, true] {
        let (graph, connected) = telling("gain.factor");
        connected.unwrap();
        let names: Vec<String> = graph.block_names().map(str::to_owned).collect();
        let groups = if each { names.into_iter().map(|n| vec![n]).collect() } else { vec![names] };
        let partitions = groups.into_iter().enumerate().map(|(n, blocks)| Partition {
            name: format!("p{n}"),
            blocks,
            cpu: None,
            wait: WaitMode::Park,
        });
        let plan = Plan { partitions: partitions.collect(), ..Plan::default() };
        let snapshot = graph.run(&plan).unwrap();
        let messages = snapshot.block("gain").unwrap().messages.clone().unwrap();
        assert!(messages.taken >= 1 && messages.refused == 0, "{messages:?}");
    }
}

#[test]
fn ends_of_messages_that_do_not_fit_say_what_there_is() {
    let error = |to: &str| telling(to).1.unwrap_err().to_string();
    assert_eq!(
        error("listener.word"),
        "`teller.passed` (a whole number) cannot be connected to `listener.word` (text), because \
         their kinds of value differ"
    );
    assert_eq!(
        error("gain.phase"),
        "block `gain` has no message `phase`; its messages are: factor"
    );
    assert_eq!(error("gain"), "`gain` is not the name of a message: write `BLOCK.MESSAGE`");
    let mut graph = telling("gain.factor").0;
    let error = graph.connect_message("teller.level", "gain.factor").unwrap_err();
    assert_eq!(
        error.to_string(),
        "block `teller` does not send a message `level`; it sends: passed"
    );
}

#[test]
fn a_graph_file_says_where_messages_go() {
    let file = |messages: &str| {
        let text = format!(
            "[[block]]\nname = \"a\"\ntype = \"null_source\"\n[[block]]\nname = \"b\"\n\
             type = \"null_sink\"\n[graph]\nconnections = [\"a -> b\"]\nmessages = [\"{messages}\"]"
        );
        GraphFile::parse("g.toml", &text).unwrap().build(&Registry::builtin(), &[]).map(|_| ())
    };
    let error = |messages: &str| file(messages).unwrap_err().to_string();
    assert_eq!(
        error("a.x"),
        "g.toml: message connection `a.x` cannot be read: write `block.emitter -> block.message`"
    );
    assert_eq!(
        error("a.x -> b.y"),
        "g.toml: block `a` does not send a message `x`; it sends: none"
    );
}

/// A source without items.
struct Silent(Out<f32>);

impl Ports for Silent {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.output("out", &mut self.0);
    }
}

impl Block for Silent {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        Ok(Work::Again(Duration::from_millis(1)))
    }
}

#[test]
fn a_head_that_is_told_to_end_waits_for_no_item() {
    let mut graph = Graph::new();
    graph.add("silent", Silent(Out::new())).unwrap();
    graph.add("head", Head::<f32>::new(100)).unwrap();
    graph.add("sink", NullSink::<f32>::new()).unwrap();
    graph.chain(&["silent", "head", "sink"]).unwrap();
    let plan = Plan::single(&graph, WaitMode::Park);
    let running = graph.start(&plan).unwrap();
    running.send("head", "more", 0i64).unwrap();
    let deadline = std::time::Instant::now() + LONG;
    while !running.is_finished() {
        assert!(std::time::Instant::now() < deadline, "it waits for an item that never comes");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(running.wait().unwrap().block("head").unwrap().items_out, 0);
}

/// Emits to itself whatever it takes, and counts.
#[derive(Ports)]
struct Echo {
    output: Out<f32>,
    again: Emitter,
    taken: u64,
}

impl Block for Echo {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        if self.taken == 0 {
            self.again.emit(1.0);
        }
        Ok(if self.taken > 1000 { Work::Finished } else { Work::Again(Duration::ZERO) })
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.message("it", ParameterKind::Number, "a number");
    }

    fn message(&mut self, _: &str, _: &ParameterValue) -> Result<(), BlockError> {
        self.taken += 1;
        self.again.emit(1.0);
        Ok(())
    }
}

#[test]
fn a_block_that_answers_itself_still_works() {
    let mut graph = Graph::new();
    let again = Emitter::new(ParameterKind::Number);
    graph.add("echo", Echo { output: Out::new(), again, taken: 0 }).unwrap();
    let (sink, _) = VectorSink::<f32>::new();
    graph.add("sink", sink).unwrap();
    graph.chain(&["echo", "sink"]).unwrap();
    graph.connect_message("echo.again", "echo.it").unwrap();
    let snapshot = graph.run(&Plan::default()).unwrap();
    assert!(snapshot.block("echo").unwrap().messages.clone().unwrap().taken > 1000);
}
