//! Samples in packets of VITA 49.2 to several receivers.

use crate::PATIENCE;
use millstream_flow::{Mock, TagTime, TagValue, keys};
use millstream_publish::{Publications, PublishLedger, ReceiverAddress, Vita49Options, Vita49Sink};
use millstream_wire::vita49::Epoch;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

const SAMPLES: usize = 10;

struct Relay {
    mock: Mock<Vita49Sink>,
    publications: Publications,
}

impl Relay {
    fn new(to: &[String], queue_bytes: usize) -> Self {
        let options = Vita49Options {
            stream: 7,
            epoch: Epoch::Other,
            samples: SAMPLES,
            rate_hz: 1000.0,
            bandwidth_hz: 800.0,
            frequency_hz: Some(98.5e6),
            gain_db: Some(20.0),
            context_every: Duration::from_secs(1),
            queue_bytes,
            linger: Duration::from_millis(200),
        };
        let publications = Publications::new();
        let outlet = |to: &String| to.parse::<ReceiverAddress>().unwrap().outlet();
        let sink = Vita49Sink::new(to.iter().map(outlet).collect(), options, &publications);
        Self { mock: Mock::new(sink.unwrap()), publications }
    }

    /// Sends samples, each its number from `from`.
    fn send(&mut self, from: u32, count: u32) {
        let samples: Vec<[i16; 2]> =
            (from..from + count).map(|n| [(n >> 16) as i16, n as i16]).collect();
        self.mock.feed("in", &samples);
        self.mock.run().unwrap();
    }

    fn end(mut self) -> Vec<PublishLedger> {
        self.mock.end("in");
        crate::finish(&mut self.mock);
        let ledgers = self.publications.ledgers();
        for ledger in &ledgers {
            assert!(ledger.balances && ledger.waiting == 0, "{}", ledger.summary());
        }
        ledgers
    }
}

/// A packet: its kind, count and time in milliseconds; the numbers of its samples, or whether it
/// tells a loss.
#[derive(Debug, Eq, PartialEq)]
enum Packet {
    Data(u8, u64, Vec<u32>),
    Context(u8, u64, bool),
}

fn read(bytes: &[u8]) -> Packet {
    let words: Vec<_> =
        bytes.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
    assert_eq!((words[0] & 0xFFFF) as usize, bytes.len() / 4);
    assert_eq!(words[1..3], [7, 0x6A_621E]);
    let count = (words[0] >> 16 & 0xF) as u8;
    let picoseconds = u64::from(words[5]) << 32 | u64::from(words[6]);
    let ms = u64::from(words[4]) * 1000 + picoseconds.div_ceil(1_000_000_000);
    match words[0] >> 28 {
        1 => Packet::Data(count, ms, words[7..].to_vec()),
        4 => Packet::Context(count, ms, words[24] & 1 << 12 != 0),
        other => panic!("type {other}"),
    }
}

fn udp() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    (socket, address)
}

fn next(socket: &UdpSocket) -> Packet {
    let mut bytes = [0; 2000];
    let length = socket.recv(&mut bytes).unwrap();
    read(&bytes[..length])
}

