//! One receive channel of a radio block.

mod start;

use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millstream_wire::chdr::SC16_LEN;
use millstream_wire::ctrl::CLIENT_ZERO_PORT;
use millstream_wire::regs::client_zero::PROTO_VER;
use millstream_wire::regs::radio::{
    COMPAT, RX_CMD, RX_CMD_SLOTS, RX_ERR_ADDR, RX_ERR_PORT, RX_ERR_REM_EPID, RX_ERR_REM_PORT,
    RX_HAS_TIME, RX_STATUS, RX_TIME_HI, RX_TIME_LO, RX_WORDS_PER_PKT, RadioMap, RxCommand, RxMode,
    SAMPLE_WIDTH, TIME_HI, TIME_LO, async_msg,
};

use crate::RadioError;
use crate::control::{AwaitedAccess, ChannelEvents, Control, RegisterAccess};
use crate::generation::register_error;
use crate::lease::Lease;

/// The most samples of one finite command: 48 bits of radio words.
pub const FINITE_SAMPLES_MAX: u64 = (1 << 48) - 1;

/// The most attempts to read the two halves of the time consistently.
const TIME_TRIES: u32 = 4;

/// A receive channel: its registers in a radio block, and the radio's messages about it.
///
/// It has one lease at a time, because two streams would take each other's samples.
pub struct RxChannel {
    control: Arc<Control>,
    events: Arc<ChannelEvents>,
    port: u16,
    channel: u8,
    map: RadioMap,
    format: DeviceFormat,
    /// True when a start has been written since the last stop.
    started: Arc<AtomicBool>,
    lease: Lease,
}

/// The layout of a channel's samples in radio words, from the register `SAMPLE_WIDTH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceFormat {
    /// Samples in one radio word.
    pub samples_per_word: NonZeroU32,
    /// The unit of packet lengths per word of samples: more than 1 where the radio counts lengths
    /// in parts of a sample. `None` when this host cannot use the samples.
    pub length_factor: Option<NonZeroU32>,
    /// Bits of each sample.
    pub bits: u16,
}

impl DeviceFormat {
    /// Decodes the register's word; every word is accepted.
    pub fn from_word(word: u32) -> Self {
        let (bits, samples) = ((word >> 16) as u16, word & 0xFFFF);
        let length_factor = match (bits, samples) {
            (32, 1..) => Some(NonZeroU32::MIN),
            // UHD's simulator counts the length of a packet in bytes, and everything else in
            // samples.
            (8, 1) => NonZeroU32::new(SC16_LEN as u32),
            _ => None,
        };
        let samples_per_word = NonZeroU32::new(samples).unwrap_or(NonZeroU32::MIN);
        Self { samples_per_word, length_factor, bits }
    }
}

impl RxChannel {
    /// Takes channel `channel` of the radio block at control port `port`, which has been reset, and
    /// configures it to report errors to this host and to put times on its packets.
    ///
    /// # Errors
    /// [`RadioError::Compat`] for registers of another kind; those of [`Control::read`].
    pub fn new(control: &Arc<Control>, port: u16, channel: u8) -> Result<Self, RadioError> {
        let map = radio_map(control, port)?;
        let format = DeviceFormat::from_word(control.read(port, SAMPLE_WIDTH)?);
        let (control, events) = (Arc::clone(control), control.watch(port, channel));
        let this = Self {
            control,
            events,
            port,
            channel,
            map,
            format,
            started: Arc::default(),
            lease: Lease::default(),
        };
        this.write(RX_ERR_PORT, 1)?;
        this.write(RX_ERR_REM_PORT, port.into())?;
        this.write(RX_ERR_REM_EPID, this.control.epid().0.into())?;
        this.write(RX_ERR_ADDR, async_msg::Event::RxOverrun.address(channel))?;
        this.write(RX_HAS_TIME, 1)?;
        Ok(this)
    }

    /// Returns the channel for one stream, or `None` while another one has it. Dropping it returns
    /// it.
    pub fn lease(&self) -> Option<Self> {
        self.lease.take().map(|lease| Self {
            control: Arc::clone(&self.control),
            events: Arc::clone(&self.events),
            lease,
            port: self.port,
            channel: self.channel,
            map: self.map,
            format: self.format,
            started: Arc::clone(&self.started),
        })
    }

