//! A server of the protocol of `rtl_tcp`: the radio as dozens of programs already use it.
//!
//! All clients share one channel, its frequency, rate and gain. The radio streams while a client is
//! connected. Gaps become zeros, so that clients, who count samples, keep the time. All other
//! samples get a noise of about one step (`dither`). A client that does not read fast enough loses
//! blocks, which are counted, and holds up nobody.
//!
//! | thread | task |
//! | --- | --- |
//! | `ms-rtl-accept` | takes clients |
//! | `ms-rtl-samples` | reads the stream, and passes each block to all clients |
//! | `ms-rtl-out` | one for each client: writes blocks |
//! | `ms-rtl-in` | one for each client: carries out its commands |

mod clients;
mod dither;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use millstream_radio::Ledger;
use millstream_wire::rtl_tcp::RtlCommand;

use self::clients::{BlockPool, accept};
use self::dither::Dither;
use crate::turns::YEAR;
use crate::{ClientError, GapPolicy, Radio, RxOptions, RxStream, StreamStart};

/// The gains that the header counts: steps over the radio's range.
const GAINS: u32 = 29;

/// The length of a block, seconds, and its limits in samples.
const BLOCK_S: f64 = 0.02;
const BLOCK_SAMPLES: (usize, usize) = (512, 65_536);

/// The byte of a zero.
const MIDDLE: u8 = 128;

/// How long a wait lasts before the stop flag is read.
const TICK: Duration = Duration::from_millis(50);

/// How a server is opened.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RtlOptions {
    /// The receive channel.
    pub channel: usize,
    /// The sample rate until a client sets another one, per second.
    pub initial_rate_hz: f64,
    /// The most clients at a time; others are closed at once.
    pub clients_max: usize,
}

impl Default for RtlOptions {
    fn default() -> Self {
        Self { channel: 0, initial_rate_hz: 2.048e6, clients_max: 16 }
    }
}

impl RtlOptions {
    /// Sets the receive channel.
    #[must_use]
    pub fn with_channel(mut self, channel: usize) -> Self {
        self.channel = channel;
        self
    }

    /// Sets the sample rate that holds until a client sets another one, per second.
    #[must_use]
    pub fn with_initial_rate_hz(mut self, rate_hz: f64) -> Self {
        self.initial_rate_hz = rate_hz;
        self
    }

    /// Sets the most clients at a time.
    #[must_use]
    pub fn with_clients_max(mut self, clients: usize) -> Self {
        self.clients_max = clients;
        self
    }
}

/// What a server has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RtlCounts {
    /// Clients so far.
    pub clients: u64,
    /// Clients now.
    pub connected: u64,
    /// Samples that the radio delivered while a client was connected, zeros for gaps included.
    pub samples: u64,
    /// Samples that were passed to clients, summed over them.
    pub passed: u64,
    /// Samples that clients missed because they read too slowly, summed over them.
    pub missed: u64,
    /// Commands that the radio carried out.
    pub commands: u64,
    /// Commands that it refused.
    pub refused: u64,
    /// Commands for which it has no setting.
    pub ignored: u64,
}

/// A running server; dropping it stops it.
#[derive(Debug)]
pub struct RtlServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    radio: Radio,
    stream: RxStream,
    options: RtlOptions,
    clients: Mutex<Vec<RtlClient>>,
    stop: AtomicBool,
    error: Mutex<Option<String>>,
    refusal: Mutex<Option<String>>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    clients: AtomicU64,
    samples: AtomicU64,
    passed: AtomicU64,
    missed: AtomicU64,
    commands: AtomicU64,
    refused: AtomicU64,
    ignored: AtomicU64,
}

/// A connected client, as the samples' thread sees it.
#[derive(Debug)]
struct RtlClient {
    blocks: SyncSender<Arc<Vec<u8>>>,
    socket: TcpStream,
}

