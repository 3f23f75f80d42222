//! The CHDR side of a radio without threads, sockets and clock: its owner passes datagrams and
//! time.

use crate::antenna::AntennaSource;
use crate::counters::Counters;
use crate::device::{DeviceParts, EmulatedDevice, HostAddress};
use crate::faults::{AfterFaults, DeviceFaults, Faults, Management};
use crate::mailbox::DeviceCommand;
use crate::time::DeviceClock;
use crate::tx_out::{FileRecorder, PlayedSamples, Recorder};
use crate::{CounterSnapshot, Error, RadioConfig, antenna};
use millstream_link::port::{Capabilities, PortTx};
use millstream_output::Existing;
use std::net::SocketAddrV4;
use std::sync::Arc;

/// A radio that a simulation steps. It has no management side: no discovery, no remote procedure
/// calls, no claim. Its faults are those of [`SteppedRadio::faults`].
///
/// Instants are nanoseconds of any clock that begins above zero and never goes back.
pub struct SteppedRadio {
    device: EmulatedDevice,
    keeper: DeviceClock,
    machine: Arc<DeviceFaults>,
    faults: Faults,
    counters: Arc<Counters>,
    played: Option<PlayedSamples>,
    /// A stall lasts until this instant; datagrams wait for its end.
    stalled_until_ns: u64,
    waiting: Vec<(Vec<u8>, SocketAddrV4)>,
}

impl SteppedRadio {
    /// The id of its nodes, which a host otherwise sets.
    pub const DEVICE_ID: u16 = 1;

    /// Switches a radio on at `now_ns`, with the device's time at `timestamp`. `queue` has the
    /// capabilities of its port, `tx` takes its packets.
    ///
    /// Of `config` only the antennas, the transmit files, the rates and the buffers matter; it has
    /// no scene. Transmissions of the first channel without a file are recorded in memory, see
    /// [`SteppedRadio::played`].
    ///
    /// # Errors
    /// [`Error`], with the field or antenna at fault.
    pub fn new(
        config: &RadioConfig,
        now_ns: u64,
        timestamp: u64,
        queue: Capabilities,
        tx: Box<dyn PortTx>,
    ) -> Result<Self, Error> {
        config.check()?;
        let mut recorders = boxed(recorders(config)?);
        let mut played = None;
        if recorders.is_empty() {
            let samples = played.insert(PlayedSamples::default());
            recorders.push(Box::new(samples.clone()));
        }
        let machine = Arc::new(DeviceFaults::new(config.master_clock_rate_hz, config.time_scale));
        let mut keeper = machine.power_on(now_ns);
        keeper.set_now(now_ns, timestamp);
        let counters = Arc::new(Counters::default());
        let mut device = EmulatedDevice::new(DeviceParts {
            image: config.image(),
            front_end: config.personality().front_end,
            keeper,
            sources: sources(config)?,
            scenes: Vec::new(),
            recorders,
            rx_buffer_samples: config.rx_buffer_samples,
            tx_buffer_samples: config.tx_buffer_samples,
            queue,
            links: vec![tx],
            counters: counters.clone(),
        });
        device.execute(DeviceCommand::DeviceId(SteppedRadio::DEVICE_ID));
        Ok(Self {
            device,
            keeper,
            faults: Faults::new(machine.clone(), config.chdr_width),
            machine,
            counters,
            played,
            stalled_until_ns: 0,
            waiting: Vec::new(),
        })
    }

    /// Its faults. Those of packets have no effect, because the ports belong to the owner.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> CounterSnapshot {
        self.counters.snapshot()
    }

    /// Returns the samples that the first channel has transmitted, unless a file has them.
    pub fn played(&self) -> Option<&PlayedSamples> {
        self.played.as_ref()
    }

    /// Returns the device's time, ticks.
    pub fn time_ticks(&self, now_ns: u64) -> u64 {
        self.keeper.now(now_ns)
    }

    /// Advances the radio to `now_ns`. Returns the instant of the next call that it needs.
    pub fn advance(&mut self, now_ns: u64) -> u64 {
        if now_ns < self.stalled_until_ns {
            return self.stalled_until_ns;
        }
        let fault_ns = match self.machine.apply(&mut self.device, now_ns) {
            AfterFaults::Run(next_ns) => next_ns,
            AfterFaults::Stall(until_ns) => {
                self.stalled_until_ns = until_ns;
                return until_ns;
            }
        };
        for order in self.machine.take_management() {
            match order {
                Management::Reboot(keeper) => self.keeper = keeper,
                Management::Jump(ticks) => {
                    let time = self.keeper.now(now_ns).wrapping_add_signed(ticks);
                    self.keeper.set_now(now_ns, time);
                    self.device.execute(DeviceCommand::Time(self.keeper));
                }
            }
        }
        if self.machine.is_silent(now_ns) {
            self.waiting.clear();
            return fault_ns.min(now_ns + 1_000_000);
        }
        let mut next_ns = self.device.advance(now_ns);
        if !self.waiting.is_empty() {
            for (datagram, source) in std::mem::take(&mut self.waiting) {
                self.device.receive(&datagram, link(source), now_ns);
            }
            next_ns = self.device.advance(now_ns);
        }
        next_ns.min(fault_ns)
    }

    /// Passes a datagram that came at `now_ns`. A call of [`SteppedRadio::advance`] must follow.
    pub fn receive(&mut self, datagram: &[u8], source: SocketAddrV4, now_ns: u64) {
        if self.machine.is_silent(now_ns) {
            self.device.note_unheard(1);
        } else if now_ns < self.stalled_until_ns {
            self.waiting.push((datagram.to_vec(), source));
        } else {
            self.device.receive(datagram, link(source), now_ns);
        }
    }
}

/// A stepped radio has one link.
fn link(socket: SocketAddrV4) -> HostAddress {
    HostAddress::new(0, socket)
}

/// Opens the antennas of a configuration.
pub(crate) fn sources(config: &RadioConfig) -> Result<Vec<AntennaSource>, Error> {
    let channels = config.device.channels();
    let open = |channel| {
        let spec = config.rx_antenna(channel).unwrap_or("noise:0");
        match antenna::source(spec)? {
            AntennaSource::Loopback(cable) if cable.channel >= channels => {
                let reason = format!("CHANNEL must be below {channels}, as the device has so many");
                Err(Error::AntennaSpec { spec: spec.to_owned(), reason })
            }
            source => Ok(source),
        }
    };
    (0..channels).map(open).collect()
}

/// Opens the transmit files of a configuration, those of the first channels.
pub(crate) fn recorders(config: &RadioConfig) -> Result<Vec<FileRecorder>, Error> {
    let existing = Existing::replace_if(config.overwrite);
    config.tx_out.iter().map(|path| FileRecorder::create(path, existing)).collect()
}

/// Returns them as a device takes them.
pub(crate) fn boxed(files: Vec<FileRecorder>) -> Vec<Box<dyn Recorder>> {
    files.into_iter().map(|file| Box::new(file) as Box<dyn Recorder>).collect()
}