    /// Checks that this host can use its samples.
    ///
    /// # Errors
    /// [`RadioError::Unusable`] with the reason.
    pub fn check_usable(&self) -> Result<(), RadioError> {
        if self.format.length_factor.is_some() {
            return Ok(());
        }
        let (channel, DeviceFormat { bits, samples_per_word, .. }) = (self.channel, self.format);
        let reason = format!(
            "receive channel {channel} makes samples of {bits} bits, {samples_per_word} at a \
             time: this host takes 16 bits each of I and Q"
        );
        Err(RadioError::Unusable { address: *self.control.device().ip(), reason })
    }

    /// Returns whether a stream has the channel.
    pub(crate) fn is_leased(&self) -> bool {
        self.lease.is_taken()
    }

    /// Returns the radio's messages about this channel.
    pub fn events(&self) -> &ChannelEvents {
        &self.events
    }

    /// Returns the control client.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Returns the samples in one radio word; registers count lengths in words.
    pub fn samples_per_word(&self) -> NonZeroU32 {
        self.format.samples_per_word
    }

    /// Sets the samples of a full packet, a multiple of the samples per word.
    ///
    /// # Errors
    /// Those of [`Control::write`].
    pub fn set_samples_per_packet(&self, samples: u32) -> Result<(), RadioError> {
        let factor = self.format.length_factor.map_or(1, NonZeroU32::get);
        let words = samples / self.format.samples_per_word;
        self.write(RX_WORDS_PER_PKT, words.saturating_mul(factor))
    }

    /// Reads the radio's time, ticks.
    ///
    /// # Errors
    /// Those of [`Control::read`]; [`RadioError::Unusable`] when no consistent time can be read.
    pub fn time_ticks(&self) -> Result<u64, RadioError> {
        radio_time_ticks(&self.control, self.port)
    }

    /// Reads the number of further commands that the radio can queue (of [`RX_CMD_SLOTS`]).
    ///
    /// # Errors
    /// Those of [`Control::read`].
    pub fn free_slots(&self) -> Result<u32, RadioError> {
        let slots = self.control.read(self.port, self.map.address(self.channel, RX_STATUS))?;
        Ok(slots.min(RX_CMD_SLOTS))
    }

    /// Stops reception; the current packet ends with EOB.
    ///
    /// # Errors
    /// Those of [`Control::write`].
    pub fn stop(&self) -> Result<(), RadioError> {
        self.write(RX_CMD, RxCommand::now(RxMode::Stop).to_word())?;
        self.started.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Stops reception if it may be running; UHD's simulator exits on a stop without a start.
    ///
    /// # Errors
    /// Those of [`Control::write`].
    pub fn stop_if_started(&self) -> Result<(), RadioError> {
        if self.started.load(Ordering::Relaxed) { self.stop() } else { Ok(()) }
    }

    /// Begins what the restart of a stream needs; a start is sent once, like in
    /// [`RxChannel::start`].
    pub(crate) fn begin(&self, request: RxRequest) -> Result<AwaitedAccess, RadioError> {
        let own = |offset| self.map.address(self.channel, offset);
        let access = match request {
            RxRequest::SignOfLife => RegisterAccess::read(CLIENT_ZERO_PORT, PROTO_VER),
            RxRequest::TimeHigh => RegisterAccess::read(self.port, TIME_HI),
            RxRequest::TimeLow => RegisterAccess::read(self.port, TIME_LO),
            RxRequest::Stop => {
                let word = RxCommand::now(RxMode::Stop).to_word();
                RegisterAccess::write(self.port, own(RX_CMD), word)
            }
            RxRequest::StartHigh(high) => RegisterAccess::write(self.port, own(RX_TIME_HI), high),
            RxRequest::StartLow(low) => RegisterAccess::write(self.port, own(RX_TIME_LO), low),
            RxRequest::Start => {
                self.started.store(true, Ordering::Relaxed);
                let word = RxCommand::timed(RxMode::Continuous).to_word();
                RegisterAccess::write_once(self.port, own(RX_CMD), word)
            }
        };
        self.control.begin(access)
    }

    /// Returns the outcome of a request if it is known by now.
    pub(crate) fn poll(
        &self,
        request: RxRequest,
        awaited: &mut AwaitedAccess,
    ) -> Option<Result<u32, RadioError>> {
        let outcome = self.control.poll(awaited)?;
        if request == RxRequest::Stop && outcome.is_ok() {
            self.started.store(false, Ordering::Relaxed);
        }
        Some(outcome)
    }

    fn write(&self, offset: u32, value: u32) -> Result<(), RadioError> {
        self.control.write(self.port, self.map.address(self.channel, offset), value)
    }
}

/// Reads which registers the radio block at a control port has.
pub(crate) fn radio_map(control: &Control, port: u16) -> Result<RadioMap, RadioError> {
    let compat = control.read(port, COMPAT)?;
    RadioMap::of_compat(compat)
        .ok_or_else(|| register_error("the register map of the radio", compat, "0.x and 1.x"))
}

/// Reads the time of the radio block at a control port, ticks.
pub(crate) fn radio_time_ticks(control: &Control, port: u16) -> Result<u64, RadioError> {
    let mut read = TimeRead::default();
    loop {
        let address = if read.request() == RxRequest::TimeLow { TIME_LO } else { TIME_HI };
        if let Some(time) = read.take(control.read(port, address)?, *control.device().ip())? {
            return Ok(time);
        }
    }
}

/// What the restart of a receive stream needs of its device, one access each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RxRequest {
    /// Any answer.
    SignOfLife,
    /// A half of the radio's time.
    TimeHigh,
    TimeLow,
    Stop,
    /// A half of the time of the next start.
    StartHigh(u32),
    StartLow(u32),
    /// Starts a run without an end at that time.
    Start,
}

