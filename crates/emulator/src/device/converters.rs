//! The control requests of the blocks around the radio.

use super::EmulatedDevice;
use super::operations::Access;
use super::radio_block::{NoRegister, RadioChannel};
use super::rx_chain::RxChain;
use crate::converter::registers::Registers;
use crate::personality::{Block, BlockKind};
use millstream_wire::ctrl::CtrlRepr;
use millstream_wire::regs::dsp;

/// The steps of samples that a channel processes in one call.
const STEPS_MAX: u64 = 4;

impl EmulatedDevice {
    /// Executes and acknowledges a request. One with a time does not hold up those behind it: the
    /// blocks keep its value until then.
    pub(super) fn execute_converter(&mut self, block: &Block, request: &CtrlRepr, now: u64) {
        self.serve(request, |device, access| {
            let (Access::Read(address) | Access::Write(address, _)) = access;
            let (port, offset) =
                ((address / dsp::CHANNEL_STRIDE) as usize, address % dsp::CHANNEL_STRIDE);
            let map = device.image.dsp_map(block.kind).ok_or(NoRegister)?;
            let done = match access {
                _ if port >= usize::from(block.inputs) => None,
                Access::Read(_) => Registers::read(&map, port, offset, device.radio.cycle),
                Access::Write(_, value) => {
                    // The samples so far have the old values.
                    device.run_channels(now);
                    let channel = block.first + port;
                    match block.kind {
                        BlockKind::Ddc => {
                            device.write_ddc(channel, offset, value, request.timestamp)
                        }
                        _ => device.write_duc(channel, offset, value, request.timestamp),
                    }
                    .map(|()| value)
                }
            };
            done.ok_or(NoRegister)
        });
    }

    /// Writes a register of a DUC; `None` where there is none, as below.
    fn write_duc(
        &mut self,
        channel: usize,
        offset: u32,
        value: u32,
        time: Option<u64>,
    ) -> Option<()> {
        let emission = &mut self.emissions[channel];
        emission.duc.as_mut()?.write(offset, value, time)?;
        self.radio.channels[channel].tx.set_interpolation(emission.interpolation());
        Some(())
    }

    fn write_ddc(
        &mut self,
        channel: usize,
        offset: u32,
        value: u32,
        time: Option<u64>,
    ) -> Option<()> {
        let ddc = self.senders[channel].source().chain()?.ddc()?;
        let close = ddc.write(offset, value, time)?;
        let radio = &mut self.radio.channels[channel];
        radio.rx.set_decimation(ddc.factor());
        if close {
            let packet = radio.packet_samples();
            radio.rx.split(packet);
        }
        Some(())
    }

    /// Processes the samples that a channel received before tick `now`.
    pub(super) fn run_chain(&mut self, channel: usize, now: u64) {
        let Some(chain) = self.senders[channel].source().chain() else { return };
        let reception = self.radio.reception(channel, self.keeper.clock().rate_hz());
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
