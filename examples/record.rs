//! Receives a tenth of a second to a file of raw 16-bit samples (sc16).

use millstream::prelude::*;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// Receives `count` samples of a radio to a file; returns the ledger.
fn record(args: &str, count: u64, path: &Path) -> Result<Ledger, Box<dyn Error>> {
    let radio = Radio::open(&args.parse()?)?;
    radio.rx(0).set_rate(1e6)?;
    let stream = radio.rx(0).stream(RxOptions::default())?;
    let mut file = BufWriter::new(File::create(path)?);
    let mut samples = vec![[0_i16; 2]; stream.samples_per_read()];
    stream.start(StreamStart::now().with_samples(count))?;
    loop {
        let got = match stream.read(&mut [&mut samples], Duration::from_secs(5)) {
            Ok(got) => got,
            Err(ClientError::Gap(gap)) => {
                println!("{gap}");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for part in samples[..got.samples].as_flattened() {
            file.write_all(&part.to_le_bytes())?;
        }
        if got.end_of_burst {
            break;
        }
        if got.samples == 0 {
            return Err("no sample came for five seconds".into());
        }
    }
    file.flush()?;
    Ok(stream.ledger(0).ok_or("no samples came")?)
}

fn main() -> Result<(), Box<dyn Error>> {
    // An argument such as `addr=192.168.10.2` names a radio.
    let args = std::env::args().nth(1);
    let args = args.as_deref().unwrap_or("radio=emulated,antenna=tone:100e3;0.5");
    let ledger = record(args, 100_000, Path::new("samples.sc16"))?;
    println!("samples.sc16: {} of {} samples", ledger.delivered, ledger.expected);
    Ok(())
}

#[test]
fn the_file_has_every_sample_in_order() {
    let path = std::env::temp_dir().join(format!("record-{}.sc16", std::process::id()));
    // Each sample of this antenna is its own time.
    let args = "radio=emulated,antenna=ramp";
    let ledger = record(args, 100_000, &path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((ledger.expected, bytes.len()), (100_000, 400_000));
    let times = bytes.chunks_exact(4).map(|x| u32::from_le_bytes(x.try_into().unwrap()));
    let first = times.clone().next().unwrap();
    assert!(times.eq((0..100_000).map(|n| first.wrapping_add(n))));
}
