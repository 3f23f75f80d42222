//! A receive stream whose samples go to another host.

use std::net::SocketAddrV4;
use std::time::Duration;

use millstream_link::port::Port;

use crate::channel::RxChannel;
use crate::stream::{
    Credit, RxArgs, RxError, RxOpening, StreamPath, StreamRate, check_length, next_on_grid,
    samples_per_packet,
};
use crate::{RadioError, opening};

/// Where the samples of a remote stream go. UHD calls its parts `dest_addr`, `dest_port`,
/// `dest_mac_addr` and `stream_mode`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteDestination {
    /// The address and UDP port of the host that gets them.
    pub socket: SocketAddrV4,
    /// The address of its network card, `AA:BB:CC:DD:EE:FF`; `None` for the one that the device
    /// finds out.
    pub mac: Option<String>,
    /// Each datagram is a whole CHDR packet with its header; otherwise the samples only, each as
    /// two 16-bit integers, the lower byte first.
    pub full_packets: bool,
}

impl RemoteDestination {
    /// Returns this destination for samples only.
    pub fn new(socket: SocketAddrV4) -> Self {
        Self { socket, mac: None, full_packets: false }
    }

    /// Has whole CHDR packets sent in place of samples only.
    #[must_use]
    pub fn with_full_packets(self) -> Self {
        Self { full_packets: true, ..self }
    }
}

/// What the radio was told, by its time.
#[derive(Debug, Clone, Copy)]
struct RemoteRun {
    /// The first sample; where none was given, a time before it.
    begin: u64,
    /// Behind the last sample, or a time behind that; `None` without an end.
    end: Option<u64>,
    /// The overruns and late commands of this stream before the start.
    troubles: u64,
}

impl RemoteRun {
    /// Returns its end if that has come at `now`, or else `now`.
    fn end_at(&self, now: u64) -> u64 {
        self.end.filter(|end| !is_ahead(*end, now)).unwrap_or(now)
    }
}

/// A receive stream of one channel that the device sends to another host, without flow control: it
/// does not wait for that host, and what is lost on the way is not counted here.
/// [`crate::Device::remote_rx_stream`] opens it. Dropping it stops the radio.
pub struct RemoteRxStream {
    channel: RxChannel,
    rate: StreamRate,
    samples_per_packet: u32,
    /// The last start.
    run: Option<RemoteRun>,
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
        let rate = path.rate;
        Ok(Self { channel, rate, samples_per_packet, run: None, before, _port: port })
    }

    /// Starts until [`RemoteRxStream::stop`], at the device's time `at` or at once. A radio that
    /// makes several samples in a cycle starts with its first cycle then.
    ///
    /// # Errors
    /// [`RxError::Running`]; [`RxError::Radio`] when the device does not answer.
    pub fn start_continuous(&mut self, at: Option<u64>) -> Result<(), RxError> {
        self.start(None, at)
    }

    /// Starts `samples` samples, at the device's time `at` or at once.
    ///
    /// # Errors
    /// [`RxError::BadLength`], and those of [`RemoteRxStream::start_continuous`].
    pub fn start_finite(&mut self, samples: u64, at: Option<u64>) -> Result<(), RxError> {
        check_length(self.rate, self.channel.samples_per_word(), samples)?;
        self.start(Some(self.rate.ticks(samples)), at)
    }

    fn start(&mut self, ticks: Option<u64>, at: Option<u64>) -> Result<(), RxError> {
        let before = self.channel.time_ticks()?;
        if self.is_running(before) {
            return Err(RxError::Running);
        }
        let at = at.map(|at| next_on_grid(at, before, self.channel.samples_per_word()));
        // UHD's simulator needs a stop between two captures.
        self.channel.stop_if_started()?;
        let troubles = self.troubles();
        // A command that is not acknowledged may be executed all the same.
        let run = self.run.insert(RemoteRun { begin: at.unwrap_or(before), end: None, troubles });
        self.channel.start(ticks, at)?;
        if let Some(ticks) = ticks {
            let begin = at.map_or_else(|| self.channel.time_ticks(), Ok)?;
            run.end = Some(begin.wrapping_add(ticks));
        }
        Ok(())
    }

    /// Stops; the packet in progress ends the burst.
    ///
    /// # Errors
    /// [`RxError::Radio`] when the device does not answer.
    pub fn stop(&mut self) -> Result<(), RxError> {
        self.channel.stop()?;
        let now = self.channel.time_ticks()?;
        if let Some(run) = &mut self.run {
            run.end = Some(run.end_at(now));
        }
        Ok(())
    }

    /// Returns whether the radio was started, and at the device's time `now` neither its end has
    /// come nor a message that it has stopped.
    pub fn is_running(&self, now: u64) -> bool {
        self.run.is_some_and(|run| {
            let has_ended = run.end.is_some_and(|end| !is_ahead(end, now));
            !has_ended && run.troubles == self.troubles()
        })
    }

    /// Returns the device's time of the first sample since the last start, or a time before it
    /// where none was given; `None` before a start.
    pub fn start_ticks(&self) -> Option<u64> {
        self.run.map(|run| run.begin)
    }

    /// Returns about how many samples the radio has sent at its time `now` since the last start, by
    /// what it was told and its messages: none behind a start that came too late, and those up to
    /// the overrun behind one. What reached the other host only that host can count.
    pub fn samples_about(&self, now: u64) -> u64 {
        let Some(run) = self.run else { return 0 };
        let end = match run.troubles == self.troubles() {
            true => run.end_at(now),
            // Where the start came too late, the last overrun was before it.
            false => self.channel.events().overrun_ticks().wrapping_add(1),
        };
        if is_ahead(end, run.begin) { self.rate.samples(end.wrapping_sub(run.begin)) } else { 0 }
    }

    fn troubles(&self) -> u64 {
        self.overruns() + self.late_commands()
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

/// Returns whether `ticks` is later than `now`; times wrap.
fn is_ahead(ticks: u64, now: u64) -> bool {
    ticks.wrapping_sub(now) as i64 > 0
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
