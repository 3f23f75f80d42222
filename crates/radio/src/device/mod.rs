//! An open device.

mod open;
mod session;
mod set;

pub use session::{ChdrLink, DEVICE_ID, DeviceSession, SessionInfo};
pub use set::DeviceSet;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use millstream_link::port::PortOptions;
use millstream_wire::{Epid, Width};

use crate::channel::RxChannel;
use crate::client_zero::ClientZero;
use crate::control::Control;
use crate::rpc::as_f64;
use crate::stream::{RxArgs, RxError, RxGroup, RxStreamer, StreamPath};
use crate::topology::{Endpoint, RadioTopology};
use crate::tx::{TxArgs, TxChannel, TxError, TxGroup, TxStreamer};
use crate::{Clock, DeviceArgs, RadioError};

/// A claimed and initialised device. Dropping it releases the device.
///
/// Streamers hold what they need, so they may outlive it, but the claim ends here.
pub struct Device {
    args: DeviceArgs,
    // Dropped in this order: the claim ends after the control thread.
    channels: Vec<(RxChannel, Endpoint)>,
    tx_channels: Vec<(TxChannel, Endpoint)>,
    control: Arc<Control>,
    session: DeviceSession,
    topology: RadioTopology,
    blocks: ClientZero,
    chdr: SocketAddrV4,
    width: Width,
    frame_bytes: usize,
    rate_hz: f64,
    next_epid: AtomicU16,
}

