//! Brokers that go away, refuse, or are not there.

use crate::brokers::{self, Got, Visit, broker};
use crate::{Bench, PATIENCE, numbers, options};
use millstream_publish::{
    DropCause, MqttLogin, MqttOutlet, NatsLogin, NatsOutlet, Outcomes, Outlet, OutletError,
    PublishOptions,
};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use serde_json::Value;
use std::net::SocketAddrV4;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn nats(server: &str) -> Box<dyn Outlet> {
    Box::new(NatsOutlet::new(server, "radio.test", NatsLogin::default()).unwrap())
}

fn mqtt(broker: &str) -> Box<dyn Outlet> {
    Box::new(MqttOutlet::new(broker, "radio/test", MqttLogin::default()).unwrap())
}

/// What a broker got until it has message `last`.
fn until(got: &Got, last: u64) -> Vec<Value> {
    let mut all = Vec::new();
    while all.last().is_none_or(|document: &Value| document["seq"] != last) {
        all.push(got.recv_timeout(PATIENCE).unwrap());
    }
    all
}

/// Publishes 1000 messages to a broker that closes its first connection after 100; all arrive, in
/// order, those without acknowledgement twice.
fn survives_a_lost_connection(outlet: Box<dyn Outlet>, got: &Got) {
    let mut bench = Bench::new(outlet, options());
    (0..10).for_each(|n| bench.publish(100 * n..100 * (n + 1)));
    bench.until("all acknowledged", |ledger| ledger.acknowledged == 1000);
    let documents = until(got, 999);
    let ledger = bench.end();
    assert_eq!((ledger.offered, ledger.dropped_total(), ledger.connections), (1000, 0, 2));
    let mut seen = numbers(&documents);
    let again = seen.windows(2).position(|pair| pair[1] <= pair[0]);
    let twice = seen.len() as u64 - 1000;
    assert!(twice > 0 && twice <= ledger.resent, "{twice} twice of {}", ledger.resent);
    assert_eq!(again, Some(99), "only behind the end of the first connection");
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, Vec::from_iter(0..1000));
}

#[test]
fn a_lost_connection_costs_no_message() {
    static VISITS: [Visit; 2] = [Visit::Takes(100), Visit::Stays];
    let (address, got) = broker(&VISITS, brokers::nats);
    survives_a_lost_connection(nats(&address), &got);
    let (address, got) = broker(&VISITS, brokers::mqtt);
    survives_a_lost_connection(mqtt(&address), &got);
}

#[test]
fn a_refused_message_is_counted_as_that() {
    static VISITS: [Visit; 1] = [Visit::Refuses(3)];
    let (address, got) = broker(&VISITS, brokers::nats);
    let mut bench = Bench::new(nats(&address), options());
    bench.publish(0..10);
    let documents = until(&got, 9);
    let ledger = bench.end();
    assert_eq!(numbers(&documents), Vec::from_iter(3..10));
    assert_eq!((ledger.acknowledged, ledger.dropped["refused"]), (7, 3));
    assert_eq!((ledger.connections, ledger.resent), (1, 0), "the connection stays");
}

#[test]
fn a_message_on_which_the_broker_always_closes_is_given_up() {
    static VISITS: [Visit; 6] = [
        Visit::Takes(1),
        Visit::Takes(1),
        Visit::Takes(1),
        Visit::Takes(1),
        Visit::Takes(1),
        Visit::Stays,
    ];
    let (address, got) = broker(&VISITS, brokers::mqtt);
    let mut bench = Bench::new(mqtt(&address), options());
    bench.publish(0..3);
    let documents = until(&got, 2);
    let ledger = bench.end();
    assert_eq!(numbers(&documents), [0, 0, 0, 0, 0, 1, 2]);
    assert_eq!((ledger.acknowledged, ledger.dropped["refused"]), (2, 1));
}

#[test]
fn a_message_that_is_too_long_is_counted_and_the_next_go_on() {
    static VISITS: [Visit; 1] = [Visit::Stays];
    let (address, got) = broker(&VISITS, brokers::nats);
    let settings = PublishOptions { items: 100_000, ..options() };
    let mut bench = Bench::new(nats(&address), settings);
    bench.mock.feed("in", &vec![0u8; 100_000]);
    bench.mock.run().unwrap();
    bench.mock.send("event", "short").unwrap();
    let documents = until(&got, 1);
    let ledger = bench.end();
    assert_eq!(numbers(&documents), [1]);
    assert_eq!((ledger.acknowledged, ledger.dropped["too_large"]), (1, 1));
}

