//! A television station: the 8-VSB transmitter, running live.

use super::live::{LiveAntenna, SignalGenerator};
use super::{Antenna, Sc16, quantise, sc16};
use crate::Error;
use millstream_atsc::Sample;
use millstream_atsc::tx::{Transmitter, TsSource, TxConfig};

/// The samples generated at once: few enough to fit the cache.
const BLOCK_SAMPLES: usize = 2048;

/// Returns a station that transmits a transport stream file, and the RMS of its samples.
pub(crate) fn atsc_antenna(path: &str) -> Result<(Box<dyn Antenna>, f32), Error> {
    Ok((open(&format!("atsc:{path}"), path)?, TxConfig::default().rms))
}

/// Transmits the transport stream file of `spec` at the radio's rate, repeatedly.
pub(super) fn open(spec: &str, path: &str) -> Result<Box<dyn Antenna>, Error> {
    // Rates that cannot carry the signal give silence, which is counted as starved.
    let stream = TsSource::open(path, true).map_err(|error| Error::AntennaFile {
        spec: spec.to_owned(),
        path: path.into(),
        reason: error.to_string(),
    })?;
    Ok(Box::new(LiveAntenna::new(Box::new(move |rate_hz| {
        let config = TxConfig { sample_rate_hz: rate_hz, ..TxConfig::default() };
        Transmitter::new(config).ok().map(|transmitter| generator(transmitter, stream.clone()))
    }))))
}

fn generator(mut transmitter: Transmitter, mut stream: TsSource) -> SignalGenerator {
    let mut block = vec![Sample::default(); BLOCK_SAMPLES];
    Box::new(move |out: &mut [Sc16]| {
        for out in out.chunks_mut(BLOCK_SAMPLES) {
            let block = &mut block[..out.len()];
            let mut next_packet = |packet: &mut [u8; 188]| {
                stream.next_packet(packet);
            };
            transmitter.generate(&mut next_packet, block);
            for (sample, value) in out.iter_mut().zip(block) {
                *sample = sc16(quantise(value.re.into()), quantise(value.im.into()));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::antenna::parse;

    fn null_packets(count: usize) -> Vec<u8> {
        let mut packet = [0xff; 188];
        packet[..4].copy_from_slice(&[0x47, 0x1f, 0xff, 0x10]);
        packet.repeat(count)
    }

    #[test]
    fn the_station_sends_what_the_transmitter_makes() {
        let file = tempfile::Builder::new().suffix(".ts").tempfile().unwrap();
        std::fs::write(file.path(), null_packets(100)).unwrap();
        let mut antenna = parse(&format!("atsc:{}", file.path().display())).unwrap();
        antenna.prepare(6.25e6);
        let mut out = vec![[0; 4]; 10_000];
        antenna.fill(1 << 33, &mut out);
        assert_eq!(antenna.starved_samples(), 0);

        let mut want = vec![[0; 4]; 10_000];
        let stream = TsSource::new(&null_packets(100), true).unwrap();
        generator(Transmitter::new(TxConfig::default()).unwrap(), stream)(&mut want);
        assert_eq!(out, want);
        assert!(out.iter().any(|sample| *sample != [0; 4]));
    }

    #[test]
    fn a_file_that_is_no_transport_stream_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (content, reason) in [(&[1u8; 376][..], "must begin with 0x47"), (&[], "empty")] {
            std::fs::write(file.path(), content).unwrap();
            let spec = format!("atsc:{}", file.path().display());
            let text = parse(&spec).err().unwrap().to_string();
            assert!(text.contains(&spec) && text.contains(reason), "{text}");
        }
        assert!(parse("atsc:/nonexistent.ts").err().unwrap().to_string().contains("No such file"));
        assert!(parse("atsc:/dev/zero").err().unwrap().to_string().contains("not a regular file"));
        assert!(parse("atsc:").err().unwrap().to_string().contains("`file` is missing"));
    }
}