impl Device {
    /// Opens a device without discovery: claims the one at the given address, initialises it,
    /// measures the path and walks its topology.
    ///
    /// # Errors
    /// [`RadioError`], whose text has the remedy. A device that was claimed is released.
    pub fn open(args: DeviceArgs) -> Result<Self, RadioError> {
        open::open(args)
    }

    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        self.args.addr
    }

    /// Returns the device's description of itself.
    pub fn info(&self) -> &SessionInfo {
        self.session.info()
    }

    /// Returns the RPC session, for methods without a function here.
    pub fn session(&self) -> &DeviceSession {
        &self.session
    }

    /// Its endpoints.
    pub fn topology(&self) -> &RadioTopology {
        &self.topology
    }

    /// Its blocks.
    pub fn blocks(&self) -> &ClientZero {
        &self.blocks
    }

    /// Returns the control client.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Largest CHDR packet on the path, bytes.
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Returns the number of receive channels.
    pub fn rx_channels(&self) -> usize {
        self.channels.len()
    }

    /// Returns the number of transmit channels.
    pub fn tx_channels(&self) -> usize {
        self.tx_channels.len()
    }

    /// Returns the sample rate and the tick rate, per second.
    pub fn rate_hz(&self) -> f64 {
        self.rate_hz
    }

    /// Requests a sample rate and returns the one that the device took (facts page, section 3: the
    /// E3xx sets its clock to it, so a tick is a sample).
    ///
    /// # Errors
    /// [`RadioError::BadRate`], [`RadioError::Rpc`].
    pub fn set_rate(&mut self, rate_hz: f64) -> Result<f64, RadioError> {
        if !(rate_hz.is_finite() && rate_hz > 0.0) {
            return Err(RadioError::BadRate { rate_hz });
        }
        let method = "db_0_set_catalina_clock_rate";
        let answer = self.session.call(method, &[rate_hz.into()])?;
        let taken = as_f64(&answer)
            .filter(session::is_rate)
            .ok_or_else(|| self.session.protocol(method, "no usable rate"))?;
        self.session.set_tick_period(taken)?;
        self.rate_hz = taken;
        Ok(taken)
    }

    /// Reads the device's time, ticks.
    ///
    /// # Errors
    /// [`RadioError::Rpc`].
    pub fn time_ticks(&self) -> Result<u64, RadioError> {
        self.session.time_ticks()
    }

    /// Reads the device's time at its latest PPS edge, ticks.
    ///
    /// # Errors
    /// [`RadioError::Rpc`].
    pub fn time_last_pps(&self) -> Result<u64, RadioError> {
        self.session.last_pps_ticks()
    }

    /// Sets the device's time at once, ticks. Running streams see a jump of time.
    ///
    /// # Errors
    /// [`RadioError::Rpc`].
    pub fn set_time_now(&self, ticks: u64) -> Result<(), RadioError> {
        self.session.set_time(ticks, false)
    }

    /// Sets the time that the device takes at its next PPS edge, ticks. [`DeviceSet::sync_at_pps`]
    /// sets several devices to one time.
    ///
    /// # Errors
    /// [`RadioError::Rpc`].
    pub fn set_time_next_pps(&self, ticks: u64) -> Result<(), RadioError> {
        self.session.set_time(ticks, true)
    }

    /// Opens a receive stream on its own port.
    ///
    /// # Errors
    /// [`RadioError::NoSuchChannel`], [`RadioError::ChannelBusy`]; [`RadioError::Silent`] when the
    /// handshake fails.
    pub fn rx_stream(&self, args: RxArgs) -> Result<RxStreamer, RadioError> {
        let (channel, available) = (args.channel, self.channels.len());
        let what = "receive";
        let none = RadioError::NoSuchChannel { what, channel, available };
        let (shared, endpoint) = self.channels.get(channel).ok_or(none)?;
        let lease = shared.lease().ok_or(RadioError::ChannelBusy { what, channel })?;
        let path = self.path(endpoint)?;
        let port = self.args.port(&PortOptions {
            // A packet longer than the measured size of the path does not belong to this stream.
            datagram_bytes_max: self.frame_bytes,
            recv_queue_bytes: args.recv_queue_bytes.unwrap_or(self.args.recv_queue_bytes),
            ..PortOptions::default()
        })?;
        RxStreamer::open(port, path, lease, &args, self.args.silence_max)
    }

    /// Opens several channels for aligned reception.
    ///
    /// # Errors
    /// Those of [`Device::rx_stream`]; [`RxError::BadGroup`] without channels.
    pub fn rx_group(&self, channels: &[RxArgs]) -> Result<RxGroup, RxError> {
        let streams: Result<Vec<_>, _> =
            channels.iter().map(|args| self.rx_stream(*args)).collect();
        RxGroup::new(streams?)
    }

    /// Opens a transmit stream on its own port.
    ///
    /// # Errors
    /// [`RadioError::NoSuchChannel`], [`RadioError::ChannelBusy`]; [`RadioError::Silent`] when the
    /// handshake fails.
    pub fn tx_stream(&self, args: TxArgs) -> Result<TxStreamer, RadioError> {
        let (channel, available) = (args.channel, self.tx_channels.len());
        let what = "transmit";
        let none = RadioError::NoSuchChannel { what, channel, available };
        let (shared, endpoint) = self.tx_channels.get(channel).ok_or(none)?;
        let lease = shared.lease().ok_or(RadioError::ChannelBusy { what, channel })?;
        let path = self.path(endpoint)?;
        let port = self.args.port(&PortOptions {
            datagram_bytes_max: self.frame_bytes,
            send_queue_bytes: args.send_queue_bytes,
            ..PortOptions::default()
        })?;
        TxStreamer::open(port, path, lease, &args)
    }

    /// Opens several channels for aligned transmission.
    ///
    /// # Errors
    /// Those of [`Device::tx_stream`]; [`TxError::BadGroup`] without channels.
    pub fn tx_group(&self, channels: &[TxArgs]) -> Result<TxGroup, TxError> {
        let streams: Result<Vec<_>, _> =
            channels.iter().map(|args| self.tx_stream(*args)).collect();
        TxGroup::new(streams?)
    }

    /// Returns the path between a new endpoint of this host and one of the device.
    fn path(&self, endpoint: &Endpoint) -> Result<StreamPath, RadioError> {
        Ok(StreamPath {
            device: self.chdr,
            width: self.width,
            frame_bytes: self.frame_bytes,
            entry_port: self.topology.entry_port,
            endpoint: *endpoint,
            epid: self.new_epid()?,
            rate_hz: self.rate_hz,
            clock: Clock::MACHINE,
        })
    }

    /// Returns an endpoint id that no port of this session has had: the device stores a route for
    /// each.
    fn new_epid(&self) -> Result<Epid, RadioError> {
        let next = |epid: u16| epid.checked_add(1);
        let epid = self.next_epid.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        epid.map(Epid).map_err(|_| RadioError::Unusable {
            address: self.args.addr,
            reason: "this session has used up all endpoint ids; open the device again".to_owned(),
        })
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "device at {} ({})", self.args.addr, self.info().product())
    }
}
