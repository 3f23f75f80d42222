//! The open radio that threads share.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use millstream_radio::graph::StreamDirection;
use millstream_radio::{
    Device, Ledger, RxArgs, RxError, RxStreamer, TxArgs, TxError, TxLedger, TxStreamer,
};

use crate::StreamStart;
use crate::args::ClientArgs;
use crate::closing::{Closings, ReleaseGuard, close_within};
use crate::emulated::EmulatedRadio;
use crate::error::ClientError;
use crate::rx::{RxOptions, StreamGap};
use crate::time::DeviceTime;
use crate::tuning::ChannelSettings;
use crate::turns::YEAR;
use crate::tx::TxOptions;

/// An open radio.
///
/// Clones share it. All functions may be called from any thread, also while streams run. The radio
/// is released when the last clone and the last stream are gone, or by [`Radio::close`].
#[derive(Debug, Clone)]
pub struct Radio {
    pub(crate) parts: Arc<RadioParts>,
}

/// The longest wait for the release of a radio that this process has dropped: its claim expires
/// then.
const RELEASE_WAIT: Duration = Duration::from_secs(5);

/// The parts of an open radio.
///
/// Locks are taken in the order: `changes`, a stream, `state`.
#[derive(Debug)]
pub(crate) struct RadioParts {
    state: Mutex<Option<RadioState>>,
    /// Held while streams are interrupted for a change.
    pub changes: Mutex<()>,
    streams: Mutex<Vec<Weak<dyn OpenStream>>>,
    /// Streams that were dropped, and still have their channels.
    closings: Arc<Closings>,
    identity: RadioIdentity,
    rx_channels: usize,
    tx_channels: usize,
    /// Ends behind the connection to it.
    pub emulated: Option<EmulatedRadio>,
}

/// What never changes about an open radio.
#[derive(Debug)]
struct RadioIdentity {
    address: Ipv4Addr,
    device_type: String,
    product: String,
    serial: String,
    name: String,
    frame_bytes: usize,
}

/// The connection, and the settings that the radio cannot be asked for.
#[derive(Debug)]
pub(crate) struct RadioState {
    pub device: Device,
    /// When settings that can take effect at a time do so.
    pub command_time: Option<DeviceTime>,
    rx: Vec<ChannelSettings>,
    tx: Vec<ChannelSettings>,
}

impl RadioState {
    /// Returns the settings of a channel.
    pub fn channel(
        &mut self,
        direction: StreamDirection,
        channel: usize,
    ) -> Result<&mut ChannelSettings, ClientError> {
        let all = match direction {
            StreamDirection::Rx => &mut self.rx,
            StreamDirection::Tx => &mut self.tx,
        };
        let (what, available) = (direction.verb(), all.len());
        let none = millstream_radio::RadioError::NoSuchChannel { what, channel, available };
        all.get_mut(channel).ok_or_else(|| none.into())
    }
}

/// A stream of an open radio, as the radio sees it.
pub(crate) trait OpenStream: Send + Sync {
    fn direction(&self) -> StreamDirection;
    fn channels(&self) -> &[usize];
    fn is_active(&self) -> bool;
    fn close(&self);
    /// Takes the stream away from the radio, before a change of rates; returns what is left of its
    /// run.
    fn interrupt(&self) -> Option<StreamStart>;
    /// Opens it again.
    fn resume(&self, start: Option<StreamStart>) -> Result<(), ClientError>;
    fn last_gap(&self, _channel: usize) -> Option<StreamGap> {
        None
    }
    fn rx_ledger(&self, _channel: usize) -> Option<Ledger> {
        None
    }
    fn tx_ledger(&self, _channel: usize) -> Option<TxLedger> {
        None
    }
}

impl Radio {
    /// Opens a radio, or starts the emulated one.
    ///
    /// # Errors
    /// [`ClientError`], whose text has the remedy.
    pub fn open(args: &ClientArgs) -> Result<Self, ClientError> {
        let emulated = args.emulated()?.map(EmulatedRadio::start).transpose()?;
        let device_args = match &emulated {
            Some(radio) => radio.device_args(args)?,
            None => args.device_args()?,
        };
        ReleaseGuard::wait_for_others(device_args.addr, RELEASE_WAIT);
        let device = Device::open(device_args)?;
        let info = device.info();
        let field = |name: &str| info.device.get(name).cloned().unwrap_or_default();
        let identity = RadioIdentity {
            address: device.address(),
            device_type: info.device_type().to_owned(),
            product: info.product().to_owned(),
            serial: info.serial().to_owned(),
            name: field("name"),
            frame_bytes: device.frame_bytes(),
        };
        let settings = |direction, count| {
            let antennas = device.ranges(direction).map_or(&[][..], |ranges| ranges.antennas);
            vec![ChannelSettings::new(antennas.first().copied()); count]
        };
        let (rx_channels, tx_channels) = (device.rx_channels(), device.tx_channels());
        let (rx, tx) = (
            settings(StreamDirection::Rx, rx_channels),
            settings(StreamDirection::Tx, tx_channels),
        );
        let parts = RadioParts {
            state: Mutex::new(Some(RadioState { device, command_time: None, rx, tx })),
            changes: Mutex::new(()),
            streams: Mutex::new(Vec::new()),
            closings: Arc::default(),
            identity,
            rx_channels,
            tx_channels,
            emulated,
        };
        Ok(Self { parts: Arc::new(parts) })
    }

    /// Returns its address; of an emulated radio in this process a loopback address.
    pub fn address(&self) -> Ipv4Addr {
        self.parts.identity.address
    }

