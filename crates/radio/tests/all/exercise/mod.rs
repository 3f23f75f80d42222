//! The host against devices with arbitrary answers: property tests and fuzz targets share it.
//! Nothing here waits or uses a network.
#![allow(dead_code, unused_imports, reason = "each fuzz target uses a part of it")]

mod blocks;
mod ports;
mod receive;
mod topology;

pub use blocks::blocks;
pub use receive::receive;
pub use topology::topology;

use std::cell::Cell;
use std::net::Ipv4Addr;

use millstream_radio::channel::DeviceFormat;
use millstream_radio::client_zero::ClientZero;
use millstream_radio::control::Registers;
use millstream_radio::device::{ChdrLink, SensorReading, SessionInfo};
use millstream_radio::graph::StreamDirection;
use millstream_radio::rpc::{as_f64, as_u64, as_version, take_apart, take_object};
use millstream_radio::{DeviceArgs, RadioError};

/// Words from a list of bytes, repeated.
struct Words<'a> {
    bytes: &'a [u8],
    at: Cell<usize>,
}

impl Registers for Words<'_> {
    fn address(&self) -> Ipv4Addr {
        Ipv4Addr::LOCALHOST
    }

    fn read(&self, _: u16, address: u32) -> Result<u32, RadioError> {
        let words = self.bytes.len() / 4;
        let at = self.at.replace(self.at.get() + 1) % words.max(1);
        let word = self.bytes.chunks_exact(4).nth(at).map_or(address, |word| {
            u32::from_le_bytes(word.try_into().expect("it has four bytes"))
        });
        Ok(word)
    }

    fn write(&self, _: u16, _: u32, _: u32) -> Result<(), RadioError> {
        Ok(())
    }
}

/// Exercises registers with arbitrary content.
pub fn registers(bytes: &[u8]) {
    for word in bytes.chunks_exact(4) {
        let format = DeviceFormat::from_word(u32::from_le_bytes(word.try_into().unwrap()));
        assert!(format.length_factor.is_none() || format.bits > 0);
    }
    let words = Words { bytes, at: Cell::new(0) };
    let Ok(mut zero) = ClientZero::read(&words) else { return };
    assert!(zero.blocks.iter().all(|block| block.index > zero.endpoints && block.port > 0));
    // Each step of a walk searches the whole list.
    zero.blocks.truncate(4);
    for chain in
        zero.chains(StreamDirection::Rx).into_iter().chain(zero.chains(StreamDirection::Tx))
    {
        assert!(
            chain.endpoint.as_ref().is_ok_and(|instance| *instance < zero.endpoints)
                || chain.describe(&zero).contains("unusable, because")
        );
    }
}

/// Exercises the bytes of an RPC connection.
pub fn answers(bytes: &[u8]) {
    let mut unread = bytes.to_vec();
    let mut values = Vec::new();
    while let Ok(Some(object)) = take_object(&mut unread) {
        let Some(value) = object else { continue };
        // An answer, or at least a possible part of one.
        match take_apart(value.clone()) {
            Some((_, Ok(result))) => values.push(result),
            Some((_, Err(text))) => assert!(!text.is_empty() || bytes.len() > 4),
            None => values.push(value),
        }
    }
    for value in &values {
        assert!(as_f64(value).is_none_or(f64::is_finite));
        let _ = (as_u64(value), as_version(value));
        if let Some(reading) = SensorReading::from_answer(value) {
            assert!(reading.as_f64().is_none_or(f64::is_finite));
            let _ = reading.as_bool();
        }
        if let Ok(link) = ChdrLink::from_answer(value, Ipv4Addr::LOCALHOST) {
            assert_ne!(link.address.port(), 0);
        }
        let further = ChdrLink::at(value, Ipv4Addr::LOCALHOST);
        assert!(further.is_none_or(|link| link.address.ip().is_loopback()));
        for clocks in values.iter().take(4) {
            let Ok(info) = SessionInfo::from_answers(value, clocks) else { continue };
            let _ = (info.product(), info.serial());
            let rate = info.clock_hz("radio_clk");
            assert!(rate.is_none_or(|rate| (1.0..=1e11).contains(&rate)));
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = text.parse::<DeviceArgs>();
    }
}