#[test]
fn a_gap_shows_in_time_count_and_context() {
    let (first, to_first) = udp();
    let (second, to_second) = udp();
    let mut relay = Relay::new(&[to_first, to_second], 1 << 20);
    let time = |seconds: u64| TagTime { seconds, fraction: 0 };
    relay.mock.tag("in", 0, keys::RX_TIME, time(5));
    // Behind 25 samples, 75 are missing.
    relay.mock.tag("in", 25, keys::LOSS_CAUSE, TagValue::text("network_loss"));
    relay.mock.tag("in", 25, keys::LOSS_ITEMS, 75u64);
    relay.mock.tag("in", 25, keys::RX_TIME, TagTime::from_ticks(5100, 1000.0));
    relay.send(5000, 25);
    relay.send(5100, 20);
    relay.send(5120, 3);
    let ledgers = relay.end();
    let numbers = |from: u32, count: u32| (from..from + count).collect::<Vec<_>>();
    let expected = [
        Packet::Context(0, 5000, false),
        Packet::Data(0, 5000, numbers(5000, 10)),
        Packet::Data(1, 5010, numbers(5010, 10)),
        Packet::Data(2, 5020, numbers(5020, 5)),
        Packet::Context(1, 5100, true),
        Packet::Data(4, 5100, numbers(5100, 10)),
        Packet::Data(5, 5110, numbers(5110, 10)),
        Packet::Data(6, 5120, numbers(5120, 3)),
    ];
    for socket in [first, second] {
        for packet in &expected {
            assert_eq!(&next(&socket), packet);
        }
    }
    let sums: Vec<_> = ledgers.iter().map(|one| (one.offered, one.acknowledged)).collect();
    assert_eq!(sums, [(8, 8), (8, 8)]);
}

#[test]
fn context_comes_again_after_its_interval() {
    let (socket, to) = udp();
    let mut relay = Relay::new(&[to], 1 << 20);
    relay.send(0, 2500);
    relay.end();
    let context: Vec<_> = (0..250 + 3)
        .filter_map(|_| match next(&socket) {
            Packet::Context(count, ms, loss) => Some((count, ms, loss)),
            Packet::Data(..) => None,
        })
        .collect();
    assert_eq!(context, [(0, 0, false), (1, 1000, false), (2, 2000, false)]);
}

#[test]
fn a_receiver_that_does_not_read_hurts_no_other() {
    let stalled = TcpListener::bind("127.0.0.1:0").unwrap();
    let reading = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = |listener: &TcpListener| format!("tcp:{}", listener.local_addr().unwrap());
    let mut relay = Relay::new(&[to(&stalled), to(&reading)], 256 << 10);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        reading.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    // Until the kernel's buffers of the stalled one are full, and its queue.
    let (mut sent, began) = (0, Instant::now());
    loop {
        relay.send(sent, 1000);
        sent += 1000;
        let [stalled, reading] = &relay.publications.ledgers()[..] else { panic!() };
        assert_eq!(reading.dropped_total(), 0, "{}", reading.summary());
        if stalled.dropped["queue_full"] > 100 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{}", stalled.summary());
        // As fast as the other one takes it.
        while relay.publications.ledgers()[1].waiting > 1000 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let ledgers = relay.end();
    let bytes = reader.join().unwrap();
    let (mut at, mut samples) = (0, 0);
    while at < bytes.len() {
        let words = u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]);
        let packet = &bytes[at..at + 4 * usize::from(words)];
        if let Packet::Data(_, _, numbers) = read(packet) {
            assert_eq!(numbers[0], samples);
            samples += numbers.len() as u32;
        }
        at += packet.len();
    }
    assert_eq!((samples, ledgers[1].acknowledged), (sent, ledgers[1].offered));
    // The kernel may take what is left, after all.
    assert!(ledgers[0].dropped["queue_full"] > 100, "{}", ledgers[0].summary());
}

#[test]
fn nobody_at_a_port_is_counted_and_hurts_no_other() {
    let (socket, to) = udp();
    // A socket that is connected elsewhere: nobody listens to us.
    let (held, nobody) = udp();
    held.connect("127.0.0.1:9").unwrap();
    let mut relay = Relay::new(&[nobody, to], 1 << 20);
    for n in 0..20 {
        relay.send(10 * n, 10);
        assert_eq!(next(&socket) == Packet::Context(0, 0, false), n == 0);
        if n == 0 {
            next(&socket);
        }
        // So that the answer to a packet comes before the next one.
        std::thread::sleep(Duration::from_millis(3));
    }
    let ledgers = relay.end();
    assert!(ledgers[0].dropped["refused"] > 0, "{}", ledgers[0].summary());
    assert_eq!(ledgers[1].acknowledged, 21);
}
