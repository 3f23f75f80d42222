//! The blocks by name, for graph files.

use super::{
    AtscDeinterleaver, AtscDemod, AtscDerandomizer, AtscEqualizer, AtscReedSolomon,
    AtscTransmitter, AtscViterbi, Packets,
};
use crate::monitor::Monitor;
use crate::rx::RxConfig;
use crate::tx::{Impairments, Numbered, TsSource, TxConfig};
use millstream_flow::registry::{BlockType, ParameterKind, Parameters, Registry};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

const RECEIVER: &str = "receiver";
const RECEIVER_HELP: &str = "name of the receiver that this block is part of";

/// The [`Monitor`]s of the receivers in the graphs that were built, by receiver name.
///
/// Blocks with the same parameter `receiver` (default `atsc`) report to the same monitor.
#[derive(Clone, Debug, Default)]
pub struct Monitors {
    by_name: Arc<Mutex<BTreeMap<String, Arc<Monitor>>>>,
}

impl Monitors {
    /// Returns the monitor of the receiver called `name`, and creates it first if necessary.
    #[must_use]
    pub fn of(&self, name: &str) -> Arc<Monitor> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.entry(name.to_owned()).or_default().clone()
    }

    /// Returns every monitor with its receiver's name.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Arc<Monitor>)> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.iter().map(|(name, monitor)| (name.clone(), monitor.clone())).collect()
    }

    fn named_in(&self, parameters: &Parameters) -> Arc<Monitor> {
        self.of(parameters.text(RECEIVER))
    }
}

/// Adds the receiver's blocks to a registry, and returns the monitors that they report to.
///
/// # Panics
/// If the registry has them already.
pub fn register(registry: &mut Registry) -> Monitors {
    let monitors = Monitors::default();
    let named =
        |name, summary| BlockType::declare(name, summary).optional(RECEIVER, "atsc", RECEIVER_HELP);
    let of = monitors.clone();
    registry.register(
        named("atsc_demod", "Finds and demodulates an ATSC signal: turns samples into segments.")
            .required("rate_hz", ParameterKind::Number, "complex samples per second, from 5.45e6")
            .example("rate_hz = 6.25e6")
            .pure(move |parameters| {
                let config = RxConfig { sample_rate_hz: parameters.number("rate_hz") };
                Ok(Box::new(AtscDemod::new(config, of.named_in(parameters))?))
            }),
    );
    let of = monitors.clone();
    registry.register(
        named("atsc_equalizer", "Equalises segments; it trains on the field sync.")
            .pure(move |parameters| Ok(Box::new(AtscEqualizer::new(of.named_in(parameters))))),
    );
    registry.register(
        BlockType::declare("atsc_viterbi", "Decodes the trellis code: turns segments into bytes.")
            .pure(|_| Ok(Box::new(AtscViterbi::new()))),
    );
    registry.register(
        BlockType::declare("atsc_deinterleaver", "Deinterleaves the bytes of codewords.")
            .pure(|_| Ok(Box::new(AtscDeinterleaver::new()))),
    );
    let of = monitors.clone();
    registry.register(
        named("atsc_rs", "Corrects codewords, and marks those it cannot correct.")
            .pure(move |parameters| Ok(Box::new(AtscReedSolomon::new(of.named_in(parameters))))),
    );
    let of = monitors.clone();
    registry.register(
        named("atsc_derandomizer", "Derandomises codewords to transport stream packets.")
            .pure(move |parameters| Ok(Box::new(AtscDerandomizer::new(of.named_in(parameters))))),
    );
    registry.register(transmitter());
    monitors
}

fn transmitter() -> BlockType {
    BlockType::declare("atsc_transmitter", "Makes an 8-VSB signal without end, for tests.")
        .required("rate_hz", ParameterKind::Number, "complex samples per second, from 5.45e6")
        .optional("ts", "", "transport stream file, sent over and over; numbered packets if empty")
        .optional("seed", 1i64, "seed of the random packets")
        .optional("rms", 0.2, "level (RMS); peaks are about three times higher")
        .optional("clock_ppm", 0.0, "clock error, ppm: positive values make the symbols too fast")
        .example("rate_hz = 6.25e6")
        .reads(&[], |parameters| {
            let sample_rate_hz = parameters.number("rate_hz");
            let config = TxConfig { sample_rate_hz, rms: parameters.number("rms") as f32 };
            let spoilt =
                Impairments { clock_ppm: parameters.number("clock_ppm"), ..Impairments::default() };
            let transmitter = spoilt.transmitter(config)?;
            let packets = match parameters.text("ts") {
                "" => Packets::Numbered(Numbered::new(parameters.integer("seed") as u64)),
                path => Packets::Stream(Box::new(TsSource::open(path, true)?)),
            };
            Ok(Box::new(AtscTransmitter::new(transmitter, packets)))
        })
}
