//! Modulates a transport stream file: `atsc_modulate IN.ts OUT RATE_HZ [sc16|cf32] [SECONDS]`.
//!
//! Without SECONDS it stops with the file, after enough null packets to flush the interleaver.

use millstream_atsc::Sample;
use millstream_atsc::tx::{MultiplexPacket, Transmitter, TsSource, TxConfig};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

/// Packets that follow the file: the interleaver's delay, and a field for the receiver to end in.
const FLUSH_PACKETS: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, rate, options @ ..] = args.as_slice() else {
        return Err("usage: atsc_modulate IN.ts OUT RATE_HZ [sc16|cf32] [SECONDS]".into());
    };
    let format = options.first().map_or("sc16", String::as_str);
    let seconds = options.get(1).map(|s| s.parse::<f64>()).transpose()?;
    let sample_rate_hz: f64 = rate.parse()?;
    let mut source = TsSource::open(input, seconds.is_some())?;
    let mut transmitter = Transmitter::new(TxConfig { sample_rate_hz, ..TxConfig::default() })?;
    let mut out = BufWriter::new(File::create(output)?);
    let mut samples = vec![Sample::default(); 16_384];
    let mut left = seconds.map_or(usize::MAX, |s| (s * sample_rate_hz) as usize);
    let mut after_end = 0;
    while left > 0 && after_end < FLUSH_PACKETS {
        let count = left.min(samples.len());
        let mut next = |packet: &mut [u8; 188]| {
            after_end += usize::from(source.next_packet(packet) == MultiplexPacket::Ended);
        };
        transmitter.generate(&mut next, &mut samples[..count]);
        write(&mut out, &samples[..count], format)?;
        left -= count;
    }
    Ok(out.flush()?)
}

fn write(out: &mut impl Write, samples: &[Sample], format: &str) -> Result<(), Box<dyn Error>> {
    for part in samples.iter().flat_map(|s| [s.re, s.im]) {
        match format {
            "sc16" => out.write_all(&((part * 32_767.0).round() as i16).to_le_bytes())?,
            "cf32" => out.write_all(&part.to_le_bytes())?,
            other => return Err(format!("unknown sample format {other}: sc16 or cf32").into()),
        }
    }
    Ok(())
}
