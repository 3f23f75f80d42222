//! A server with a running graph, and clients for it.

use millstream_flow::{
    Block, BlockError, Complex, Context, Graph, Out, Plan, Ports, RunningGraph, TagTime, TagValue,
    Work, blocks, keys,
};
use millstream_web::{Hello, ServerOptions, StreamFacts, Streams, WebAddress, WebServer};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

/// The sample rate of the bench's stream.
pub const RATE_HZ: f64 = 200e3;
/// Its centre.
pub const CENTRE_HZ: f64 = 100e6;
/// Its tone, from the centre.
pub const TONE_HZ: f64 = 25e3;
/// Samples of a batch, one each 5 ms.
const BATCH: usize = 1000;
/// No wait of a test takes longer, on the busiest machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A tone in real time, with a loss after each second.
#[derive(Ports)]
struct Tone {
    output: Out<Complex<f32>>,
    began: Option<Instant>,
    batches: u64,
    /// Samples that are missing so far.
    missing: u64,
    has_gaps: bool,
}

impl Block for Tone {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let began = *self.began.get_or_insert(context.now);
        let due = began + Duration::from_millis(5) * self.batches as u32;
        if due > context.now {
            return Ok(Work::Again(due - context.now));
        }
        if self.output.slice_mut().len() < BATCH {
            return Ok(Work::Again(Duration::from_millis(1)));
        }
        let is_gap = self.has_gaps && self.batches % 200 == 199;
        if is_gap {
            self.missing += 500;
            self.output.tag(0, keys::LOSS_CAUSE, TagValue::text("network_loss"));
            self.output.tag(0, keys::LOSS_ITEMS, 500u64);
        }
        let first = self.batches * BATCH as u64;
        if is_gap || self.batches == 0 {
            let time = TagTime::from_ticks(1_000_000 + first + self.missing, RATE_HZ);
            self.output.tag(0, keys::RX_TIME, time);
        }
        let step = std::f64::consts::TAU * TONE_HZ / RATE_HZ;
        for (sample, n) in self.output.slice_mut()[..BATCH].iter_mut().zip(first..) {
            let phase = (step * (n % 1_000_000) as f64) as f32;
            *sample = Complex::from_polar(0.1, phase);
        }
        self.output.produce(BATCH);
        self.batches += 1;
        Ok(Work::Again(Duration::ZERO))
    }
}

/// A server and its graph.
pub struct Bench {
    pub server: WebServer,
    pub running: Option<RunningGraph>,
    pub address: SocketAddr,
}

impl Bench {
    pub fn new(address: &str, control: bool, has_gaps: bool) -> Self {
        let mut graph = Graph::new();
        let tone =
            Tone { output: Out::with_min_items(0), began: None, batches: 0, missing: 0, has_gaps };
        graph.add("tone", tone).unwrap();
        graph.add("sink", blocks::NullSink::<Complex<f32>>::new()).unwrap();
        graph.chain(&["tone", "sink"]).unwrap();
        let mut streams = Streams::new();
        let facts = StreamFacts {
            rate_hz: Some(RATE_HZ),
            centre_hz: Some(CENTRE_HZ),
            ticks_hz: Some(RATE_HZ),
            is_live: true,
        };
        assert!(streams.spectrum(&mut graph, "tone", facts).unwrap());
        let address: WebAddress = address.parse().unwrap();
        let hello = Hello { verb: "test".to_owned(), ..Hello::default() };
        let server = WebServer::start(ServerOptions { address, control, hello, streams }).unwrap();
        let (_, rest) = server.url().split_once("http://").unwrap();
        let port: u16 =
            rest.split('/').next().unwrap().rsplit(':').next().unwrap().parse().unwrap();
        let running = Some(graph.start(&Plan::default()).unwrap());
        Self { server, running, address: ([127, 0, 0, 1], port).into() }
    }

    pub fn usual() -> Self {
        Self::new("0", false, false)
    }

