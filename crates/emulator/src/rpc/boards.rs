//! The methods of the daughterboards.

use super::methods::{Answer, Mpm, no_method};
use super::sensors;
use super::values::{none, number, strings, text};
use crate::mailbox::DeviceCommand;
use crate::personality::FrontEndKind;
use millstream_mpm::split_board;
use rmpv::Value;

impl Mpm {
    /// Splits the name of a method of a daughterboard: its number, and the name after it.
    pub(super) fn board_of<'a>(&self, method: &'a str) -> Option<(usize, &'a str)> {
        let (number, name) = split_board(method)?;
        let number = number as usize;
        (number < self.front_ends.len()).then_some((number, name))
    }

    /// Handles the methods of daughterboard `board`.
    pub(super) fn board_call(
        &mut self,
        board: usize,
        name: &str,
        args: &[Value],
        now_ns: u64,
    ) -> Answer {
        if name == "get_master_clock_rate" {
            return Ok(Value::from(self.timekeeper.clock().rate_hz()));
        }
        let answer = match self.identity.personality.front_end {
            FrontEndKind::Ad9361 | FrontEndKind::Ad9361Swapped => {
                self.ad9361_call(name, args, now_ns)?
            }
            FrontEndKind::Ad9371 => self.ad9371_call(board, name, args, now_ns)?,
            FrontEndKind::Lmx2592 => lmx2592_call(name),
            FrontEndKind::Zbx => self.zbx_call(name),
        };
        answer.ok_or_else(|| no_method(&format!("db_{board}_{name}")))
    }

    fn ad9361_call(
        &mut self,
        name: &str,
        args: &[Value],
        now_ns: u64,
    ) -> Result<Option<Value>, String> {
        Ok(Some(match name {
            "set_catalina_clock_rate" => self.set_rate(number(args, 0)?, now_ns)?,
            "get_sensors" => strings(sensors::names(text(args, 0)?, self.identity.scene.is_some())),
            "get_sensor" => {
                let scene = self.identity.scene.as_ref();
                sensors::read(args, &self.front_ends[0], scene, now_ns)?
            }
            "catalina_tune" => self.tune(0, args, now_ns)?,
            "set_gain" => self.set_gain(0, args)?,
            "set_bw_filter" => self.set_bandwidth(0, args)?,
            "set_dc_offset_auto"
            | "set_iq_balance_auto"
            | "set_agc"
            | "set_active_chains"
            | "set_timing_mode"
            | "data_port_loopback" => Value::Nil,
            _ => return Ok(None),
        }))
    }

    fn ad9371_call(
        &mut self,
        board: usize,
        name: &str,
        args: &[Value],
        now_ns: u64,
    ) -> Result<Option<Value>, String> {
        let front_end = &self.front_ends[board];
        Ok(Some(match name {
            "set_freq" => self.tune(board, args, now_ns)?,
            "set_gain" => self.set_gain(board, args)?,
            "set_bandwidth" => self.set_bandwidth(board, args)?,
            "get_freq" => Value::from(front_end.frequency_hz(text(args, 0)?)?),
            "get_gain" => Value::from(front_end.gain_db(text(args, 0)?)?),
            "get_bandwidth" => Value::from(front_end.bandwidth_hz(text(args, 0)?)?),
            "get_ad9371_lo_lock" => {
                Value::from(front_end.is_locked(text(args, 0)?.starts_with("RX"), now_ns))
            }
            "get_lowband_lo_lock" => Value::from(true),
            "get_lo_source" => Value::from("internal"),
            "set_lo_source" => Value::from(source_of_oscillator(args)?),
            "get_sensors" => none(),
            // Gain and taps of the filters, which pass everything.
            "get_fir" => Value::Array(vec![Value::from(6), Value::Array(vec![Value::from(0); 48])]),
            "set_fir" | "set_master_clock_rate" => Value::Nil,
            _ => return Ok(None),
        }))
    }

    fn zbx_call(&self, name: &str) -> Option<Value> {
        // The converters run at a multiple of the master clock, and the oscillators from a part.
        let (converter_hz, reference_hz) = match self.timekeeper.clock().rate_hz() {
            200e6 => (3.2e9, 50e6),
            rate_hz if rate_hz % 125e6 == 0.0 => (3e9, 62.5e6),
            _ => (2.949_12e9, 61.44e6),
        };
        Some(match name {
            "get_dboard_prc_rate" => Value::from(reference_hz),
            "get_dboard_sample_rate" => Value::from(converter_hz),
            "get_sensors" => none(),
            "enable_iq_swap" => Value::Nil,
            _ => return None,
        })
    }

    fn tune(&mut self, board: usize, args: &[Value], now_ns: u64) -> Answer {
        let actual = self.front_ends[board].tune(text(args, 0)?, number(args, 1)?, now_ns)?;
        Ok(self.apply(board, actual))
    }

    fn set_gain(&mut self, board: usize, args: &[Value]) -> Answer {
        let actual = self.front_ends[board].set_gain(text(args, 0)?, number(args, 1)?)?;
        Ok(self.apply(board, actual))
    }

    fn set_bandwidth(&mut self, board: usize, args: &[Value]) -> Answer {
        let actual = self.front_ends[board].set_bandwidth(text(args, 0)?, number(args, 1)?)?;
        Ok(self.apply(board, actual))
    }

    /// Passes new settings to the device; returns the answer to the host.
    fn apply(&self, board: usize, actual: f64) -> Value {
        self.order(DeviceCommand::FrontEnd(board, self.front_ends[board]));
        Value::from(actual)
    }
}

/// Handles the methods of a daughterboard that hosts otherwise reach by registers.
fn lmx2592_call(name: &str) -> Option<Value> {
    Some(match name {
        // The distribution of oscillators is part of an N321.
        "is_lo_dist_present" => Value::from(false),
        "get_sensors" => none(),
        "enable_rx_lowband_lo" | "enable_tx_lowband_lo" | "set_master_clock_rate" => Value::Nil,
        _ => return None,
    })
}

/// Returns the source that is set for an oscillator, the last argument; there is one.
fn source_of_oscillator(args: &[Value]) -> Result<&str, String> {
    match text(args, args.len().saturating_sub(1))? {
        "internal" => Ok("internal"),
        other => Err(format!("source {other} of the oscillator is not internal")),
    }
}

#[cfg(test)]
#[path = "boards_tests.rs"]
mod tests;
