//! The radios of the mixes: one in threads, and one in simulated time.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use millstream_emulator::{CounterSnapshot, RadioConfig};
use millstream_link::fault::text::{ACTIONS, effect};
use millstream_link::fault::{FaultRule, FaultSwitch};
use millstream_link::options::Line;
use millstream_link::port::{Capabilities, Datagram, Port, PortRx};
use millstream_radio::{TxArgs, TxMember, TxStreamer};
use millstream_wire::Width;
use millstream_wire::chdr::{DataRepr, Packet, PacketType};
use millstream_wire::ctrl::CtrlRepr;

use super::{BUFFER_SAMPLES, RATE_HZ};
use crate::common::played::{Played, Stage, waiting};
use crate::common::simulated::{self, Host};

/// A radio that transmits, with the faults of its packets.
pub trait TxRig {
    fn open(&self, args: TxArgs) -> TxStreamer;
    /// Adds a fault.
    fn add(&self, fault: &str);
    /// Removes all faults.
    fn clear(&self);
    fn pass(&self, time: Duration);
    fn counters(&self) -> CounterSnapshot;
    /// Returns the transmission since the last call, once it is complete.
    fn played(&mut self, count: usize) -> Played;
    /// Returns how often each sample has come to the radio, if that is known.
    fn arrived(&self) -> Option<Vec<u32>>;
}

/// Longer than any packet of a mix is delayed.
const DELAY_MAX: Duration = Duration::from_millis(30);

/// A radio in threads, and the kernel's network.
impl TxRig for Stage {
    fn open(&self, args: TxArgs) -> TxStreamer {
        self.device.tx_stream(args).expect("the stream opens")
    }

    fn add(&self, fault: &str) {
        self.radio.faults().add(fault).expect("a fault");
    }

    fn clear(&self) {
        self.radio.faults().clear();
        // What a fault has delayed comes now, and not with the samples of the next mix.
        thread::sleep(DELAY_MAX);
    }

    fn pass(&self, time: Duration) {
        thread::sleep(time);
    }

    fn counters(&self) -> CounterSnapshot {
        self.radio.counters()
    }

    fn played(&mut self, count: usize) -> Played {
        Stage::played(self, count)
    }

    fn arrived(&self) -> Option<Vec<u32>> {
        None
    }
}

/// More samples than any mix has.
const SAMPLES_MAX: usize = 1 << 20;

/// Counts how often each sample has come.
type Arrivals = Arc<Mutex<Vec<u32>>>;

/// The same in one thread and simulated time.
pub struct SimulatedTx {
    host: Host,
    to_host: FaultSwitch,
    to_device: FaultSwitch,
    arrivals: Arrivals,
}

impl SimulatedTx {
    pub fn new() -> Self {
        let config = RadioConfig {
            tx_buffer_samples: BUFFER_SAMPLES,
            master_clock_rate_hz: RATE_HZ,
            // Noise takes time to make.
            rx_antennas: vec!["ramp".to_owned(); 2],
            ..RadioConfig::default()
        };
        let (to_host, to_device) =
            (FaultSwitch::new(simulated::now_ns), FaultSwitch::new(simulated::now_ns));
        let wrap = to_host.clone();
        let host = Host::open(&config, 1 << 40, move |mut port: Port| {
            port.rx = wrap.wrap_rx(port.rx);
            port
        });
        let arrivals = Arrivals::default();
        simulated::wrap_radio_port(|port| {
            Box::new(Arrived(to_device.wrap_rx(port), arrivals.clone()))
        });
        Self { host, to_host, to_device, arrivals }
    }
}

impl TxRig for SimulatedTx {
    fn open(&self, args: TxArgs) -> TxStreamer {
        let (port, path, channel) = self.host.tx(0);
        TxStreamer::one(TxMember::open(port, path, channel, &args).expect("the stream opens"))
    }

    fn add(&self, fault: &str) {
        let mut line = Line::of(fault.split_whitespace()).expect("a fault");
        let action = line.word().expect("it has an action");
        if !ACTIONS.iter().any(|(name, _)| *name == action) {
            simulated::with_radio(|radio| radio.faults().add(fault)).expect("a fault");
            return;
        }
        let switch = match line.word().as_deref() {
            Some("to_host") => &self.to_host,
            _ => &self.to_device,
        };
        let class = line.word().expect("it has a class");
        let effect = effect(&action, &mut line).expect("an effect");
        let rule = FaultRule::new(move |bytes| has(&class, bytes), effect);
        let rule = rule.select(line.take().expect("a selection"));
        switch.add(rule).expect("there is room");
        simulated::poll_radio_port_often(true);
    }

    fn clear(&self) {
        self.to_host.clear();
        self.to_device.clear();
        simulated::with_radio(|radio| radio.faults().clear());
        simulated::poll_radio_port_often(false);
    }

    fn pass(&self, time: Duration) {
        simulated::pass(time);
    }

    fn counters(&self) -> CounterSnapshot {
        simulated::with_radio(|radio| radio.counters())
    }

    fn played(&mut self, count: usize) -> Played {
        // A stall ends, and the buffer is played.
        for _ in 0..100 {
            simulated::pass(Duration::from_millis(10));
            if waiting(&self.counters()) == 0 && simulated::is_quiet() {
                break;
            }
        }
        let mut played = Played { times: vec![0; count], padding: 0 };
        let stretches = simulated::with_radio(|radio| radio.played().map(|played| played.take()));
        for sample in stretches.into_iter().flatten().flat_map(|stretch| stretch.samples) {
            match u32::from_le_bytes(sample) {
                0 => played.padding += 1,
                number => played.times[number as usize - 1] += 1,
            }
        }
        self.arrivals.lock().unwrap().resize(count, 0);
        played
    }

    fn arrived(&self) -> Option<Vec<u32>> {
        Some(self.arrivals.lock().unwrap().clone())
    }
}

/// Returns whether a datagram is of a class of faults.
fn has(class: &str, datagram: &[u8]) -> bool {
    let Ok(packet) = Packet::parse(datagram, Width::W64) else { return false };
    match class {
        "any" => true,
        "data" => packet.kind().is_data(),
        "status" => packet.kind() == PacketType::StreamStatus,
        "command" => packet.kind() == PacketType::StreamCommand,
        "request" => CtrlRepr::parse(&packet).is_ok_and(|control| !control.is_ack),
        _ => panic!("the simulation has no class {class}"),
    }
}

/// Counts the samples that pass.
struct Arrived(Box<dyn PortRx>, Arrivals);

impl PortRx for Arrived {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        let count = self.0.recv_batch(timeout)?;
        let mut arrivals = self.1.lock().unwrap();
        for index in 0..count {
            let Ok(packet) = Packet::parse(self.0.datagram(index).payload, Width::W64) else {
                continue;
            };
            if DataRepr::parse(&packet).is_err() {
                continue;
            }
            for number in packet
                .payload()
                .chunks_exact(4)
                .map(|one| u32::from_le_bytes(one.try_into().unwrap()))
            {
                let index = (number as usize).wrapping_sub(1);
                // Zero ends a burst, and a corrupt packet may contain any number.
                if index >= SAMPLES_MAX {
                    continue;
                }
                if arrivals.len() <= index {
                    arrivals.resize(index + 1, 0);
                }
                arrivals[index] += 1;
            }
        }
        Ok(count)
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        self.0.datagram(index)
    }

    fn queue_drops(&self) -> u64 {
        self.0.queue_drops()
    }
}