impl RtlServer {
    /// Opens the stream and serves clients of `listener`.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Server`] when the system refuses a thread or the address.
    pub fn start(
        radio: Radio,
        listener: TcpListener,
        options: RtlOptions,
    ) -> Result<Self, ClientError> {
        let channel = radio.rx(options.channel);
        channel.set_rate(options.initial_rate_hz)?;
        let stream = channel.stream(RxOptions::default().with_gaps(GapPolicy::Report))?;
        let address = listener.local_addr().map_err(server_error)?;
        listener.set_nonblocking(true).map_err(server_error)?;
        let shared = Arc::new(Shared {
            radio,
            stream,
            options,
            clients: Mutex::default(),
            stop: AtomicBool::new(false),
            error: Mutex::default(),
            refusal: Mutex::default(),
            counts: Counts::default(),
        });
        let mut server = Self { shared: shared.clone(), address, threads: Vec::new() };
        let accepts = shared.clone();
        server.spawn("ms-rtl-accept", move || accept(&accepts, &listener))?;
        server.spawn("ms-rtl-samples", move || shared.stream())?;
        Ok(server)
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the radio.
    pub fn radio(&self) -> &Radio {
        &self.shared.radio
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> RtlCounts {
        let counts = &self.shared.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RtlCounts {
            clients: read(&counts.clients),
            connected: self.shared.clients().len() as u64,
            samples: read(&counts.samples),
            passed: read(&counts.passed),
            missed: read(&counts.missed),
            commands: read(&counts.commands),
            refused: read(&counts.refused),
            ignored: read(&counts.ignored),
        }
    }

    /// Returns the outcome of every sample of the stream.
    pub fn ledger(&self) -> Option<Ledger> {
        self.shared.stream.ledger(0)
    }

    /// Returns the error that ended the stream, once.
    pub fn take_error(&self) -> Option<String> {
        self.shared.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns why the radio refused the last command that it did not carry out.
    pub fn last_refusal(&self) -> Option<String> {
        self.shared.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Disconnects all clients and ends the stream.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.clients().iter().for_each(RtlClient::disconnect);
        for thread in self.threads.drain(..) {
            // A panicked thread has already printed its message.
            let _ = thread.join();
        }
    }

    fn spawn(
        &mut self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), ClientError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        self.threads.push(thread.map_err(server_error)?);
        Ok(())
    }
}

impl Drop for RtlServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl RtlClient {
    fn disconnect(&self) {
        // It may have gone already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn clients(&self) -> MutexGuard<'_, Vec<RtlClient>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The body of the samples' thread.
    fn stream(&self) {
        if let Err(error) = self.stream_until_stopped() {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            self.stop.store(true, Ordering::Relaxed);
        }
        self.stream.close(YEAR);
        self.clients().drain(..).for_each(|client| client.disconnect());
    }

    fn stream_until_stopped(&self) -> Result<(), ClientError> {
        let mut samples = vec![[0i16; 2]; BLOCK_SAMPLES.1];
        let mut blocks = BlockPool::default();
        let (mut dither, mut missing) = (Dither::default(), 0);
        while !self.is_stopped() {
            if self.clients().is_empty() {
                if self.stream.is_active() {
                    self.stream.stop()?;
                }
                missing = 0;
                std::thread::sleep(TICK);
                continue;
            }
            if !self.stream.is_active() {
                self.stream.start(StreamStart::default())?;
            }
            let block = (self.stream.rate_hz() * BLOCK_S) as usize;
            let block = block.clamp(BLOCK_SAMPLES.0, BLOCK_SAMPLES.1);
            if missing > 0 {
                let zeros = missing.min(block as u64) as usize;
                self.pass(zeros, std::iter::repeat_n(MIDDLE, 2 * zeros), &mut blocks);
                missing -= zeros as u64;
                continue;
            }
            let read = self.stream.read(&mut [&mut samples[..block]], TICK)?;
            if let Some(gap) = read.gap {
                missing = gap.samples;
            } else if read.samples > 0 {
                let bytes = samples[..read.samples].iter().flat_map(|one| dither.bytes(*one));
                self.pass(read.samples, bytes, &mut blocks);
            }
        }
        Ok(())
    }

    /// Passes `count` samples to all clients. The lock is taken once a block, and others hold it
    /// only while a client comes or goes.
    fn pass(&self, count: usize, bytes: impl Iterator<Item = u8>, blocks: &mut BlockPool) {
        let (block, count) = (blocks.fill(bytes), count as u64);
        self.counts.samples.fetch_add(count, Ordering::Relaxed);
        self.clients().retain(|client| match client.blocks.try_send(block.clone()) {
            Ok(()) => {
                self.counts.passed.fetch_add(count, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Full(_)) => {
                self.counts.missed.fetch_add(count, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => {
                client.disconnect();
                false
            }
        });
    }

    /// Carries out a command.
    fn execute(&self, command: RtlCommand) {
        let channel = self.radio.rx(self.options.channel);
        let gain_range = channel.gain_range();
        let outcome = match (command, gain_range) {
            (RtlCommand::Frequency(hz), _) => channel.set_frequency(f64::from(hz), None).map(drop),
            (RtlCommand::SampleRate(hz), _) => channel.set_rate(f64::from(hz)).map(drop),
            (RtlCommand::ManualGain(manual), _) if channel.has_automatic_gain() => {
                channel.set_automatic_gain(!manual).map(drop)
            }
            (RtlCommand::Gain(tenths), Some((low, high))) => {
                let gain_db = (f64::from(tenths) / 10.0).clamp(low, high);
                channel.set_gain(gain_db).map(drop)
            }
            (RtlCommand::GainIndex(index), Some((low, high))) => {
                let share = f64::from(index.min(GAINS - 1)) / f64::from(GAINS - 1);
                channel.set_gain(low + share * (high - low)).map(drop)
            }
            // The crystal of a radio with a reference clock has no error to correct, and the other
            // settings belong to the hardware for which the protocol was made.
            _ => {
                self.counts.ignored.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        let count = match outcome {
            Ok(()) => &self.counts.commands,
            Err(error) => {
                let refusal = format!("{command:?}: {error}");
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
                &self.counts.refused
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn server_error(source: io::Error) -> ClientError {
    ClientError::Server { source }
}
