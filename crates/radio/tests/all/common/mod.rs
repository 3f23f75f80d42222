//! An emulated radio for the tests, with faults of its packets.
#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]

pub mod burst;
pub mod draw;
pub mod group;
mod meddle;
pub mod played;
pub mod shrink;
pub mod simulated;
mod witness;

pub use meddle::{Action, HostIds, Meddler, is_data};
pub use witness::{Seen, Whole, Witness, watch, watched};

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_emulator::{Radio, RadioConfig, RunningRadio};
use millstream_radio::{Complex32, Device, DeviceArgs, RxArgs, RxEvent, RxStreamer};

/// Far longer than any step takes, so that a failing test ends.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Returns a configuration whose radio tolerates a busy machine: no loss without a fault of the
/// test.
pub fn patient() -> RadioConfig {
    RadioConfig { rx_buffer_samples: 1 << 26, tx_buffer_samples: 1 << 20, ..RadioConfig::default() }
}

/// Returns a radio on free ports whose antenna is a ramp: each sample is its own time.
pub fn radio(config: RadioConfig) -> (RunningRadio, DeviceArgs) {
    radio_with(RadioConfig { rx_antennas: vec!["ramp".to_owned()], ..config })
}

/// Returns a radio on free ports with the antennas of `config`.
pub fn radio_with(config: RadioConfig) -> (RunningRadio, DeviceArgs) {
    let radio =
        Radio::start(RadioConfig { discovery_port: 0, rpc_port: 0, chdr_port: 0, ..config })
            .expect("the emulated radio starts");
    let args = DeviceArgs {
        discovery_port: radio.discovery_addr().port(),
        rpc_port: radio.rpc_addr().port(),
        // A busy machine delays the radio, too.
        silence_max: PATIENCE / 5,
        ..DeviceArgs::new(Ipv4Addr::LOCALHOST)
    };
    (radio, args)
}

/// Returns the same, opened at a rate.
pub fn device(rate_hz: f64) -> (RunningRadio, Device) {
    let (radio, args) = radio(patient());
    let mut device = Device::open(args).expect("the device opens");
    assert_eq!(device.set_rate(rate_hz).expect("the rate is taken"), rate_hz);
    (radio, device)
}

/// The samples of a full packet in tests whose faults are counted in packets.
pub const SPP: u64 = 500;

pub fn args() -> RxArgs {
    RxArgs::new(0).with_samples_per_packet(SPP as u32)
}

/// Returns a device behind a port with faults.
pub fn meddled(meddler: Meddler, rate_hz: f64) -> (RunningRadio, Device) {
    let (radio, mut args) = radio(patient());
    args.open_port = Some(meddler.open_port());
    let mut device = Device::open(args).expect("the device opens");
    device.set_rate(rate_hz).expect("the rate is taken");
    (radio, device)
}

/// Returns the time in a ramp's sample, only its low 32 bits.
pub fn ramp(sample: Complex32) -> u32 {
    let low = (sample.re * 32767.0).round() as i16 as u16;
    let high = (sample.im * 32767.0).round() as i16 as u16;
    u32::from(high) << 16 | u32::from(low)
}

/// The results of a stream.
#[derive(Debug, Default)]
pub struct Brought {
    pub samples: u64,
    pub first_ticks: Option<u64>,
    pub events: Vec<RxEvent>,
    /// Samples missing by the events.
    pub missing: u64,
    pub ended: bool,
}

/// Receives until the burst ends or `most` samples have come, with buffers of odd sizes, and checks
/// every sample against its time.
pub fn receive(stream: &mut RxStreamer, most: u64) -> Brought {
    let mut buffer = vec![Complex32::default(); 5003];
    let mut brought = Brought::default();
    let before = stream.ledger().delivered;
    let mut due = None;
    for turn in 0.. {
        let size = [5003, 1, 1999, 2000, 2001, 17, 4096][turn % 7];
        let meta = stream.recv(&mut buffer[..size], PATIENCE).expect("the device lives");
        match meta.event {
            RxEvent::None => {}
            event => {
                assert_eq!(meta.samples, 0);
                assert_ne!(event, RxEvent::Timeout, "{brought:?}, {:?}", stream.counters());
                if !matches!(event, RxEvent::LateCommand) {
                    brought.missing += event.missing();
                    due = due.map(|due: u64| match event {
                        RxEvent::ClockJump { ticks, .. } => due.wrapping_add(ticks as u64),
                        _ => due.wrapping_add(event.missing()),
                    });
                    assert!(meta.time_ticks.is_none() || due.is_none() || meta.time_ticks == due);
                }
                brought.events.push(event);
            }
        }
        if meta.samples > 0 {
            let ticks = meta.time_ticks.expect("the device sends time");
            assert_eq!(ticks, due.unwrap_or(ticks), "time is contiguous");
            brought.first_ticks.get_or_insert(ticks);
            for (index, sample) in buffer[..meta.samples].iter().enumerate() {
                // A clock may be set back to a time before 0.
                let at = ticks.wrapping_add(index as u64);
                assert_eq!(ramp(*sample), at as u32, "sample {index}");
            }
            due = Some(ticks.wrapping_add(meta.samples as u64));
            brought.samples += meta.samples as u64;
        }
        if meta.end_of_burst || brought.samples >= most {
            brought.ended = meta.end_of_burst;
            break;
        }
    }
    stream.ledger().balance().expect("the ledger balances at any time");
    assert_eq!(stream.ledger().delivered - before, brought.samples);
    brought
}

/// Runs this test program with one test, whose process finds in the variable the arguments of a
/// radio, and kills it once it [holds](hold) the radio. Returns the number of the process.
pub fn kill_holder(test: &str, (variable, args): (&str, &DeviceArgs)) -> u32 {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", test])
        .env(variable, format!("{args:?}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == HELD));
    holder.kill().unwrap();
    holder.wait().unwrap();
    holder.id()
}

/// What such a process says.
const HELD: &str = "held";

/// Waits to be killed.
pub fn hold() -> ! {
    println!("{HELD}");
    loop {
        std::thread::park();
    }
}
