//! Millstream's radios for programs that use [`seify`], such as flowgraphs of FutureSDR.
//!
//! ```no_run
//! use millstream_seify::{MillstreamDevice, SeifyDevice};
//! use seify::RxStreamer;
//!
//! # fn main() -> Result<(), seify::Error> {
//! // An emulated radio in this process; `addr=192.168.10.2` is a real one.
//! let device = MillstreamDevice::open("radio=emulated")?;
//! let seify: SeifyDevice = device.clone().into_seify();
//! let channel = seify.to_dyn();
//! channel.rx(0)?.sample_rate().set(1e6)?;
//! let mut stream = channel.rx(0)?.streamer()?;
//! stream.activate()?;
//! let mut samples = vec![Default::default(); 4096];
//! match stream.read(&mut [&mut samples], 1_000_000) {
//!     Ok(count) => println!("{count} samples"),
//!     // Samples are missing: the next read goes on behind them.
//!     Err(seify::Error::Overrun) => println!("{:?}", device.take_gaps()),
//!     Err(error) => return Err(error),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A FutureSDR block takes it so: `Builder::from_device(device.into_seify())`. Drivers cannot add
//! themselves to the list that `Builder::new("driver=…")` searches.
//!
//! What seify cannot say is not lost:
//!
//! - A read never crosses a gap. Where samples are missing, one read fails with
//!   [`seify::Error::Overrun`], which FutureSDR counts, and [`MillstreamDevice::take_gaps`] has
//!   their exact number and place. With the key `gaps=zeros` zeros stand for them, so that
//!   flowgraphs that only count samples keep the time.
//! - [`MillstreamDevice::radio`] has everything else: times, ledgers, sensors, events.
//!
//! | file | what it does |
//! | --- | --- |
//! | `controls` | settings |
//! | `streams` | streams, with their gaps |

mod controls;
mod streams;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use millstream_client::{ClientArgs, ClientError, GapPolicy, Radio, StreamDirection};
use seify::dev::impl_dyn_device_backend;
use seify::{Args, DeviceInfo, Direction, Driver, DriverError, Error};

pub use streams::{MillstreamRx, MillstreamTx, ReceiveGap};

/// The key that says what becomes of gaps.
const GAPS: &str = "gaps";

/// The most gaps that wait; of more, the oldest are dropped. The ledger counts all.
const GAPS_MAX: usize = 4096;

/// A device as seify and FutureSDR take it.
pub type SeifyDevice = seify::Device<MillstreamDevice>;

/// A radio. Clones share it.
#[derive(Debug, Clone)]
pub struct MillstreamDevice {
    radio: Radio,
    policy: GapPolicy,
    gaps: GapList,
}

/// The gaps of the radio's streams that nobody took yet.
type GapList = Arc<Mutex<VecDeque<ReceiveGap>>>;

impl MillstreamDevice {
    /// Opens the radio of some keys: those of Millstream's SoapySDR module, and `gaps=zeros` or
    /// `gaps=drop`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`], or [`Error::Driver`] with the remedy in its text.
    pub fn open(args: impl TryInto<Args>) -> Result<Self, Error> {
        let bad = |_| Error::invalid_argument("args", "give keys and values: key=value");
        let mut args = args.try_into().map_err(bad)?;
        let policy = match args.remove(GAPS) {
            None => GapPolicy::Error,
            Some(name) if name == GapPolicy::NAMES[0] => GapPolicy::Error,
            Some(name) => GapPolicy::named(&name).ok_or_else(|| {
                let names = GapPolicy::NAMES.join(", ");
                Error::invalid_argument(GAPS, format!("{name} is not one of {names}"))
            })?,
        };
        let radio = Radio::open(&client_args(&args)?).map_err(error)?;
        Ok(Self { radio, policy, gaps: GapList::default() })
    }

    /// Returns the radio itself, with what seify has no word for.
    pub fn radio(&self) -> &Radio {
        &self.radio
    }

    /// Returns it as seify and FutureSDR take it.
    pub fn into_seify(self) -> SeifyDevice {
        SeifyDevice::from_impl(self)
    }

    /// Takes the gaps of all receive streams that were read so far, the oldest first.
    pub fn take_gaps(&self) -> Vec<ReceiveGap> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

/// Keys as Millstream's client takes them.
fn client_args(args: &Args) -> Result<ClientArgs, Error> {
    let args = ClientArgs::from_pairs(args.iter());
    match args.unknown().first() {
        Some(key) => Err(Error::invalid_argument(key, "the driver does not know this key")),
        None => Ok(args),
    }
}

/// Returns the error of seify that says the same.
fn error(error: ClientError) -> Error {
    match error {
        ClientError::Gap(_) => Error::Overrun,
        ClientError::Closed => Error::StreamClosed,
        ClientError::Argument { key, value, expected } => {
            Error::invalid_argument(key, format!("{value} cannot be used: give {expected}"))
        }
        other => Error::Driver(DriverError::Other(other.to_string())),
    }
}

fn direction(direction: Direction) -> StreamDirection {
    match direction {
        Direction::Rx => StreamDirection::Rx,
        Direction::Tx => StreamDirection::Tx,
    }
}

/// Returns a time-out; one below 0 is none.
fn timeout(timeout_us: i64) -> Duration {
    Duration::from_micros(timeout_us.try_into().unwrap_or(0))
}

impl DeviceInfo for MillstreamDevice {
    /// seify has no name for the drivers of others; what this is, [`DeviceInfo::info`] says.
    fn driver(&self) -> Driver {
        Driver::Dummy
    }

    fn id(&self) -> Result<String, Error> {
        Ok(self.radio.serial().to_owned())
    }

    fn info(&self) -> Result<Args, Error> {
        let mut args = Args::new();
        args.set("driver", "millstream");
        args.set("addr", self.radio.address().to_string());
        args.set("type", self.radio.device_type());
        args.set("product", self.radio.product());
        args.set("serial", self.radio.serial());
        args.set("name", self.radio.name());
        Ok(args)
    }

    fn num_channels(&self, dir: Direction) -> Result<usize, Error> {
        Ok(self.radio.channels(direction(dir)))
    }

    fn full_duplex(&self) -> Result<bool, Error> {
        Ok(true)
    }
}

impl_dyn_device_backend!(
    MillstreamDevice => [rx, tx, antenna, agc, gain, frequency, sample_rate, bandwidth]
);
