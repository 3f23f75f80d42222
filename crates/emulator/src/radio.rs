//! Starting and stopping a radio: its ports and its threads.

use crate::broadcast::Broadcasts;
use crate::config::CHANNELS;
use crate::control_channel::ControlChannel;
use crate::counters::Counters;
use crate::device::{self, DeviceParts, EmulatedDevice};
use crate::device_loop::device_loop;
use crate::discovery::Discovery;
use crate::faults::{DeviceFaults, DeviceSide, Faults};
use crate::personality::DeviceKind;
use crate::rpc::{Identity, Mpm, Rpc};
use crate::scene::{Scene, SceneReceiver};
use crate::stepped;
use crate::tcp::Server;
use crate::time::monotonic_ns;
use crate::tx_out::{FileOutcome, Recorder};
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
/// | `ms-echo` | the same on a link with a separate address | its UDP port |
/// | `ms-rpc` | remote procedure calls, the claim | `poll` on its TCP sockets |
/// | `ms-device` | CHDR in, samples out on the sample clock | its UDP port, up to a deadline |
/// | `ms-control` | the control channel, if there is one | `poll` on its TCP sockets |
///
/// A live antenna adds one thread per channel that streams from it, a transmit file one per file.
#[derive(Debug)]
pub struct RunningRadio {
    discovery: SocketAddrV4,
    rpc: SocketAddrV4,
    chdr: SocketAddrV4,
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
        config.check()?;
        let sources = stepped::sources(&config)?;
        let scene = config.has_scene().then(|| config.scene.clone().unwrap_or_default());
        // The bare radio without a scene takes any tuning, which has no effect there.
        let has_front_end = scene.is_some() || config.device != DeviceKind::E320Radio;
        let scenes = scene.as_ref().map(open_scene).transpose()?;
        let machine = Arc::new(DeviceFaults::new(config.master_clock_rate_hz, config.time_scale));
        let faults = Faults::new(machine.clone());
        config.faults.iter().try_for_each(|fault| faults.add(fault).map(drop))?;
        let Ports { chdr, discovery, echo } = open_ports(&config, &faults)?;
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
            chdr: chdr.local,
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
            chdr: chdr.local,
            personality: config.device.personality(),
            rate_range_hz: config.rate_range_hz.clone(),
            limited: has_front_end && !config.any_tuning,
            scene,
        };
        let mpm = Mpm::new(identity, keeper, claimed.clone(), order_tx);
        let calls = Rpc { mpm, counters: counters.clone(), machine: machine.clone() };
        let server = Server::new(listener, calls).map_err(tcp_error(rpc, RPC))?;
        if let Some((listener, address)) = control {
            let channel = ControlChannel { faults, counters: counters.clone() };
            let server = Server::new(listener, channel).map_err(tcp_error(address, CONTROL))?;
            running.spawn("ms-control", move |stop| server.run(stop))?;
        }
        let side = DeviceSide::new(machine.clone());
        let recorders = stepped::recorders(&config)?;
        running.fates = recorders.iter().flatten().map(Recorder::fate).collect();
        let device = EmulatedDevice::new(DeviceParts {
            personality: config.device.personality(),
            keeper,
            sources,
            scenes,
            recorders,
            rx_buffer_samples: config.rx_buffer_samples,
            tx_buffer_samples: config.tx_buffer_samples,
            queue: chdr.rx.capabilities(),
            tx: chdr.tx,
            counters: counters.clone(),
        });
        let broadcasts = Broadcasts::beside(discovery.local);
        let answers = |port, broadcasts, receive_errors| Discovery {
            port,
            broadcasts,
            receive_errors,
            serial: config.serial(),
            name: config.name.clone(),
            datagram_bytes_max: config.mtu - IP_UDP_BYTES,
            claimed: claimed.clone(),
            counters: counters.clone(),
            machine: machine.clone(),
        };
        let responder = answers(discovery, broadcasts, |all| &all.discovery_receive_errors);
        let echo =
            echo.map(|port| answers(port, Broadcasts::none(), |all| &all.echo_receive_errors));
        running
            .spawn("ms-device", move |stop| device_loop(device, chdr.rx, &order_rx, &side, stop))?;
        running.spawn("ms-rpc", move |stop| server.run(stop))?;
        running.spawn("ms-discovery", move |stop| responder.run(stop))?;
        if let Some(echo) = echo {
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

    /// Returns the address of CHDR packets (UDP).
    pub fn chdr_addr(&self) -> SocketAddrV4 {
        self.chdr
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

fn open_scene(scene: &Scene) -> Result<[SceneReceiver; CHANNELS], Error> {
    Ok([SceneReceiver::open(scene, 1)?, SceneReceiver::open(scene, 2)?])
}

/// The ports of a radio's datagrams.
struct Ports {
    chdr: Port,
    discovery: Port,
    /// Discovery's port on a link that shares no address with the kernel.
    echo: Option<Port>,
}

/// Opens the ports, with the packet faults in front of them. Discovery always stays with the
/// kernel, which receives broadcasts. But hosts measure the path of CHDR by echoes, so on a link
/// with a separate address echoes are answered there as well.
fn open_ports(config: &RadioConfig, faults: &Faults) -> Result<Ports, Error> {
    let recv_queue_bytes = device::queue_bytes_wanted(config.tx_buffer_samples);
    let large = PortOptions { recv_queue_bytes, ..PortOptions::default() };
    let chdr = open_udp(&config.link, config, config.chdr_port, "CHDR", &large)?;
    let small = PortOptions::default();
    let discovery = open_udp("udp", config, config.discovery_port, "discovery", &small)?;
    let own = millstream_net::has_own_address(&config.link);
    // Latency is not critical there, and the CPU may be that of the device thread.
    let patient = PortOptions { patient: true, ..small };
    let echo = || open_udp(&config.link, config, discovery.local.port(), "echo", &patient);
    let echo = own.then(echo).transpose()?;
    Ok(Ports {
        chdr: faults.wrap(chdr, false),
        discovery: faults.wrap(discovery, true),
        echo: echo.map(|port| faults.wrap(port, true)),
    })
}

fn open_udp(
    link: &str,
    config: &RadioConfig,
    port: u16,
    purpose: &'static str,
    options: &PortOptions,
) -> Result<Port, Error> {
    let bind = SocketAddrV4::new(config.addr, port);
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
