//! Records from a radio whose packets get lost; the recording (SigMF) states every gap.

use millstream::prelude::*;
use std::error::Error;
use std::path::Path;

const RATE_HZ: f64 = 1e6;
const SAMPLES: u64 = 100_000;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Records a tenth of a second; returns the recording and the number of samples lost.
fn record(args: DeviceArgs, path: &Path) -> Outcome<(SigmfRecording, u64)> {
    let mut device = Device::open(args)?;
    device.set_rate(RATE_HZ)?;
    let stream = device.rx_stream(RxArgs::new(0).with_samples_per_packet(500))?;
    let (source, _segments) = RadioSource::<[i16; 2]>::new(device, stream, Some(SAMPLES));
    let mut graph = Graph::new();
    graph.add("radio", source)?;
    graph.add("file", SigmfSink::<[i16; 2]>::new(path, Some(RATE_HZ))?.overwrite())?;
    graph.chain(&["radio", "file"])?;
    let end = graph.run(&Plan::default())?;
    let radio = end.block("radio").ok_or("the graph has no radio")?;
    let count = |name| radio.metric(name).ok_or(format!("the radio has no metric {name}"));
    let lost = count("expected")? - count("delivered")?;
    Ok((SigmfRecording::open(path, None)?, lost as u64))
}

fn record_with_losses(path: &Path) -> Outcome<(SigmfRecording, u64)> {
    let (_radio, args) = millstream::emulated_radio(RadioConfig {
        // Each sample is its own time.
        rx_antennas: vec!["ramp".to_owned()],
        // A busy machine that fetches samples late loses none but those of the fault.
        rx_buffer_samples: 1 << 24,
        // Three packets, each behind fifty others.
        faults: vec!["lose to_host data skip=20 every=50 count=3".to_owned()],
        ..RadioConfig::default()
    })?;
    record(args, path)
}

fn main() -> Outcome<()> {
    let (recording, lost) = record_with_losses(Path::new("gaps.sigmf-meta"))?;
    println!("{} samples recorded, {lost} lost", recording.samples);
    for pair in recording.captures.windows(2) {
        let missing = pair[1].missing_since(&pair[0]).unwrap_or_default();
        println!("{missing} samples are missing before sample {}", pair[1].first_sample);
    }
    Ok(())
}

#[test]
fn the_recording_states_three_gaps_of_a_packet() {
    let folder = std::env::temp_dir().join(format!("gaps-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (recording, lost) = record_with_losses(&folder.join("gaps.sigmf-meta")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((recording.samples, lost), (SAMPLES - 1500, 1500));
    let gaps = recording.captures.windows(2).map(|pair| pair[1].missing_since(&pair[0]));
    assert_eq!(gaps.collect::<Vec<_>>(), [Some(500); 3]);
}
