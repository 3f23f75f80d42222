//! An open device.

mod chains;
mod clock;
mod complex_gain;
mod link;
mod n310;
mod n320;
mod open;
mod path;
mod rates;
mod remote;
mod sensors;
mod session;
mod set;
mod speed;
mod timed;
mod tuning;

pub use link::DeviceLink;
pub use rates::check_rate;
pub(crate) use rates::rate_within;
pub use sensors::{SensorReading, SourceKind};
pub use session::{ChdrLink, DEVICE_ID, DeviceSession, SessionInfo};
pub use set::DeviceSet;

use chains::{ChainDsp, ChainSettings, ChannelChain};

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use millstream_link::port::PortOptions;
use millstream_wire::{Epid, Width};

use crate::channel::RxChannel;
use crate::client_zero::ClientZero;
use crate::control::Control;
use crate::graph::StreamDirection;
use crate::stream::{RxArgs, RxError, RxMember, RxStreamer, StreamRate};
use crate::topology::RadioTopology;
use crate::tx::{TxArgs, TxChannel, TxError, TxMember, TxStreamer};
use crate::{DeviceArgs, RadioError, SharedPort};

/// A claimed and initialised device. Dropping it releases the device.
///
/// Streamers hold what they need, so they may outlive it, but the claim ends here.
pub struct Device {
    args: DeviceArgs,
    // Dropped in this order: the claim ends after the control thread.
    rx: Vec<ChannelChain<RxChannel>>,
    tx: Vec<ChannelChain<TxChannel>>,
    control: Arc<Control>,
    session: DeviceSession,
    topology: RadioTopology,
    blocks: ClientZero,
    links: Vec<DeviceLink>,
    /// The ports that streams share, with the numbers of their links.
    shared_ports: Mutex<Vec<(usize, SharedPort)>>,
    width: Width,
    /// The master clock rate, at which the radios sample and count time.
    ticks_hz: f64,
    /// This host's ends of streams have the ids from here on, two for each endpoint.
    first_stream_epid: Epid,
    /// The chains of an AD936x that are on, a bit each; locked while they change.
    powered: Mutex<u8>,
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

    /// Largest CHDR packet on the path of its first link, bytes.
    pub fn frame_bytes(&self) -> usize {
        self.links[0].frame_bytes
    }

    /// Returns the width of its CHDR words.
    pub fn width(&self) -> Width {
        self.width
    }

    /// Returns its links, in the order of their addresses in the arguments.
    pub fn links(&self) -> &[DeviceLink] {
        &self.links
    }

    /// Returns the number of receive channels.
    pub fn rx_channels(&self) -> usize {
        self.rx.len()
    }

    /// Returns the number of transmit channels.
    pub fn tx_channels(&self) -> usize {
        self.tx.len()
    }

    /// Returns the sample rate of the first receive channel, per second.
    pub fn rate_hz(&self) -> f64 {
        self.rx_rate(0).map_or(self.ticks_hz, |rate| rate.samples_hz())
    }

    /// Returns the tick rate, per second: the master clock rate, at which the radios sample.
    pub fn tick_rate_hz(&self) -> f64 {
        self.ticks_hz
    }

    /// Returns the rates of a receive channel, for streams that are opened from now on; `None` for
    /// a channel that does not exist.
    pub fn rx_rate(&self, channel: usize) -> Option<StreamRate> {
        self.rx.get(channel).map(|chain| chain.set.dsp.stream_rate(self.ticks_hz))
    }

    /// Returns the rates of a transmit channel, for streams that are opened from now on; `None` for
    /// a channel that does not exist.
    pub fn tx_rate(&self, channel: usize) -> Option<StreamRate> {
        self.tx.get(channel).map(|chain| chain.set.dsp.stream_rate(self.ticks_hz))
    }

    /// Returns the largest factor of a channel's DDC or DUC; 1 without one.
    pub fn factor_max(&self, direction: StreamDirection, channel: usize) -> Option<u32> {
        let set = *self.sets(direction).get(channel)?;
        Some(set.dsp.block.map_or(1, |block| block.factor_max()))
    }

    fn dsp(&self) -> impl Iterator<Item = &ChainDsp> {
        let all = [StreamDirection::Rx, StreamDirection::Tx].map(|direction| self.sets(direction));
        all.into_iter().flatten().map(|set| &set.dsp)
    }

    /// Returns the settings of all channels of a direction.
    fn sets(&self, direction: StreamDirection) -> Vec<&ChainSettings> {
        match direction {
            StreamDirection::Rx => self.rx.iter().map(|chain| &chain.set).collect(),
            StreamDirection::Tx => self.tx.iter().map(|chain| &chain.set).collect(),
        }
    }

