//! Receives a recording: `atsc_receive IN OUT.ts RATE_HZ [sc16|cf32]`; prints the receiver's
//! status.

use millstream_atsc::Sample;
use millstream_atsc::rx::{Receiver, RxConfig};
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, rate, format @ ..] = args.as_slice() else {
        return Err("usage: atsc_receive IN OUT.ts RATE_HZ [sc16|cf32]".into());
    };
    let format = format.first().map_or("sc16", String::as_str);
    let sample_bytes = match format {
        "sc16" => 4,
        "cf32" => 8,
        other => return Err(format!("unknown sample format {other}: sc16 or cf32").into()),
    };
    let mut receiver = Receiver::new(RxConfig { sample_rate_hz: rate.parse()? })?;
    let mut reader = BufReader::new(File::open(input)?);
    let mut out = BufWriter::new(File::create(output)?);
    let mut bytes = Vec::new();
    let mut samples = Vec::new();
    loop {
        bytes.clear();
        reader.by_ref().take(65_536).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            break;
        }
        samples.clear();
        samples.extend(bytes.chunks_exact(sample_bytes).map(sample));
        let mut written = Ok(());
        receiver.process(&samples, &mut |packet| {
            if written.is_ok() {
                written = out.write_all(packet);
            }
        });
        written?;
    }
    let mut written = Ok(());
    receiver.finish(&mut |packet| {
        if written.is_ok() {
            written = out.write_all(packet);
        }
    });
    written?;
    out.flush()?;
    println!("{:#?}", receiver.monitor().status());
    Ok(())
}

/// Decodes one sample: four bytes are sc16, eight are cf32.
fn sample(bytes: &[u8]) -> Sample {
    let part = |half: &[u8]| match *half {
        [a, b] => f32::from(i16::from_le_bytes([a, b])) * millstream_flow::SC16_SCALE,
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]),
        _ => unreachable!("halves have two or four bytes"),
    };
    let (re, im) = bytes.split_at(bytes.len() / 2);
    Sample::new(part(re), part(im))
}
