//! Tests of the sinks with files and with small brokers, from outside.

mod brokers;
mod end;
mod jsonl;
mod manners;
mod outage;
mod parameters;
mod relay;

use millstream_flow::{Block, Mock};
use millstream_publish::{Outlet, Publications, PublishLedger, PublishOptions, PublishSink};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The longest wait for another thread; generous, as the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn options() -> PublishOptions {
    PublishOptions {
        label: "test".into(),
        items: 4,
        tags: true,
        rate_hz: None,
        metrics_every: Duration::ZERO,
        queue_bytes: 1 << 20,
        linger: PATIENCE,
    }
}

/// A sink alone.
struct Bench {
    mock: Mock<PublishSink<u8>>,
    publications: Publications,
}

impl Bench {
    fn new(outlet: Box<dyn Outlet>, options: PublishOptions) -> Self {
        let publications = Publications::new();
        let sink = PublishSink::new(outlet, options, &publications).unwrap();
        Self { mock: Mock::new(sink), publications }
    }

    fn ledger(&self) -> PublishLedger {
        self.publications.ledgers().remove(0)
    }

    /// Publishes messages of four bytes, each the number of the message.
    fn publish(&mut self, numbers: std::ops::Range<u32>) {
        let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
        self.mock.feed("in", &bytes);
        self.mock.run().unwrap();
    }

    /// Ends the stream and the sink; returns the ledger, which has to balance.
    fn end(mut self) -> PublishLedger {
        self.mock.end("in");
        finish(&mut self.mock);
        let ledger = self.ledger();
        assert!(ledger.balances && ledger.waiting == 0, "{}", ledger.summary());
        ledger
    }

    /// Waits until the ledger is as wanted.
    fn until(&self, what: &str, wanted: impl Fn(&PublishLedger) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !wanted(&self.ledger()) {
            assert!(Instant::now() < end, "not {what}: {}", self.ledger().summary());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Calls a block after the end of its input until it has finished.
fn finish<B: Block>(mock: &mut Mock<B>) {
    let end = Instant::now() + PATIENCE;
    while !mock.is_finished() {
        assert!(Instant::now() < end, "it does not end");
        mock.run().unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the numbers that `publish` gave to messages, of their documents.
fn numbers(documents: &[Value]) -> Vec<u64> {
    documents.iter().map(|document| document["seq"].as_u64().unwrap()).collect()
}
