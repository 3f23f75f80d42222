//! The control requests of the blocks around the radio.

use super::EmulatedDevice;
use super::operations::Access;
use super::radio_block::{NoRegister, RadioChannel};
use super::rx_chain::RxChain;
use crate::converter::registers::{self, Direction, Registers};
use crate::personality::{Block, BlockKind};
use millstream_wire::ctrl::CtrlRepr;
use millstream_wire::regs::dsp;

/// The steps of samples that a channel processes in one call.
const STEPS_MAX: u64 = 4;

impl EmulatedDevice {
    /// Executes and acknowledges a request. One with a time does not hold up those behind it: the
    /// blocks keep its value until then.
    pub(super) fn execute_converter(&mut self, block: &Block, request: &CtrlRepr, now: u64) {
        let direction = if block.kind == BlockKind::Ddc { Direction::Down } else { Direction::Up };
        self.serve(request, |device, access| {
            let (Access::Read(address) | Access::Write(address, _)) = access;
            let (port, offset) =
                ((address / dsp::CHANNEL_STRIDE) as usize, address % dsp::CHANNEL_STRIDE);
            let is_multisample = device.image.dsp_major > 0;
            let value = match access {
                _ if port >= usize::from(block.inputs) => return Err(NoRegister),
                Access::Read(_) if is_multisample => {
                    let cycle = device.radio.cycle;
                    return registers::read_multisample(address, cycle).ok_or(NoRegister);
                }
                Access::Read(_) => return Ok(Registers::read(offset)),
                Access::Write(_, value) => value,
            };
            // The samples so far have the old values.
            device.run_channels(now);
            let writes = match is_multisample {
                true => registers::of_multisample(direction, offset, value).ok_or(NoRegister)?,
                false => [Some((offset, value)), None, None],
            };
            let channel = block.first + port;
            for (offset, value) in writes.into_iter().flatten() {
                match direction {
                    Direction::Down => device.write_ddc(channel, offset, value, request.timestamp),
                    Direction::Up => device.write_duc(channel, offset, value, request.timestamp),
                }
            }
            Ok(value)
        });
    }

    fn write_duc(&mut self, channel: usize, offset: u32, value: u32, time: Option<u64>) {
        let emission = &mut self.emissions[channel];
        if let Some(duc) = &mut emission.duc {
            duc.write(offset, value, time);
        }
        let interpolation = emission.interpolation();
        self.radio.channels[channel].tx.set_interpolation(interpolation);
    }

    fn write_ddc(&mut self, channel: usize, offset: u32, value: u32, time: Option<u64>) {
        let Some(chain) = self.senders[channel].source().chain() else { return };
        let Some(ddc) = chain.ddc() else { return };
        let close = ddc.write(offset, value, time);
        let decimation = ddc.factor();
        let radio = &mut self.radio.channels[channel];
        radio.rx.set_decimation(decimation);
        if close {
            let packet = radio.packet_samples();
            radio.rx.split(packet);
        }
    }

    /// Processes the samples that a channel received before tick `now`.
    pub(super) fn run_chain(&mut self, channel: usize, now: u64) {
        let reception = self.radio.reception(channel, self.keeper.clock().rate_hz());
        let Some(chain) = self.senders[channel].source().chain() else { return };
        let mut air = chain.loopback().and_then(|from| self.emissions[from].air.as_mut());
        let keeper = &self.keeper;
        // A machine that is too slow must still answer. What is in the air does not wait.
        let most = if air.is_some() { u64::MAX } else { STEPS_MAX * chain.step_ticks(keeper) };
        let RadioChannel { rx, rx_gain, .. } = &mut self.radio.channels[channel];
        rx.read_antenna(now, most, |stretch| {
            chain.record(&stretch, keeper, &reception, (rx_gain, air.as_deref_mut()));
        });
    }

    /// Restores the state of the blocks after power-on.
    pub(super) fn reset_converters(&mut self) {
        for channel in 0..self.image.channels {
            let radio = &mut self.radio.channels[channel];
            if let Some(ddc) = self.senders[channel].source().chain().and_then(RxChain::ddc) {
                ddc.reset();
                radio.rx.set_decimation(1);
            }
            if let Some(duc) = &mut self.emissions[channel].duc {
                duc.reset();
                radio.tx.set_interpolation(1);
            }
        }
    }

    /// Returns the tick until which the samples of a receiving channel must have been processed.
    pub(super) fn next_step(&mut self, channel: usize, now: u64) -> Option<u64> {
        let chain = self.senders[channel].source().chain()?;
        let rx = &self.radio.channels[channel].rx;
        if rx.is_behind(now) {
            return Some(now);
        }
        rx.is_running().then(|| now + chain.step_ticks(&self.keeper))
    }
}
