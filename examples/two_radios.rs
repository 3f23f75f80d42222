//! Receives the same moments from two radios, which take one time at a PPS edge.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const SAMPLES: u64 = 100_000;

/// Starts a radio whose samples are their own times, and whose seconds are a quarter as long.
fn radio(serial: &str) -> Result<(RunningRadio, DeviceArgs), Box<dyn Error>> {
    Ok(millstream::emulated_radio(RadioConfig {
        rx_antennas: vec!["ramp".to_owned()],
        serial: serial.to_owned(),
        time_scale: 4.0,
        rx_buffer_samples: 1 << 26,
        ..RadioConfig::default()
    })?)
}

/// Returns the number of samples received, and of those that are the same on both radios.
fn run() -> Result<(usize, usize), Box<dyn Error>> {
    let ((_one, first), (_two, second)) = (radio("ONE")?, radio("TWO")?);
    let mut set = DeviceSet::open([first, second])?;
    set.set_rate(400e3)?;
    set.sync_at_pps(0, PATIENCE)?;
    let mut group = set.rx_group(&[(0, RxArgs::new(0)), (1, RxArgs::new(0))])?;
    // Half a second of the radios ahead.
    let start_ticks = set.devices()[0].time_ticks()? + 200_000;
    group.start_finite(SAMPLES, Some(start_ticks))?;
    let [mut a, mut b] = [(); 2].map(|()| vec![[0; 2]; 4096]);
    let (mut received, mut same) = (0, 0);
    while group.is_running() {
        let meta = group.recv_sc16(&mut [&mut a, &mut b], PATIENCE)?;
        received += meta.samples;
        same += a.iter().zip(&b).take(meta.samples).filter(|(a, b)| a == b).count();
    }
    group.finish().iter().try_for_each(Ledger::balance)?;
    Ok((received, same))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (received, same) = run()?;
    println!("{received} samples of each radio, {same} of them of the same moment");
    Ok(())
}

#[test]
fn both_radios_bring_the_same_moments() {
    let (received, same) = run().unwrap();
    assert_eq!((received, same), (SAMPLES as usize, SAMPLES as usize));
}
