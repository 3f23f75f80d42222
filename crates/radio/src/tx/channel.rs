//! One transmit channel of a radio block.

use std::num::NonZeroU32;
use std::sync::Arc;

use millstream_wire::regs::radio::{
    RadioMap, SAMPLE_WIDTH, TX_ERR_ADDR, TX_ERR_POLICY, TX_ERR_PORT, TX_ERR_REM_EPID,
    TX_ERR_REM_PORT, TX_POLICY_NEXT_PACKET, async_msg,
};

use crate::RadioError;
use crate::channel::{DeviceFormat, radio_map, radio_time_ticks};
use crate::control::{ChannelEvents, Control};
use crate::lease::Lease;

/// A transmit channel: its registers in a radio block, and the radio's messages about it.
///
/// It has one lease at a time, because two streams would mix their samples.
pub struct TxChannel {
    control: Arc<Control>,
    events: Arc<ChannelEvents>,
    port: u16,
    channel: u8,
    map: RadioMap,
    samples_per_word: NonZeroU32,
    lease: Lease,
}

impl TxChannel {
    /// Takes channel `channel` of the radio block at control port `port`, and configures it to
    /// report to this host, and to continue with the next packet after an error.
    ///
    /// # Errors
    /// [`RadioError::Compat`] for registers of another kind; those of [`Control::read`].
    pub fn new(control: &Arc<Control>, port: u16, channel: u8) -> Result<Self, RadioError> {
        let map = radio_map(control, port)?;
        let (control, events) = (Arc::clone(control), control.watch(port, channel));
        let format = DeviceFormat::from_word(control.read(port, SAMPLE_WIDTH)?);
        let (samples_per_word, lease) = (format.samples_per_word, Lease::default());
        let this = Self { control, events, port, channel, map, samples_per_word, lease };
        this.write(TX_ERR_PORT, 1)?;
        this.write(TX_ERR_REM_PORT, port.into())?;
        this.write(TX_ERR_REM_EPID, this.control.epid().0.into())?;
        this.write(TX_ERR_ADDR, async_msg::Event::TxUnderrun.address(channel))?;
        this.write(TX_ERR_POLICY, TX_POLICY_NEXT_PACKET)?;
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
            samples_per_word: self.samples_per_word,
        })
    }

    /// Returns whether a stream has the channel.
    pub(crate) fn is_leased(&self) -> bool {
        self.lease.is_taken()
    }

    /// Returns the radio's messages about this channel.
    pub fn events(&self) -> &ChannelEvents {
        &self.events
    }

    /// Reports that were dropped or never came.
    pub(super) fn missed(&self) -> u64 {
        self.events.tx_dropped() + self.events.missed()
    }

    /// Returns the control client.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Returns the samples that the radio takes in one cycle.
    pub fn samples_per_word(&self) -> NonZeroU32 {
        self.samples_per_word
    }

    /// Reads the radio's time, ticks.
    ///
    /// # Errors
    /// Those of [`Control::read`]; [`RadioError::Unusable`] when no consistent time can be read.
    pub fn time_ticks(&self) -> Result<u64, RadioError> {
        radio_time_ticks(&self.control, self.port)
    }

    fn write(&self, offset: u32, value: u32) -> Result<(), RadioError> {
        self.control.write(self.port, self.map.address(self.channel, offset), value)
    }
}

impl std::fmt::Debug for TxChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "transmit channel {} of the radio at port {}", self.channel, self.port)
    }
}
