//! Setting the front ends of an open device: frequency, gain, bandwidth, antenna.
//!
//! The order matters: the rate first, then the frequency, then gain and bandwidth, because the
//! tables of gains follow the frequency.

use std::sync::PoisonError;

use millstream_wire::regs::front_end::e3xx::SwitchSettings;
use millstream_wire::regs::front_end::{CHANNEL_STRIDE, LEDS, OutputWords, RxAntenna, SWITCHES};
use rmpv::Value;

use super::Device;
use super::chains::ChainSettings;
use crate::RadioError;
use crate::control::Control;
use crate::front_end::spi::SpiBus;
use crate::front_end::{
    FrontEndRanges, GainControl, Oscillator, RadioFrontEnd, TuneRequest, TuneResult,
};
use crate::graph::{BlockPort, StreamDirection};
use crate::rpc::as_f64;

/// The frequency of an E3xx that no program has tuned, Hz.
const DEFAULT_HZ: f64 = 2.4e9;

/// The chains of an AD936x, in the order of `set_active_chains`; a bit of a mask each.
const CHAINS: [&str; 4] = ["TX1", "TX2", "RX1", "RX2"];

/// The chains that are on after `init`.
pub(super) const POWERED: u8 = 0b0101;

/// The settings of a channel's front end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FrontState {
    /// The local oscillator, Hz.
    pub rf_hz: f64,
    /// The frequency in the middle of the stream's band, Hz, once the channel was tuned.
    pub target_hz: Option<f64>,
    pub antenna: RxAntenna,
    /// The gain of an N310's channel, once it was set: how it is split follows the frequency.
    pub gain_db: Option<f64>,
}

impl Default for FrontState {
    fn default() -> Self {
        let antenna = RxAntenna::default();
        Self { rf_hz: DEFAULT_HZ, target_hz: None, antenna, gain_db: None }
    }
}

