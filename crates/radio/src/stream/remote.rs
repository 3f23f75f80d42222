//! A receive stream whose samples go to another host.

use std::net::SocketAddrV4;
use std::time::Duration;

use millstream_link::port::Port;

use super::command::check_length;
use super::credit::Credit;
use super::handshake::StreamPath;
use super::meta::{RxArgs, RxError};
use super::opening::RxOpening;
use super::rate::StreamRate;
use super::streamer::samples_per_packet;
use crate::channel::RxChannel;
use crate::{RadioError, opening};

/// Where the samples of a remote stream go. UHD calls its parts `dest_addr`, `dest_port`,
/// `dest_mac_addr`, `adapter` and `stream_mode`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteDestination {
    /// The address and UDP port of the host that gets them.
    pub socket: SocketAddrV4,
    /// The address of its network card, `AA:BB:CC:DD:EE:FF`; `None` for the one that the device
    /// finds out.
    pub mac: Option<String>,
    /// The device's adapter that sends them, such as `sfp0`; `None` for the one of this host's
    /// link.
    pub adapter: Option<String>,
    /// Each datagram is a whole CHDR packet with its header; otherwise the samples only, each as
    /// two 16-bit integers, the lower byte first.
    pub full_packets: bool,
}

impl RemoteDestination {
    /// Returns this destination for samples only.
    pub fn new(socket: SocketAddrV4) -> Self {
        Self { socket, mac: None, adapter: None, full_packets: false }
    }

    /// Has whole CHDR packets sent in place of samples only.
    #[must_use]
    pub fn with_full_packets(self) -> Self {
        Self { full_packets: true, ..self }
    }
}

/// A receive stream of one channel that the device sends to another host, without flow control: it
/// does not wait for that host, and what is lost on the way is not counted here.
/// [`crate::Device::remote_rx_stream`] opens it. Dropping it stops the radio.
pub struct RemoteRxStream {
    channel: RxChannel,
    rate: StreamRate,
    samples_per_packet: u32,
    /// The overruns and late commands of the channel before this stream.
    before: [u64; 2],
    /// The device has this host's address until the route is written.
    _port: Port,
}

impl RemoteRxStream {
    /// Opens the stream of `channel`, to `port` at first; then `divert` has to lead it away.
    pub(crate) fn open(
        mut port: Port,
        path: StreamPath,
        channel: RxChannel,
        args: &RxArgs,
        divert: impl FnOnce() -> Result<(), RadioError>,
    ) -> Result<Self, RadioError> {
        channel.check_usable()?;
        let samples_per_packet = samples_per_packet(&path, channel.samples_per_word(), args)?;
        let credit = Credit::new(&port.rx.capabilities(), path.frame_bytes);
        channel.stop_if_started()?;
        opening::run(&mut port, &path, RxOpening::new(path, credit).without_credit())?;
        divert()?;
        channel.set_samples_per_packet(samples_per_packet)?;
        let before = [channel.events().overruns(), channel.events().late_commands()];
        Ok(Self { channel, rate: path.rate, samples_per_packet, before, _port: port })
    }

    /// Starts until [`RemoteRxStream::stop`], at the device's time `at` or at once.
    ///
    /// # Errors
    /// [`RxError::Radio`] when the device does not answer.
    pub fn start_continuous(&mut self, at: Option<u64>) -> Result<(), RxError> {
        Ok(self.channel.start(None, at)?)
    }

    /// Starts `samples` samples, at the device's time `at` or at once.
    ///
    /// # Errors
    /// [`RxError::BadLength`]; [`RxError::Radio`] when the device does not answer.
    pub fn start_finite(&mut self, samples: u64, at: Option<u64>) -> Result<(), RxError> {
        check_length(self.rate, self.channel.samples_per_word(), samples)?;
        Ok(self.channel.start(Some(self.rate.ticks(samples)), at)?)
    }

    /// Stops; the packet in progress ends the burst.
    ///
    /// # Errors
    /// [`RxError::Radio`] when the device does not answer.
    pub fn stop(&mut self) -> Result<(), RxError> {
        Ok(self.channel.stop()?)
    }

    /// Returns how often the device could not send in time. It has stopped then: start it again.
    pub fn overruns(&self) -> u64 {
        self.channel.events().overruns().wrapping_sub(self.before[0])
    }

    /// Returns how many starts came after their time, and were dropped by the device.
    pub fn late_commands(&self) -> u64 {
        self.channel.events().late_commands().wrapping_sub(self.before[1])
    }

    /// Returns the samples of a full packet.
    pub fn samples_per_packet(&self) -> u32 {
        self.samples_per_packet
    }

    /// Returns the rates of samples and of the radio's time.
    pub fn rate(&self) -> StreamRate {
        self.rate
    }

    /// Returns how long `samples` samples take.
    pub fn duration(&self, samples: u64) -> Duration {
        Duration::try_from_secs_f64(samples as f64 / self.rate.samples_hz())
            .unwrap_or(Duration::MAX)
    }
}

impl std::fmt::Debug for RemoteRxStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { channel, rate, .. } = self;
        f.debug_struct("RemoteRxStream").field("channel", channel).field("rate", rate).finish()
    }
}

impl Drop for RemoteRxStream {
    fn drop(&mut self) {
        // A device without an answer has gone.
        let _ = self.channel.stop_if_started();
    }
}