    /// Returns its type, such as `e3xx`.
    pub fn device_type(&self) -> &str {
        self.parts.device_type()
    }

    /// Returns its product, such as `e320`.
    pub fn product(&self) -> &str {
        &self.parts.identity.product
    }

    /// Returns its serial number.
    pub fn serial(&self) -> &str {
        &self.parts.identity.serial
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.parts.identity.name
    }

    /// Returns the size of the largest CHDR packet on the way to it, bytes.
    pub fn frame_bytes(&self) -> usize {
        self.parts.identity.frame_bytes
    }

    /// Returns whether it is an emulated radio in this process.
    pub fn is_emulated(&self) -> bool {
        self.parts.emulated.is_some()
    }

    /// Returns the number of its channels.
    pub fn channels(&self, direction: StreamDirection) -> usize {
        self.parts.channels(direction)
    }

    /// Closes all streams and releases the radio: later calls return [`ClientError::Closed`]. Waits
    /// for it up to `timeout`, and returns whether it is done; otherwise it will be, in the
    /// background. A radio that does not answer takes seconds.
    ///
    /// A radio that is dropped without being closed is released in the background; the drop waits
    /// 0.2 s for it at most.
    pub fn close(&self, timeout: Duration) -> bool {
        close_within(&self.parts, RadioParts::close, timeout)
    }

    /// Adds a fault to an emulated radio in this process; see `millstream sim fault add --help`.
    ///
    /// # Errors
    /// [`ClientError::Argument`] for another radio, [`ClientError::Fault`] for a text that is no
    /// fault.
    pub fn add_fault(&self, fault: &str) -> Result<(), ClientError> {
        let Some(emulated) = &self.parts.emulated else {
            return Err(ClientError::Argument {
                key: "fault".to_owned(),
                value: fault.to_owned(),
                expected: "it to an emulated radio in this process (radio=emulated) only"
                    .to_owned(),
            });
        };
        emulated.add_fault(fault)
    }
}

impl Drop for RadioParts {
    fn drop(&mut self) {
        let state = self.lock().take();
        let emulated = self.emulated.take();
        if state.is_some() || emulated.is_some() {
            let release = ReleaseGuard::new(self.identity.address);
            self.closings.end((state, emulated, release));
        }
    }
}

impl RadioParts {
    /// Runs `call` with the connection.
    pub fn with<R>(
        &self,
        call: impl FnOnce(&mut RadioState) -> Result<R, ClientError>,
    ) -> Result<R, ClientError> {
        call(self.lock().as_mut().ok_or(ClientError::Closed)?)
    }

    fn lock(&self) -> MutexGuard<'_, Option<RadioState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of channels of a direction.
    pub fn channels(&self, direction: StreamDirection) -> usize {
        match direction {
            StreamDirection::Rx => self.rx_channels,
            StreamDirection::Tx => self.tx_channels,
        }
    }

    /// Returns its type, such as `e3xx`.
    pub fn device_type(&self) -> &str {
        &self.identity.device_type
    }

    fn close(&self) {
        let _release = ReleaseGuard::new(self.identity.address);
        // No stream begins behind the last one that is closed.
        let _changes = self.lock_changes();
        self.streams().iter().for_each(|stream| stream.close());
        self.closings.wait(YEAR);
        // The radio is told outside the lock, so that other calls return at once.
        let state = self.lock().take();
        drop(state);
    }

    /// Ends a stream in the background, and the radio behind it if nobody else has it.
    pub fn end<T: Send + 'static>(self: &Arc<Self>, stream: T) {
        self.closings.end((stream, Arc::clone(self)));
    }

    /// Keeps other threads from changing the rates, which opens streams anew.
    pub fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a stream.
    pub fn register(&self, stream: &Arc<dyn OpenStream>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// Returns the streams that exist.
    pub fn streams(&self) -> Vec<Arc<dyn OpenStream>> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().filter_map(Weak::upgrade).collect()
    }

    /// Opens the streams of a reader.
    pub fn rx_source(
        &self,
        channels: &[usize],
        options: &RxOptions,
    ) -> Result<RxStreamer, ClientError> {
        // Its channels may have a stream that is being dropped.
        self.closings.wait(YEAR);
        self.with(|state| {
            let mut all = Vec::with_capacity(channels.len());
            for channel in channels {
                state.tune_once(StreamDirection::Rx, *channel)?;
                let mut args = RxArgs::new(*channel);
                args.samples_per_packet = options.samples_per_packet;
                args.recv_queue_bytes = options.recv_queue_bytes;
                all.push(args);
            }
            state.device.rx_group(&all).map_err(|error| match error {
                RxError::Radio(error) => error.into(),
                error => error.into(),
            })
        })
    }

    /// Opens the streams of a writer.
    pub fn tx_sink(
        &self,
        channels: &[usize],
        options: &TxOptions,
    ) -> Result<TxStreamer, ClientError> {
        // Its channels may have a stream that is being dropped.
        self.closings.wait(YEAR);
        self.with(|state| {
            let mut all = Vec::with_capacity(channels.len());
            for channel in channels {
                state.tune_once(StreamDirection::Tx, *channel)?;
                let mut args = TxArgs::new(*channel);
                args.samples_per_packet = options.samples_per_packet;
                all.push(args);
            }
            state.device.tx_group(&all).map_err(|error| match error {
                TxError::Radio(error) => error.into(),
                error => error.into(),
            })
        })
    }
}