impl Device {
    /// Returns the methods and ranges of its front ends; `None` for a product that this host cannot
    /// tune: then another program has to do it.
    pub fn front_end(&self) -> Option<&'static RadioFrontEnd> {
        RadioFrontEnd::of(self.info().product())
    }

    /// Returns the ranges in one direction.
    pub fn ranges(&self, direction: StreamDirection) -> Option<&'static FrontEndRanges> {
        self.front_end().map(|front_end| front_end.ranges(direction))
    }

    /// Tunes a receive channel, see [`Device::tune`].
    ///
    /// # Errors
    /// Those of [`Device::tune`].
    pub fn tune_rx(
        &mut self,
        channel: usize,
        request: TuneRequest,
    ) -> Result<TuneResult, RadioError> {
        self.tune(StreamDirection::Rx, channel, request)
    }

    /// Tunes a transmit channel, see [`Device::tune`].
    ///
    /// # Errors
    /// Those of [`Device::tune`].
    pub fn tune_tx(
        &mut self,
        channel: usize,
        request: TuneRequest,
    ) -> Result<TuneResult, RadioError> {
        self.tune(StreamDirection::Tx, channel, request)
    }

    /// Tunes the local oscillator to the frequency and the offset of the request, and shifts the
    /// rest in the DDC or DUC; returns the frequencies that result.
    ///
    /// The channels of a radio share the oscillator of a direction, so this moves it for the
    /// others. Their shifts follow, as far as their DDC or DUC can; [`Device::tuned`] returns their
    /// frequencies.
    ///
    /// # Errors
    /// [`RadioError::NoSetting`] when this host cannot tune the product,
    /// [`RadioError::OutOfRange`], [`RadioError::NoSuchChannel`], [`RadioError::Rpc`] and those of
    /// register writes.
    pub fn tune(
        &mut self,
        direction: StreamDirection,
        channel: usize,
        request: TuneRequest,
    ) -> Result<TuneResult, RadioError> {
        let front_end = self.has_setting("frequency")?;
        let set = self.settings(direction, channel)?;
        // The other frequencies lie in the stream's band only by a shift.
        let shift_max_hz = if set.dsp.block.is_some() { self.ticks_hz / 2.0 } else { 0.0 };
        let offset_hz = request.lo_offset_hz;
        check_range("LO offset", offset_hz, (-shift_max_hz, shift_max_hz), "Hz")?;
        let (from_hz, to_hz) = front_end.ranges(direction).freq_hz;
        let reach_hz = (from_hz - shift_max_hz, to_hz + shift_max_hz);
        check_range("frequency", request.freq_hz, reach_hz, "Hz")?;

        let wanted_hz = (request.freq_hz + offset_hz).clamp(from_hz, to_hz);
        let rf_hz = match front_end.oscillator {
            Oscillator::Synthesiser => self.tune_synthesiser(direction, &set, wanted_hz)?,
            Oscillator::Transceiver(name) => {
                self.tune_transceiver((front_end, name), direction, &set, wanted_hz)?
            }
            Oscillator::Method(name) => {
                self.call_tune(front_end, direction, &set, (name, wanted_hz), None)?
            }
        };
        self.sets_mut(direction)[channel].front.target_hz = Some(request.freq_hz);
        self.follow(direction, set.radio, rf_hz)?;
        let set = self.settings(direction, channel)?;
        Ok(TuneResult::of(direction, rf_hz, set.dsp.shift_set(self.ticks_hz)))
    }

    /// Returns the frequencies of a channel; `None` before it was tuned.
    pub fn tuned(&self, direction: StreamDirection, channel: usize) -> Option<TuneResult> {
        let set = self.settings(direction, channel).ok()?;
        set.front.target_hz?;
        Some(TuneResult::of(direction, set.front.rf_hz, set.dsp.shift_set(self.ticks_hz)))
    }

    /// Sets the gain of a channel, dB; returns the one in force, rounded to the device's steps.
    ///
    /// # Errors
    /// [`RadioError::NoSetting`], [`RadioError::OutOfRange`], [`RadioError::NoSuchChannel`],
    /// [`RadioError::Rpc`].
    pub fn set_gain(
        &mut self,
        direction: StreamDirection,
        channel: usize,
        gain_db: f64,
    ) -> Result<f64, RadioError> {
        let front_end = self.has_setting("gain")?;
        let range = front_end.ranges(direction).gain_db.unwrap_or((-1e3, 1e3));
        check_range("gain", gain_db, range, "dB")?;
        let set = self.settings(direction, channel)?;
        if let (StreamDirection::Rx, Some(agc)) = (direction, front_end.agc) {
            let (method, chain) = self.method_for(front_end, direction, &set, agc);
            self.session.call(&method, &[chain, false.into()])?;
        }
        match front_end.gain {
            GainControl::Index => self.set_gain_index(direction, &set, gain_db),
            GainControl::Method(name) => {
                let (method, chain) = self.method_for(front_end, direction, &set, name);
                let answer = self.session.call(&method, &[chain, gain_db.into()])?;
                let taken_db = as_f64(&answer).filter(|db| (range.0..=range.1).contains(db));
                Ok(taken_db.unwrap_or(gain_db))
            }
            GainControl::Split(name) => {
                let gain_db = (gain_db * 2.0).round() / 2.0;
                self.sets_mut(direction)[channel].front.gain_db = Some(gain_db);
                self.switch(set.radio)?;
                let set = self.settings(direction, channel)?;
                self.set_transceiver_gain((front_end, name), direction, &set)?;
                Ok(gain_db)
            }
        }
    }

    /// Lets the device set the gain of a receive channel by itself, until [`Device::set_gain`].
    ///
    /// # Errors
    /// Those of [`Device::set_gain`].
    pub fn set_automatic_gain(&mut self, channel: usize) -> Result<(), RadioError> {
        let front_end = self.has_setting("automatic gain")?;
        let agc = front_end.agc.ok_or_else(|| self.no_setting("automatic gain"))?;
        let set = self.settings(StreamDirection::Rx, channel)?;
        let (method, chain) = self.method_for(front_end, StreamDirection::Rx, &set, agc);
        Ok(self.session.call(&method, &[chain, true.into()]).map(drop)?)
    }

    /// Sets the bandwidth of a channel's analogue filter, Hz; returns the one that the device took.
    ///
    /// # Errors
    /// [`RadioError::NoSetting`], [`RadioError::OutOfRange`], [`RadioError::NoSuchChannel`],
    /// [`RadioError::Rpc`].
    pub fn set_bandwidth(
        &mut self,
        direction: StreamDirection,
        channel: usize,
        bandwidth_hz: f64,
    ) -> Result<f64, RadioError> {
        let front_end = self.has_setting("bandwidth")?;
        let range = front_end.ranges(direction).bandwidth_hz.unwrap_or((1.0, 1e11));
        check_range("bandwidth", bandwidth_hz, range, "Hz")?;
        let set = self.settings(direction, channel)?;
        let name = front_end.bandwidth.ok_or_else(|| self.no_setting("bandwidth"))?;
        let (method, chain) = self.method_for(front_end, direction, &set, name);
        let answer = self.session.call(&method, &[chain, bandwidth_hz.into()])?;
        Ok(as_f64(&answer).unwrap_or(bandwidth_hz))
    }

    /// Selects the antenna of a channel by its name.
    ///
    /// # Errors
    /// [`RadioError::NoSetting`], [`RadioError::NoSuchAntenna`], [`RadioError::NoSuchChannel`] and
    /// those of register writes.
    pub fn set_antenna(
        &mut self,
        direction: StreamDirection,
        channel: usize,
        antenna: &str,
    ) -> Result<(), RadioError> {
        let known = self.has_setting("antenna")?.ranges(direction).antennas;
        if known.is_empty() {
            return Err(self.no_setting("antenna"));
        }
        if !known.contains(&antenna) {
            let antenna = antenna.to_owned();
            return Err(RadioError::NoSuchAntenna { antenna, known: known.join(", ") });
        }
        let radio = self.settings(direction, channel)?.radio;
        if direction == StreamDirection::Rx {
            let chosen = RxAntenna::named(antenna).unwrap_or_default();
            let before =
                std::mem::replace(&mut self.sets_mut(direction)[channel].front.antenna, chosen);
            // What the device did not take does not hold.
            return self.switch(radio).inspect_err(|_| {
                self.sets_mut(direction)[channel].front.antenna = before;
            });
        }
        self.switch(radio)
    }

    /// Powers the chains of all open streams, where the device does not power them by itself: after
    /// `init` only the first of each direction are on.
    ///
    /// A channel has its stream's lease already.
    pub(super) fn power_chains(&self) -> Result<(), RadioError> {
        let Some(front_end) = self.front_end().filter(|front_end| front_end.powers_chains) else {
            return Ok(());
        };
        // From the reading of the leases to the last call: who sets the chains last knows all.
        let mut powered = self.powered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = 0;
        for direction in [StreamDirection::Rx, StreamDirection::Tx] {
            let leased: Vec<bool> = match direction {
                StreamDirection::Rx => self.rx.iter().map(|one| one.channel.is_leased()).collect(),
                StreamDirection::Tx => self.tx.iter().map(|one| one.channel.is_leased()).collect(),
            };
            for (set, _) in self.sets(direction).iter().zip(leased).filter(|(_, leased)| *leased) {
                let chain = front_end.chain(direction, set.radio.port);
                wanted |= CHAINS.iter().position(|name| *name == chain).map_or(0, |bit| 1 << bit);
            }
        }
        if wanted & !*powered == 0 {
            return Ok(());
        }
        let [tx1, tx2, rx1, rx2] = [0, 1, 2, 3].map(|bit: u8| wanted >> bit & 1 == 1);
        let pair = (tx1 && tx2) || (rx1 && rx2);
        let timing = if pair { "2R2T" } else { "1R1T" };
        let mode = match (pair, tx2) {
            (true, _) => "MIMO",
            (false, true) => "SISO_TX1",
            (false, false) => "SISO_TX0",
        };
        let on = [tx1, tx2, rx1, rx2].map(Value::from);
        self.session.call("db_0_set_active_chains", &on)?;
        self.session.call("db_0_set_timing_mode", &[timing.into()])?;
        self.session.call("set_channel_mode", &[mode.into()])?;
        *powered = wanted;
        Ok(())
    }

    /// Sets the shifts and switches of all channels of a radio whose oscillator is at `rf_hz`.
    fn follow(
        &mut self,
        direction: StreamDirection,
        radio: BlockPort,
        rf_hz: f64,
    ) -> Result<(), RadioError> {
        let (ticks_hz, mut touched) = (self.ticks_hz, Vec::new());
        for (channel, set) in self.sets_mut(direction).into_iter().enumerate() {
            if set.radio.block.index != radio.block.index {
                continue;
            }
            set.front.rf_hz = rf_hz;
            let Some(target_hz) = set.front.target_hz else { continue };
            let shift_hz = TuneResult::shift_hz(direction, target_hz, rf_hz);
            let mut wanted = *set;
            wanted.dsp.shift_hz = if shift_hz.abs() <= ticks_hz / 2.0 { shift_hz } else { 0.0 };
            touched.push((channel, wanted));
        }
        for (channel, set) in touched {
            set.dsp.write_shift(&*self.control, ticks_hz)?;
            self.sets_mut(direction)[channel].dsp = set.dsp;
            self.switch(set.radio)?;
            if let Some((front_end, GainControl::Split(name))) =
                self.front_end().map(|front_end| (front_end, front_end.gain))
            {
                self.set_transceiver_gain((front_end, name), direction, &set)?;
            }
        }
        Ok(())
    }

    /// Calls a method that tunes a channel to a frequency, with a further argument if it has one:
    /// whether to wait for the lock. Returns the frequency that the device took.
    pub(super) fn call_tune(
        &self,
        front_end: &RadioFrontEnd,
        direction: StreamDirection,
        set: &ChainSettings,
        (name, wanted_hz): (&str, f64),
        waits: Option<bool>,
    ) -> Result<f64, RadioError> {
        let (method, chain) = self.method_for(front_end, direction, set, name);
        let mut arguments = vec![chain, wanted_hz.into()];
        arguments.extend(waits.map(Value::from));
        let answer = self.session.call(&method, &arguments)?;
        let hz = as_f64(&answer).filter(|hz| *hz > 0.0);
        Ok(hz.ok_or_else(|| self.session.protocol(&method, "no frequency"))?)
    }

    /// Writes the switches and LEDs of a channel, for all states of its radio.
    fn switch(&self, radio: BlockPort) -> Result<(), RadioError> {
        match self.front_end().map(|front_end| front_end.oscillator) {
            Some(Oscillator::Synthesiser) => return self.switch_rhodium(radio),
            Some(Oscillator::Transceiver(_)) => return self.switch_magnesium(radio),
            _ => {}
        }
        if self.front_end().is_none_or(|front_end| !front_end.has_switches) {
            return Ok(());
        }
        let front = |direction| self.front_of(direction, radio);
        let (rx, tx) = (front(StreamDirection::Rx), front(StreamDirection::Tx));
        let settings = SwitchSettings {
            channel: radio.port,
            rx_hz: rx.rf_hz,
            tx_hz: tx.rf_hz,
            antenna: rx.antenna,
        };
        self.write_outputs(radio, SWITCHES, settings.switches())?;
        self.write_outputs(radio, LEDS, settings.leds())
    }

    /// Returns the settings of a channel of this radio; those of one that nobody has tuned if there
    /// is none.
    pub(super) fn front_of(&self, direction: StreamDirection, radio: BlockPort) -> FrontState {
        let of_it = self.sets(direction).into_iter().find(|set| set.radio == radio);
        of_it.map_or(FrontState::default(), |set| set.front)
    }

    /// Writes the words of a channel's core of outputs, whose base for channel 0 is `base`.
    pub(super) fn write_outputs(
        &self,
        radio: BlockPort,
        base: u32,
        words: OutputWords,
    ) -> Result<(), RadioError> {
        let base = base + CHANNEL_STRIDE * u32::from(radio.port);
        let write = |(offset, value)| self.control.write(radio.block.port, base + offset, value);
        words.writes().into_iter().try_for_each(write)
    }

    /// Returns the serial bus of a radio, on which its CPLD answers: a radio of another kind may
    /// have other things there. Of the CPLD these are the slave, the word of a register without a
    /// function, and the bit of a word that reads.
    pub(super) fn bus_with_cpld(
        &self,
        radio: BlockPort,
        (cpld, scratch, read): (u32, u32, u32),
    ) -> Result<SpiBus<'_, Control>, RadioError> {
        const MARK: u16 = 0x5A3C;
        let bus = SpiBus::new(&*self.control, radio.block.port);
        bus.send(cpld, scratch | u32::from(MARK))?;
        if bus.ask(cpld, scratch | read)? != MARK {
            let reason = "its CPLD does not answer on the serial bus of the radio block";
            return Err(self.not_set(reason.to_owned()));
        }
        Ok(bus)
    }

    pub(super) fn not_set(&self, reason: String) -> RadioError {
        RadioError::Unusable { address: self.address(), reason }
    }

    /// Returns a method of a channel's daughterboard, and the name of its chain there.
    pub(super) fn method_for(
        &self,
        front_end: &RadioFrontEnd,
        direction: StreamDirection,
        set: &ChainSettings,
        name: &str,
    ) -> (String, Value) {
        let chain = front_end.chain(direction, set.radio.port);
        (front_end.method(set.radio_number, name), chain.into())
    }

    /// Returns the settings of a channel.
    pub(super) fn settings(
        &self,
        direction: StreamDirection,
        channel: usize,
    ) -> Result<ChainSettings, RadioError> {
        let (all, what) = (self.sets(direction), direction.verb());
        let none = RadioError::NoSuchChannel { what, channel, available: all.len() };
        all.get(channel).map(|set| **set).ok_or(none)
    }

    fn has_setting(&self, what: &'static str) -> Result<&'static RadioFrontEnd, RadioError> {
        self.front_end().ok_or_else(|| self.no_setting(what))
    }

    pub(super) fn no_setting(&self, what: &'static str) -> RadioError {
        let product = self.info().product().to_owned();
        RadioError::NoSetting { address: self.address(), what, product }
    }
}

/// Checks that a value lies in its range.
pub(super) fn check_range(
    what: &'static str,
    value: f64,
    (from, to): (f64, f64),
    unit: &'static str,
) -> Result<(), RadioError> {
    let fits = (from..=to).contains(&value);
    if fits { Ok(()) } else { Err(RadioError::OutOfRange { what, value, from, to, unit }) }
}