    fn sets_mut(&mut self, direction: StreamDirection) -> Vec<&mut ChainSettings> {
        match direction {
            StreamDirection::Rx => self.rx.iter_mut().map(|chain| &mut chain.set).collect(),
            StreamDirection::Tx => self.tx.iter_mut().map(|chain| &mut chain.set).collect(),
        }
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

    /// Opens a receive stream, on its own port or on that of its link
    /// ([`DeviceArgs::one_port`](field@DeviceArgs::one_port)).
    ///
    /// # Errors
    /// [`RadioError::NoSuchChannel`], [`RadioError::ChannelBusy`]; [`RadioError::Silent`] when the
    /// handshake fails.
    pub fn rx_stream(&self, args: RxArgs) -> Result<RxStreamer, RadioError> {
        self.rx_member(args, 0).map(RxStreamer::one)
    }

    /// Opens a channel of a stream, after which `more` of the same device are opened for it.
    pub(super) fn rx_member(&self, args: RxArgs, more: usize) -> Result<RxMember, RadioError> {
        let (channel, available) = (args.channel, self.rx.len());
        let what = "receive";
        let none = RadioError::NoSuchChannel { what, channel, available };
        let chain = self.rx.get(channel).ok_or(none)?;
        let lease = chain.channel.lease().ok_or(RadioError::ChannelBusy { what, channel })?;
        let (number, path) =
            self.path(StreamDirection::Rx, chain, &self.rx, RxChannel::is_leased)?;
        let options = PortOptions {
            // A longer packet than the path carries does not belong to this stream.
            datagram_bytes_max: path.frame_bytes,
            recv_queue_bytes: args.recv_queue_bytes.unwrap_or(self.args.recv_queue_bytes),
            more_ports: more / self.links.len().max(1),
            ..PortOptions::default()
        };
        let port = self.stream_port(number, &path, &options)?;
        RxMember::open(port, path, lease, &args, self.args.silence_max)
    }

    /// Opens several channels for aligned reception; those on one link share its memory equally.
    ///
    /// # Errors
    /// Those of [`Device::rx_stream`]; [`RxError::BadGroup`] without channels.
    pub fn rx_group(&self, channels: &[RxArgs]) -> Result<RxStreamer, RxError> {
        let rest = (0..channels.len()).rev();
        let open = |(args, more): (&RxArgs, usize)| Ok(self.rx_member(*args, more)?);
        RxStreamer::new(channels.iter().zip(rest).map(open).collect::<Result<_, RxError>>()?)
    }

    /// Opens a transmit stream, on its own port or on that of its link
    /// ([`DeviceArgs::one_port`](field@DeviceArgs::one_port)).
    ///
    /// # Errors
    /// [`RadioError::NoSuchChannel`], [`RadioError::ChannelBusy`]; [`RadioError::Silent`] when the
    /// handshake fails.
    pub fn tx_stream(&self, args: TxArgs) -> Result<TxStreamer, RadioError> {
        self.tx_member(args, 0).map(TxStreamer::one)
    }

    /// Opens a channel of a stream, after which `more` of the same device are opened for it.
    pub(super) fn tx_member(&self, args: TxArgs, more: usize) -> Result<TxMember, RadioError> {
        let (channel, available) = (args.channel, self.tx.len());
        let what = "transmit";
        let none = RadioError::NoSuchChannel { what, channel, available };
        let chain = self.tx.get(channel).ok_or(none)?;
        let lease = chain.channel.lease().ok_or(RadioError::ChannelBusy { what, channel })?;
        let (number, path) =
            self.path(StreamDirection::Tx, chain, &self.tx, TxChannel::is_leased)?;
        let options = PortOptions {
            datagram_bytes_max: path.frame_bytes,
            send_queue_bytes: args.send_queue_bytes,
            more_ports: more / self.links.len().max(1),
            ..PortOptions::default()
        };
        let port = self.stream_port(number, &path, &options)?;
        TxMember::open(port, path, lease, &args)
    }

    /// Opens several channels for aligned transmission; those on one link share its memory equally.
    ///
    /// # Errors
    /// Those of [`Device::tx_stream`]; [`TxError::BadGroup`] without channels.
    pub fn tx_group(&self, channels: &[TxArgs]) -> Result<TxStreamer, TxError> {
        let rest = (0..channels.len()).rev();
        let open = |(args, more): (&TxArgs, usize)| Ok(self.tx_member(*args, more)?);
        TxStreamer::new(channels.iter().zip(rest).map(open).collect::<Result<_, TxError>>()?)
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "device at {} ({})", self.args.addr, self.info().product())
    }
}