#[test]
fn without_a_broker_nothing_waits_and_each_message_is_counted() {
    // A port that nobody listens at: its socket is bound and does not accept.
    let held = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&held, &"127.0.0.1:0".parse::<SocketAddrV4>().unwrap()).unwrap();
    let address = SocketAddrV4::try_from(getsockname(&held).unwrap()).unwrap().to_string();
    for outlet in [nats(&address), mqtt(&address)] {
        let linger = Duration::from_millis(50);
        let settings = PublishOptions { queue_bytes: 64 << 10, linger, ..options() };
        let mut bench = Bench::new(outlet, settings);
        let began = Instant::now();
        (0..100).for_each(|n| bench.publish(100 * n..100 * (n + 1)));
        let calls = began.elapsed();
        bench.until("an error", |ledger| ledger.last_error.is_some());
        let ledger = bench.end();
        let (away, at_end) = (ledger.dropped["broker_away"], ledger.dropped["at_end"]);
        assert_eq!((ledger.acknowledged, away + at_end), (0, 10_000));
        assert!(away > 0 && at_end > 0, "{}", ledger.summary());
        assert!(calls < PATIENCE, "it waited for {calls:?}");
        let error = ledger.last_error.unwrap();
        assert!(error.starts_with(&format!("cannot connect to {address}: ")), "{error}");
    }
}

#[test]
fn who_speaks_another_protocol_is_no_broker() {
    fn web(stream: std::net::TcpStream, _: Visit, _: &mut dyn FnMut(Value)) -> std::io::Result<()> {
        std::io::Write::write_all(&mut &stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
        // Until the client closes: an unread request would reset the connection.
        std::io::copy(&mut &stream, &mut std::io::sink()).map(drop)
    }
    // The sink tries again; the error stays the same.
    static VISITS: [Visit; 1000] = [Visit::Stays; 1000];
    let no_wait = || PublishOptions { linger: Duration::ZERO, ..options() };
    for (make, expected) in [
        (nats as fn(&str) -> Box<dyn Outlet>, "NATS"),
        (mqtt as fn(&str) -> Box<dyn Outlet>, "MQTT 3.1.1"),
    ] {
        let (address, _got) = broker(&VISITS, web);
        let mut bench = Bench::new(make(&address), no_wait());
        bench.publish(0..1);
        bench.until("an error", |ledger| ledger.last_error.is_some());
        let error = bench.end().last_error.unwrap();
        let expected = format!("does not speak {expected}: it answered HTTP");
        assert!(error.contains(&expected), "{error}");
    }
}

/// An outlet whose connections end on message `culprit`, or its first ones, `failures`, on any.
struct Choking {
    culprit: Option<u64>,
    failures: u32,
    taken: Vec<u64>,
    arrived: Arc<Mutex<Vec<u64>>>,
}

impl Outlet for Choking {
    fn name(&self) -> String {
        "test".into()
    }

    fn away_cause(&self) -> DropCause {
        DropCause::BrokerAway
    }

    fn open(&mut self) -> Result<(), OutletError> {
        self.taken.clear();
        Ok(())
    }

    fn may_choke(&self) -> bool {
        self.culprit.is_some()
    }

    fn push(&mut self, message: &[u8]) -> bool {
        let document: Value = serde_json::from_slice(message).unwrap();
        self.taken.push(document["seq"].as_u64().unwrap());
        true
    }

    fn exchange(&mut self, _: Instant) -> Result<Outcomes, OutletError> {
        let fails = !self.taken.is_empty() && self.failures > 0;
        self.failures -= u32::from(fails);
        if fails || self.culprit.is_some_and(|culprit| self.taken.contains(&culprit)) {
            return Err(OutletError("gone".into()));
        }
        let acknowledged = self.taken.len() as u64;
        self.arrived.lock().unwrap().append(&mut self.taken);
        Ok(Outcomes { acknowledged, refused: 0 })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn close(&mut self) -> Result<(), OutletError> {
        Ok(())
    }
}

#[test]
fn only_the_message_that_ends_connections_is_given_up() {
    let arrived: Arc<Mutex<Vec<u64>>> = Arc::new(Mutex::new(Vec::new()));
    for (culprit, failures, expected) in
        [(Some(2), 0, vec![0, 1, 3, 4]), (None, 5, vec![0, 1, 2, 3, 4])]
    {
        arrived.lock().unwrap().clear();
        let to = Arc::clone(&arrived);
        let outlet = Choking { culprit, failures, taken: Vec::new(), arrived: to };
        let mut bench = Bench::new(Box::new(outlet), options());
        bench.publish(0..5);
        let ledger = bench.end();
        let refused = u64::from(culprit.is_some());
        assert_eq!(ledger.dropped["refused"], refused, "{}", ledger.summary());
        assert_eq!(*arrived.lock().unwrap(), expected);
    }
}
