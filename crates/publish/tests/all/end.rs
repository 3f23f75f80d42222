//! The end of the input.

use crate::{Bench, options};
use millstream_flow::blocks::{Head, NullSource};
use millstream_flow::{Graph, Plan, WaitMode, Work};
use millstream_publish::{
    DropCause, JsonlOutlet, NatsLogin, NatsOutlet, Outcomes, Outlet, OutletError, Publications,
    PublishOptions, PublishSink,
};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn a_sink_does_not_hold_its_thread_while_it_waits_at_the_end() {
    // Nobody answers at a port that is taken and does not listen.
    let held = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    let outlet = NatsOutlet::new(&address, "radio.test", NatsLogin::default()).unwrap();
    let linger = Duration::from_millis(500);
    let mut bench = Bench::new(Box::new(outlet), PublishOptions { linger, ..options() });
    bench.publish(0..10);
    bench.mock.end("in");
    let (mut calls, mut last) = (0, Work::Continue);
    while last != Work::Finished {
        last = bench.mock.call().unwrap();
        calls += 1;
        if let Work::Again(pause) = last {
            std::thread::sleep(pause);
        }
    }
    assert!(calls > 10, "{calls} calls in {linger:?}");
    let late = bench.mock.send("event", "late");
    assert!(late.unwrap_err().to_string().starts_with("the stream has ended: "));
    assert_eq!(bench.end().dropped["at_end"], 10);
}

/// An outlet that has room from some moment on, and then waits for each message.
struct SlowOutlet {
    has_room: Arc<AtomicBool>,
    taken: u64,
}

impl Outlet for SlowOutlet {
    fn name(&self) -> String {
        "slow".to_owned()
    }

    fn away_cause(&self) -> DropCause {
        DropCause::ReceiverAway
    }

    fn open(&mut self) -> Result<(), OutletError> {
        Ok(())
    }

    fn push(&mut self, _: &[u8]) -> bool {
        if !self.has_room.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
        self.taken += 1;
        true
    }

    fn exchange(&mut self, _: Instant) -> Result<Outcomes, OutletError> {
        Ok(Outcomes { acknowledged: std::mem::take(&mut self.taken), refused: 0 })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn close(&mut self) -> Result<(), OutletError> {
        Ok(())
    }
}

#[test]
fn an_outlet_that_waits_for_each_message_does_not_outlast_the_time_at_the_end() {
    let has_room = Arc::new(AtomicBool::new(false));
    let outlet = SlowOutlet { has_room: Arc::clone(&has_room), taken: 0 };
    let linger = Duration::from_millis(100);
    let mut bench = Bench::new(Box::new(outlet), PublishOptions { linger, ..options() });
    bench.publish(0..400);
    has_room.store(true, Ordering::Relaxed);
    // All would take 8 s.
    let ledger = bench.end();
    let [sent, left] = [ledger.acknowledged, ledger.dropped["at_end"]];
    assert!(left > 0 && sent + left == 400, "{}", ledger.summary());
}

#[test]
fn a_graph_ends_when_its_sink_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let publications = Publications::new();
    let outlet = Box::new(JsonlOutlet::new(&path));
    let mut graph = Graph::new();
    graph.add("zeros", NullSource::<u8>::new()).unwrap();
    graph.add("head", Head::<u8>::new(4002)).unwrap();
    graph.add("sink", PublishSink::<u8>::new(outlet, options(), &publications).unwrap()).unwrap();
    graph.connect("zeros.out", "head.in").unwrap();
    graph.connect("head.out", "sink.in").unwrap();
    let plan = Plan::single(&graph, WaitMode::Park);
    graph.run(&plan).unwrap();
    let ledger = publications.ledgers().remove(0);
    assert!(ledger.balances && ledger.acknowledged == 1001, "{}", ledger.summary());
    assert!(path.exists());
}