    /// Samples that have passed the graph.
    pub fn passed(&self) -> u64 {
        self.running.as_ref().unwrap().snapshot().block("sink").unwrap().items_in
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes and returns all that comes back until the end.
    pub fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Gets an address with further fields.
    pub fn get(&self, path: &str, fields: &str) -> String {
        let host = self.address;
        self.exchange(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n").as_bytes())
    }

    /// Gets a document.
    pub fn document(&self, path: &str) -> Value {
        let answer = self.get(path, "");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// The count of refusals for a reason.
    pub fn refused(&self, reason: &str) -> u64 {
        self.document("/api/status")["server"]["refused"][reason].as_u64().unwrap()
    }

    pub fn open(&self) -> Client {
        self.open_at("/ws", "").unwrap()
    }

    /// Opens a WebSocket; an error is the answer that refuses it.
    pub fn open_at(&self, path: &str, fields: &str) -> Result<Client, String> {
        let mut stream = self.connect();
        let host = self.address;
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             {fields}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\n") {
            if stream.read(&mut byte).unwrap() == 0 {
                break;
            }
            answer.push(byte[0]);
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if !answer.starts_with("HTTP/1.1 101 ") {
            return Err(answer);
        }
        // The key and its answer of RFC 6455, section 1.3.
        assert!(answer.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{answer}");
        Ok(Client { socket: WebSocket::from_raw_socket(stream, Role::Client, None) })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.abandon(Duration::from_secs(1));
        }
    }
}

/// A WebSocket client.
pub struct Client {
    pub socket: WebSocket<TcpStream>,
}

impl Client {
    pub fn say(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).unwrap();
    }

    pub fn next(&mut self) -> Message {
        self.socket.read().unwrap()
    }

    /// The next text message of a type.
    pub fn text(&mut self, kind: &str) -> Value {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Message::Text(text) = self.next() {
                let value: Value = serde_json::from_str(text.as_str()).unwrap();
                if value["type"] == kind {
                    return value;
                }
            }
        }
        panic!("no {kind} came");
    }

    /// The next line.
    pub fn line(&mut self) -> Line {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Message::Binary(bytes) = self.next() {
                return Line::parse(&bytes);
            }
        }
        panic!("no line came");
    }

    /// The code of the close that ends the connection.
    pub fn close_code(&mut self) -> u16 {
        loop {
            match self.socket.read() {
                Ok(Message::Close(Some(frame))) => return frame.code.into(),
                Ok(_) => (),
                Err(error) => panic!("no close frame: {error}"),
            }
        }
    }
}

/// A line as the documentation describes it.
#[derive(Debug)]
pub struct Line {
    pub flags: u8,
    pub seq: u32,
    pub bins: u32,
    pub ticks: u64,
    pub item: u64,
    pub centre_hz: f64,
    pub span_hz: f64,
    pub share: f32,
    pub dropped: u32,
    pub levels: Vec<f32>,
}

impl Line {
    fn parse(bytes: &[u8]) -> Self {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let f32_at = |at: usize| f32::from_bits(u32_at(at));
        assert_eq!(bytes[..2], [1, 1], "a line of the first version");
        let (reference, step) = (f32_at(52), f32_at(56));
        let levels = match bytes[2] {
            0 => bytes[72..].iter().map(|value| reference + step * f32::from(*value)).collect(),
            _ => (72..bytes.len()).step_by(4).map(f32_at).collect(),
        };
        Self {
            flags: bytes[3],
            seq: u32_at(8),
            bins: u32_at(12),
            ticks: u64_at(16),
            item: u64_at(24),
            centre_hz: f64::from_bits(u64_at(32)),
            span_hz: f64::from_bits(u64_at(40)),
            share: f32_at(48),
            dropped: u32_at(60),
            levels,
        }
    }

    /// The frequency of the strongest bin, and its level.
    pub fn peak(&self) -> (f64, f32) {
        let all = self.levels.iter().copied().enumerate();
        let (bin, level) = all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let offset = bin as f64 / f64::from(self.bins) - 0.5;
        (self.centre_hz + offset * self.span_hz, level)
    }
}
