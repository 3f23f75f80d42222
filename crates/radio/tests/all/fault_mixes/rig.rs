//! The radios of the mixes: one in threads, and one in simulated time.

use std::time::{Duration, Instant};

use millstream_emulator::{CounterSnapshot, Faults, RadioConfig, RunningRadio};
use millstream_link::fault::FaultSwitch;
use millstream_link::port::Port;
use millstream_radio::{Device, RxMember, RxStreamer};
use millstream_wire::chdr::SC16_LEN;

use super::RATE_HZ;
use super::registers::FalseAnswers;
use crate::common::simulated::{self, Host};
use crate::common::{Meddler, PATIENCE, Seen, Witness, args, radio, watch, watched};

/// The faults of a rig's packets, and what passed before and behind them.
pub struct Path {
    pub sent: Witness,
    pub arrived: Witness,
    pub received: FaultSwitch,
    pub given: FaultSwitch,
    pub answers: FalseAnswers,
}

impl Path {
    fn new(now_ns: impl Fn() -> u64 + Copy + Send + Sync + 'static) -> Self {
        let (received, given) = (FaultSwitch::new(now_ns), FaultSwitch::new(now_ns));
        let (sent, arrived, answers) = Default::default();
        Self { sent, arrived, received, given, answers }
    }
}

/// A radio, with the faults of its packets.
pub trait Rig {
    fn path(&self) -> &Path;
    fn open(&self) -> RxStreamer;
    fn now(&self) -> Instant;
    /// Returns how much longer than its time-out a call may take, where that can be said.
    fn excess_max(&self) -> Option<Duration>;
    /// Lets a little time pass.
    fn pause(&self);
    fn counters(&self) -> CounterSnapshot;
    fn with_faults<T>(&self, action: impl FnOnce(&Faults) -> T) -> T;
    /// Waits until the device's clock shows its faults.
    fn settle_clock(&self);

    /// Waits until the faults of the device have been applied, and its clock shows them.
    fn settle(&self) {
        let until = self.now() + PATIENCE;
        while let faults = self.with_faults(Faults::list)
            && faults.iter().any(|fault| !fault.done)
        {
            assert!(self.now() < until, "{faults:?}");
            self.pause();
        }
        self.settle_clock();
    }
}

/// 66 ms: some stalls overflow it, others do not.
pub const BUFFER_SAMPLES: u64 = 1 << 17;

pub const QUEUE_BYTES: usize = 512 << 10;

/// The most samples that a stream still receives from before an overrun: those in the device's
/// buffer, and those that the host's queue holds meanwhile.
pub const BEFORE_OVERRUN: u64 = BUFFER_SAMPLES + (QUEUE_BYTES / SC16_LEN) as u64;

/// The silence after which a stream asks its device.
pub const SILENCE: Duration = Duration::from_millis(300);

/// Far from 0, whatever the clock faults do.
pub const TIME: u64 = 1 << 40;

/// A radio in threads, and the kernel's network.
pub struct Live {
    radio: RunningRadio,
    device: Device,
    path: Path,
}

impl Live {
    pub fn new() -> Self {
        let began = Instant::now();
        let path = Path::new(move || began.elapsed().as_nanos() as u64);
        let config = RadioConfig { rx_buffer_samples: BUFFER_SAMPLES, ..RadioConfig::default() };
        let (radio, mut args_of) = radio(config);
        args_of.silence_max = SILENCE;
        let ports = watched(&path.sent, &path.arrived, &path.received, &path.given);
        args_of.open_port = Some(ports);
        let mut device = Device::open(args_of).unwrap();
        device.set_rate(RATE_HZ).unwrap();
        device.set_time_now(TIME).unwrap();
        Self { radio, device, path }
    }
}

impl Rig for Live {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> RxStreamer {
        self.device.rx_stream(args().with_recv_queue_bytes(QUEUE_BYTES)).unwrap()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn excess_max(&self) -> Option<Duration> {
        None
    }

    fn pause(&self) {
        std::thread::sleep(Duration::from_millis(1));
    }

    fn counters(&self) -> CounterSnapshot {
        self.radio.counters()
    }

    fn with_faults<T>(&self, action: impl FnOnce(&Faults) -> T) -> T {
        action(self.radio.faults())
    }

    fn settle_clock(&self) {
        // The management side executes its part before it answers the second of two calls.
        for _ in 0..2 {
            self.device.time_ticks().unwrap();
        }
    }
}

/// The same in one thread and simulated time.
pub struct Simulated {
    host: Host,
    path: Path,
    /// What passed of the second stream, before and behind the faults.
    second: [Witness; 2],
}

/// The host's port for the second stream: those for control and the first one are before it.
const SECOND_PORT: u16 = simulated::CONTROL_PORT + 2;

impl Simulated {
    pub fn new() -> Self {
        let path = Path::new(simulated::now_ns);
        let config = RadioConfig {
            rx_buffer_samples: BUFFER_SAMPLES,
            master_clock_rate_hz: RATE_HZ,
            rx_antennas: vec!["ramp".to_owned(); 2],
            ..RadioConfig::default()
        };
        let second = <[Witness; 2]>::default();
        let Path { sent, arrived, received, given, answers } = &path;
        let seen = [[sent.clone(), arrived.clone()], second.clone()];
        let (received, given) = (received.clone(), given.clone());
        let answers = answers.clone();
        let wrap = move |port: Port| {
            let local = port.local.port();
            let [sent, arrived] = &seen[usize::from(local == SECOND_PORT)];
            let mut port = watch(port, sent, arrived, &received, &given);
            if local == simulated::CONTROL_PORT {
                port.rx = Meddler::new(answers.script()).wrap_rx(port.rx);
            }
            port
        };
        Self { host: Host::open(&config, TIME, wrap), path, second }
    }

    /// Takes what passed of the first stream that was opened and of the second, before and behind
    /// the faults.
    pub fn take_seen(&self) -> [[Vec<Seen>; 2]; 2] {
        let first = [&self.path.sent, &self.path.arrived];
        [first.map(Witness::take), self.second.each_ref().map(Witness::take)]
    }

    pub fn open_channel(&self, channel: usize) -> RxStreamer {
        let (port, path, channel) = self.host.rx(channel, QUEUE_BYTES);
        RxStreamer::one(RxMember::open(port, path, channel, &args(), SILENCE).unwrap())
    }
}

impl Rig for Simulated {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> RxStreamer {
        self.open_channel(0)
    }

    fn now(&self) -> Instant {
        simulated::CLOCK.now()
    }

    fn excess_max(&self) -> Option<Duration> {
        Some(Duration::from_micros(100))
    }

    fn pause(&self) {
        simulated::pass(Duration::from_millis(1));
    }

    fn counters(&self) -> CounterSnapshot {
        simulated::with_radio(|radio| radio.counters())
    }

    fn with_faults<T>(&self, action: impl FnOnce(&Faults) -> T) -> T {
        simulated::with_radio(|radio| action(radio.faults()))
    }

    fn settle_clock(&self) {}
}