/// A radio's time, read in halves. They are read again when the upper one changed in between, which
/// happens once in 2³² ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TimeRead {
    tries: u32,
    high: Option<u32>,
    low: Option<u32>,
}

impl TimeRead {
    /// Returns what is to be read next.
    pub fn request(&self) -> RxRequest {
        if self.high.is_some() && self.low.is_none() {
            RxRequest::TimeLow
        } else {
            RxRequest::TimeHigh
        }
    }

    /// Takes what the device at `address` answered; returns its time when that is known, ticks.
    ///
    /// # Errors
    /// [`RadioError::Unusable`] when no consistent time can be read.
    pub fn take(&mut self, word: u32, address: Ipv4Addr) -> Result<Option<u64>, RadioError> {
        match (self.high, self.low) {
            (None, _) => self.high = Some(word),
            (Some(_), None) => self.low = Some(word),
            (Some(high), Some(low)) if high == word => {
                return Ok(Some(u64::from(high) << 32 | u64::from(low)));
            }
            _ if self.tries + 1 == TIME_TRIES => {
                let reason = "the upper half of its time changes with every read".to_owned();
                return Err(RadioError::Unusable { address, reason });
            }
            _ => *self = Self { tries: self.tries + 1, ..Self::default() },
        }
        Ok(None)
    }
}

impl std::fmt::Debug for RxChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "channel {} of the radio at port {}", self.channel, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_word_is_a_format_and_few_are_usable() {
        for word in [0, 1, 32 << 16, 16 << 16 | 1, 8 << 16 | 2, u32::MAX] {
            let format = DeviceFormat::from_word(word);
            assert_eq!(format.length_factor, None, "{word:#x}");
        }
        for (word, samples, factor) in
            [(32 << 16 | 1, 1, 1), (32 << 16 | 8, 8, 1), (8 << 16 | 1, 1, 4)]
        {
            let format = DeviceFormat::from_word(word);
            assert_eq!(format.samples_per_word.get(), samples);
            assert_eq!(format.length_factor.map(NonZeroU32::get), Some(factor));
        }
    }
    use crate::testing::fake_pair;
    use millstream_wire::ctrl::{ControlStatus, CtrlRepr, DataWords, Protocol};
    use millstream_wire::{Epid, Width, chdr};

    #[test]
    fn a_time_that_never_settles_is_an_error() {
        let (port, mut device) = fake_pair();
        let address = device.address();
        let control =
            Control::new(port, address, (Width::W64, Protocol::V1), Epid(1), Epid(2)).unwrap();
        let server = std::thread::spawn(move || {
            for value in 0..3 * TIME_TRIES {
                let (bytes, from) = device.receive();
                let packet = chdr::Packet::parse(&bytes, Width::W64).unwrap();
                let request = CtrlRepr::parse(&packet).unwrap();
                let mut answer = [0; 64];
                let ack = request.ack(0, ControlStatus::Ok, DataWords::one(value));
                let length = ack.emit(Width::W64, &mut answer).unwrap();
                device.send(&answer[..length], from);
            }
        });
        let control = Arc::new(control);
        let events = control.watch(2, 0);
        let (port, channel) = (2, 0);
        let channel = RxChannel {
            control,
            events,
            port,
            channel,
            map: RadioMap::V0,
            format: DeviceFormat::from_word(32 << 16 | 1),
            started: Arc::default(),
            lease: Lease::default(),
        };
        let text = channel.time_ticks().unwrap_err().to_string();
        assert!(text.contains("changes with every read"), "{text}");
        server.join().unwrap();
    }
}
