//! Starting and stopping a radio: its ports and its threads.

use crate::broadcast::Broadcasts;
use crate::control_channel::ControlChannel;
use crate::counters::Counters;
use crate::device::{self, DeviceParts, EmulatedDevice, RxWatcher};
use crate::device_loop::device_loop;
use crate::discovery::Discovery;
use crate::faults::{DeviceFaults, Faults};
use crate::links::Links;
use crate::personality::DeviceKind;
use crate::rpc::{Identity, Mpm, Rpc};
use crate::scene::{Scene, SceneReceiver};
use crate::stepped;
use crate::tcp::Server;
use crate::time::monotonic_ns;
use crate::tx_out::{FileOutcome, FileRecorder};
use crate::{CounterSnapshot, Error, RadioConfig};
use millstream_link::port::{Port, PortOptions};
use std::io;
use std::net::{SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// IPv4 and UDP headers, bytes (RFC 791, RFC 768).
const IP_UDP_BYTES: usize = 20 + 8;

/// An emulated radio; see [`Radio::start`].
pub struct Radio;

/// A radio whose threads run. Dropping it stops them.
///
/// | thread | task | waits in |
/// | --- | --- | --- |
/// | `ms-discovery` | discovery and echo | its UDP port |
/// | `ms-echo` | the same on a second link, or on one with a separate address | its UDP port |
/// | `ms-rpc` | remote procedure calls, the claim | `poll` on its TCP sockets |
/// | `ms-device` | CHDR in, samples out on the sample clock | its UDP ports, up to a deadline |
/// | `ms-control` | the control channel, if there is one | `poll` on its TCP sockets |
///
/// A live antenna adds one thread per channel that streams from it, a transmit file one per file.
#[derive(Debug)]
pub struct RunningRadio {
    discovery: SocketAddrV4,
    rpc: SocketAddrV4,
    chdr: Vec<SocketAddrV4>,
    control: Option<SocketAddrV4>,
    faults: Faults,
    counters: Arc<Counters>,
    fates: Vec<Arc<FileOutcome>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Radio {
    /// Opens the ports and antennas of `config` and starts serving.
    ///
    /// # Errors
    /// [`Error`], with the field, address or antenna at fault and the remedy; no thread is left
    /// running then.
    pub fn start(config: RadioConfig) -> Result<RunningRadio, Error> {
        Self::start_watched(config, Vec::new())
    }

    /// Likewise, with watchers of what the first receive channels send.
    ///
    /// # Errors
    /// As [`Radio::start`].
    pub fn start_watched(
        config: RadioConfig,
        watchers: Vec<Box<dyn RxWatcher>>,
    ) -> Result<RunningRadio, Error> {
        config.check()?;
        let sources = stepped::sources(&config)?;
        let scene = config.has_scene().then(|| config.scene.clone().unwrap_or_default());
        // The bare radio without a scene takes any tuning, which has no effect there.
        let has_front_end = scene.is_some() || config.device != DeviceKind::E320Radio;
        let scenes = scene.as_ref().map_or(Ok(Vec::new()), |scene| open_scene(scene, &config))?;
        let machine = Arc::new(DeviceFaults::new(config.master_clock_rate_hz, config.time_scale));
        let faults = Faults::new(machine.clone(), config.chdr_width);
        config.faults.iter().try_for_each(|fault| faults.add(fault).map(drop))?;
        let Ports { chdr, discovery, echoes } = open_ports(&config, &faults)?;
        let addresses: Vec<_> = chdr.iter().map(|port| port.local).collect();
        let rpc = SocketAddrV4::new(config.addr, config.rpc_port);
        let (listener, rpc) = open_tcp(rpc, RPC)?;
        let control = config.control.map(|address| open_tcp(address, CONTROL)).transpose()?;

        let counters = Arc::new(Counters::default());
        let claimed = Arc::new(AtomicBool::new(false));
        let keeper = machine.power_on(monotonic_ns());
        let (order_tx, order_rx) = channel();
        let mut running = RunningRadio {
            discovery: discovery.local,
            rpc,
            chdr: addresses.clone(),
            control: control.as_ref().map(|(_, address)| *address),
            faults: faults.clone(),
            counters: counters.clone(),
            fates: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        let identity = Identity {
            serial: config.serial(),
            name: config.name.clone(),
            chdr: addresses,
            personality: config.personality(),
            width: config.chdr_width,
            rates: config.rates,
            limited: has_front_end && !config.any_tuning,
            scene,
            uhd: config.uhd,
        };
        let mpm = Mpm::new(identity, keeper, claimed.clone(), order_tx);
        let calls = Rpc { mpm, counters: counters.clone(), machine: machine.clone() };
        let server = Server::new(listener, calls).map_err(tcp_error(rpc, RPC))?;
        if let Some((listener, address)) = control {
            let channel = ControlChannel { faults, counters: counters.clone() };
            let server = Server::new(listener, channel).map_err(tcp_error(address, CONTROL))?;
            running.spawn("ms-control", move |stop| server.run(stop))?;
        }
        machine.protocol.set(config.uhd.row().protocol);
        let recorders = stepped::recorders(&config)?;
        running.fates = recorders.iter().map(FileRecorder::fate).collect();
        // All links have the same kind of port; the smallest queue counts.
        let queues = chdr.iter().map(|port| port.rx.capabilities());
        let queue = queues.min_by_key(|queue| queue.recv_queue_bytes).expect("there is a link");
        let (receivers, links) = chdr.into_iter().map(|port| (port.rx, port.tx)).unzip();
        let mut device = EmulatedDevice::new(DeviceParts {
            image: config.image(),
            front_end: config.personality().front_end,
            keeper,
            sources,
            scenes,
            recorders: stepped::boxed(recorders),
            rx_buffer_samples: config.rx_buffer_samples,
            tx_buffer_samples: config.tx_buffer_samples,
            queue,
            links,
            counters: counters.clone(),
        });
        device.watch(watchers);
        let broadcasts = Broadcasts::beside(discovery.local);
        let answers = |port, broadcasts, receive_errors| Discovery {
            port,
            broadcasts,
            receive_errors,
            personality: config.personality(),
            serial: config.serial(),
            name: config.name.clone(),
            fields: config.uhd.discovery(),
            datagram_bytes_max: config.mtu - IP_UDP_BYTES,
            claimed: claimed.clone(),
            counters: counters.clone(),
            machine: machine.clone(),
        };
        let responder = answers(discovery, broadcasts, |all| &all.discovery_receive_errors);
        let echoes = echoes
            .into_iter()
            .map(|port| answers(port, Broadcasts::none(), |all| &all.echo_receive_errors));
        let echoes: Vec<_> = echoes.collect();
        let links = Links::new(receivers);
        running.spawn("ms-device", move |stop| {
            device_loop(device, links, &order_rx, &machine, stop)
        })?;
        running.spawn("ms-rpc", move |stop| server.run(stop))?;
        running.spawn("ms-discovery", move |stop| responder.run(stop))?;
        for echo in echoes {
            running.spawn("ms-echo", move |stop| echo.run(stop))?;
        }
        Ok(running)
    }
}

impl RunningRadio {
    /// Returns the address of discovery and echo (UDP).
    pub fn discovery_addr(&self) -> SocketAddrV4 {
        self.discovery
    }

    /// Returns the address of remote procedure calls (TCP).
    pub fn rpc_addr(&self) -> SocketAddrV4 {
        self.rpc
    }

    /// Returns the address of CHDR packets (UDP) on the first link.
    pub fn chdr_addr(&self) -> SocketAddrV4 {
        self.chdr[0]
    }

    /// Returns the addresses of CHDR packets (UDP), one for each link.
    pub fn chdr_addrs(&self) -> &[SocketAddrV4] {
        &self.chdr
    }

    /// Returns the address of the control channel (TCP), if there is one.
    pub fn control_addr(&self) -> Option<SocketAddrV4> {
        self.control
    }

    /// Its faults on demand.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> CounterSnapshot {
        self.counters.snapshot()
    }

    /// Why files of transmitted samples are incomplete so far, one reason per file.
    pub fn tx_out_errors(&self) -> impl Iterator<Item = &Error> {
        self.fates.iter().filter_map(|fate| fate.error())
    }

    /// Stops the radio and waits until its threads have ended: its counts and files are final.
    pub fn end(&mut self) {
        self.join();
    }

    /// Stops the radio, waits until its threads have ended, and returns the final counters.
    pub fn stop(mut self) -> CounterSnapshot {
        self.end();
        self.counters()
    }

    fn spawn(
        &mut self,
        name: &'static str,
        body: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<(), Error> {
        let stop = self.stop.clone();
        let builder = std::thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn(move || body(&stop));
        self.threads.push(thread.map_err(|source| Error::Thread { name, source })?);
        Ok(())
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panicked thread has already printed its message.
            let _ = thread.join();
        }
    }
}

impl Drop for RunningRadio {
    fn drop(&mut self) {
        self.join();
    }
}

/// Opens a scene for each channel, each with other noise.
fn open_scene(scene: &Scene, config: &RadioConfig) -> Result<Vec<SceneReceiver>, Error> {
    let seeds = 1..=config.device.channels() as u64;
    let bits = config.personality().front_end.converter_bits();
    seeds.map(|seed| SceneReceiver::open(scene, seed, bits)).collect()
}

/// The ports of a radio's datagrams.
struct Ports {
    /// One for each link.
    chdr: Vec<Port>,
    discovery: Port,
    /// Discovery's ports at further addresses: of a second link, and of links that share no address
    /// with the kernel.
    echoes: Vec<Port>,
}

/// Opens the ports, with the packet faults in front of them. Discovery always stays with the
/// kernel, which receives broadcasts. But hosts measure the path of CHDR by echoes, so on a link
/// with a separate address echoes are answered there as well, and at the address of a second link.
fn open_ports(config: &RadioConfig, faults: &Faults) -> Result<Ports, Error> {
    let recv_queue_bytes =
        device::queue_bytes_wanted(config.tx_buffer_samples, config.image().receivers());
    let large = PortOptions { recv_queue_bytes, ..PortOptions::default() };
    let small = PortOptions::default();
    // Latency is not critical there, and the CPU may be that of the device thread.
    let patient = PortOptions { patient: true, ..small.clone() };
    let at = SocketAddrV4::new(config.addr, config.discovery_port);
    let discovery = open_udp("udp", at, "discovery", &small)?;
    let discovery_port = discovery.local.port();
    let (mut chdr, mut echoes) = (Vec::new(), Vec::new());
    for (link, (addr, name)) in config.links().into_iter().enumerate() {
        let at = SocketAddrV4::new(addr, config.chdr_port);
        chdr.push(faults.wrap(open_udp(name, at, "CHDR", &large)?, false));
        let echo_at = SocketAddrV4::new(addr, discovery_port);
        if link > 0 {
            echoes.push(faults.wrap(open_udp("udp", echo_at, "echo", &small)?, true));
        }
        if millstream_net::has_own_address(name) {
            echoes.push(faults.wrap(open_udp(name, echo_at, "echo", &patient)?, true));
        }
    }
    Ok(Ports { chdr, discovery: faults.wrap(discovery, true), echoes })
}

fn open_udp(
    link: &str,
    bind: SocketAddrV4,
    purpose: &'static str,
    options: &PortOptions,
) -> Result<Port, Error> {
    millstream_net::open(link, bind, options).map_err(|source| Error::Udp { purpose, source })
}

const RPC: &str = "remote procedure calls";
const CONTROL: &str = "control channel";

fn open_tcp(
    address: SocketAddrV4,
    purpose: &'static str,
) -> Result<(TcpListener, SocketAddrV4), Error> {
    let listener = TcpListener::bind(address).map_err(tcp_error(address, purpose))?;
    let local = listener.local_addr().map_err(tcp_error(address, purpose))?;
    Ok((listener, SocketAddrV4::new(*address.ip(), local.port())))
}

fn tcp_error(address: SocketAddrV4, purpose: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Tcp { purpose, address, hint: tcp_hint(&source), source }
}

fn tcp_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program uses the port: `ss -tlnp` shows which; stop it, or choose another \
             address"
        }
        io::ErrorKind::AddrNotAvailable => {
            "the address is not on this machine: choose one that `ip -4 addr` lists"
        }
        _ => "check the address",
    }
}
