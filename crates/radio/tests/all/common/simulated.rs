//! A network and a radio in one thread, in simulated time.
//!
//! Time passes where the host waits, and a little with each call of a port. Everything that happens
//! follows from the seed of a test: nothing here reads a clock or another source of chance.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use millstream_emulator::{RadioConfig, SteppedRadio};
use millstream_link::port::{Capabilities, Datagram, FrameLoan, Port, PortRx, PortTx};
use millstream_radio::channel::RxChannel;
use millstream_radio::client_zero::{self, ClientZero};
use millstream_radio::control::{Control, ControlReceiver};
use millstream_radio::graph::{RadioChain, StreamDirection};
use millstream_radio::stream::StreamPath;
use millstream_radio::topology::{self, Endpoint, Management, RadioTopology};
use millstream_radio::tx::TxChannel;
use millstream_radio::{Clock, StreamRate};
use millstream_wire::{Epid, Width};

/// The radio's address.
pub const RADIO: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 49153);

/// The clock of this thread's simulation.
pub const CLOCK: Clock = Clock::simulated(now, sleep);

/// The time at which a radio is switched on, ns: far from zero, like the clock of a machine.
const BEGIN_NS: u64 = 1 << 40;

/// The time of a datagram on its way, ns.
const FLIGHT_NS: u64 = 20_000;

/// The time that a call of a port takes, ns.
const CALL_NS: u64 = 500;

/// How long a radio that needs no call does not notice new faults, ns: as the thread of a real one.
const LOOK_NS: u64 = 20_000_000;

/// How long an access sleeps at most before it looks for its answer again, ns: faults may delay it
/// behind the network.
const SLEEP_NS: u64 = 200_000;

/// The host's endpoint for control, and the first of its streams.
const HOST: Epid = Epid(1);
const STREAMS: u16 = 64;

#[derive(Default)]
struct Network {
    to_radio: VecDeque<(u64, Vec<u8>, SocketAddrV4)>,
    to_host: VecDeque<(u64, Vec<u8>, u16)>,
    arrived: HashMap<u16, VecDeque<Vec<u8>>>,
    spare: Vec<Vec<u8>>,
    last_port: u16,
}

impl Network {
    fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        copy
    }
}

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(BEGIN_NS) };
    static NETWORK: RefCell<Network> = RefCell::default();
    static RADIO_HERE: RefCell<Option<SteppedRadio>> = const { RefCell::new(None) };
    /// The instant of the next call that the radio needs.
    static DUE_NS: Cell<u64> = const { Cell::new(0) };
    static CONTROL: RefCell<Option<(Box<dyn PortRx>, ControlReceiver)>> =
        const { RefCell::new(None) };
}

/// Returns the simulated time in nanoseconds.
pub fn now_ns() -> u64 {
    NOW_NS.get()
}

fn now() -> Instant {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    *BEGIN + Duration::from_nanos(now_ns())
}

/// Passes time up to the next event, `time` at the most.
fn sleep(time: Duration) {
    let most = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(SLEEP_NS);
    step(now_ns().saturating_add(most));
}

/// Passes `time`, with all that happens in it.
pub fn pass(time: Duration) {
    let until = now_ns().saturating_add(time.as_nanos() as u64);
    while now_ns() < until {
        step(until);
    }
}

/// Does the next thing that happens until `until_ns`; time is then at that instant.
fn step(until_ns: u64) {
    let next = NETWORK.with_borrow(|network| {
        let radio = network.to_radio.front().map_or(u64::MAX, |(at, ..)| *at);
        let host = network.to_host.front().map_or(u64::MAX, |(at, ..)| *at);
        radio.min(host)
    });
    let now = until_ns.min(next).min(DUE_NS.get()).max(now_ns());
    NOW_NS.set(now);
    NETWORK.with_borrow_mut(|network| {
        while let Some((_, bytes, port)) = due(&mut network.to_host, now) {
            network.arrived.entry(port).or_default().push_back(bytes);
        }
    });
    while let Some((_, bytes, from)) =
        NETWORK.with_borrow_mut(|network| due(&mut network.to_radio, now))
    {
        with_radio(|radio| radio.receive(&bytes, from, now));
        NETWORK.with_borrow_mut(|network| network.spare.push(bytes));
        DUE_NS.set(now);
    }
    if DUE_NS.get() <= now {
        // It may ask for another call at once.
        let due = with_radio(|radio| radio.advance(now));
        DUE_NS.set(due.clamp(now + CALL_NS, now + LOOK_NS));
    }
    hear_control();
}

/// Takes the first datagram if it has arrived by `now`.
fn due<T>(way: &mut VecDeque<(u64, Vec<u8>, T)>, now: u64) -> Option<(u64, Vec<u8>, T)> {
    if way.front()?.0 <= now { way.pop_front() } else { None }
}

/// Passes the datagrams on the control port to their receiver.
fn hear_control() {
    let Some((mut rx, mut receiver)) = CONTROL.take() else { return };
    let here =
        NETWORK.with_borrow(|network| network.arrived.get(&1).is_some_and(|q| !q.is_empty()));
    // Faults may hold others.
    if here || now_ns() % (4 * SLEEP_NS) < SLEEP_NS {
        while let count @ 1.. = rx.recv_batch(Duration::ZERO).expect("it cannot fail") {
            (0..count).for_each(|index| receiver.hear(&rx.datagram(index)));
        }
    }
    CONTROL.set(Some((rx, receiver)));
}

/// Runs `action` with this thread's radio.
///
/// # Panics
/// Without one.
pub fn with_radio<T>(action: impl FnOnce(&mut SteppedRadio) -> T) -> T {
    RADIO_HERE.with_borrow_mut(|radio| action(radio.as_mut().expect("a radio was switched on")))
}

/// The radio's end of the network.
struct FromRadio(FrameLoan);

impl PortTx for FromRadio {
    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.0
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(8 << 20)
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        NETWORK.with_borrow_mut(|network| {
            let copy = network.copy(payload);
            network.to_host.push_back((now_ns() + FLIGHT_NS, copy, to.port()));
        });
        Ok(())
    }

    fn send_train(&mut self, train: &[u8], segment: usize, to: SocketAddrV4) -> io::Result<()> {
        train.chunks(segment).try_for_each(|datagram| self.send(datagram, to))
    }
}

struct Rx {
    port: u16,
    recv_queue_bytes: usize,
    lent: Vec<Vec<u8>>,
}

struct Tx {
    from: SocketAddrV4,
    loan: FrameLoan,
}

fn capabilities(recv_queue_bytes: usize) -> Capabilities {
    let mut capabilities = Capabilities::new(9000, 64);
    capabilities.recv_queue_bytes = recv_queue_bytes;
    capabilities
}

/// Returns a new port of the host; the first one is that of control.
fn port(recv_queue_bytes: usize) -> Port {
    let port = NETWORK.with_borrow_mut(|network| {
        network.last_port += 1;
        network.last_port
    });
    let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    Port {
        local,
        rx: Box::new(Rx { port, recv_queue_bytes, lent: Vec::new() }),
        tx: Box::new(Tx { from: local, loan: FrameLoan::default() }),
    }
}

impl PortRx for Rx {
    fn capabilities(&self) -> Capabilities {
        capabilities(self.recv_queue_bytes)
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        NETWORK.with_borrow_mut(|network| network.spare.append(&mut self.lent));
        NOW_NS.set(now_ns() + CALL_NS);
        let until = now_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        loop {
            NETWORK.with_borrow_mut(|network| {
                let arrived = network.arrived.entry(self.port).or_default();
                let count = arrived.len().min(64);
                self.lent.extend(arrived.drain(..count));
            });
            if !self.lent.is_empty() || now_ns() >= until {
                return Ok(self.lent.len());
            }
            step(until);
        }
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        Datagram { payload: &self.lent[index], source: RADIO }
    }

    fn queue_drops(&self) -> u64 {
        0
    }
}

impl PortTx for Tx {
    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.loan
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(8 << 20)
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        assert_eq!(to, RADIO);
        NOW_NS.set(now_ns() + CALL_NS);
        NETWORK.with_borrow_mut(|network| {
            let copy = network.copy(payload);
            network.to_radio.push_back((now_ns() + FLIGHT_NS, copy, self.from));
        });
        Ok(())
    }

    fn send_train(&mut self, train: &[u8], segment: usize, to: SocketAddrV4) -> io::Result<()> {
        train.chunks(segment).try_for_each(|datagram| self.send(datagram, to))
    }
}

/// The host of a simulation: what opening a device finds, without its management side.
pub struct Host {
    wrap: Box<dyn Fn(Port) -> Port>,
    topology: RadioTopology,
    rx: Vec<(RxChannel, Endpoint)>,
    tx: Vec<(TxChannel, Endpoint)>,
    rate_hz: f64,
    next_epid: Cell<u16>,
}

impl Host {
    /// Switches a radio on, replacing that of this thread, and opens it through ports that `wrap`
    /// changes.
    pub fn open(config: &RadioConfig, time: u64, wrap: impl Fn(Port) -> Port + 'static) -> Self {
        CONTROL.set(None);
        NETWORK.set(Network::default());
        NOW_NS.set(BEGIN_NS);
        let from = Box::new(FromRadio(FrameLoan::default()));
        let radio = SteppedRadio::new(config, now_ns(), time, capabilities(8 << 20), from);
        RADIO_HERE.set(Some(radio.expect("the radio starts")));
        DUE_NS.set(now_ns());

        let mut port = wrap(port(8 << 20));
        let mut management = Management::new(&mut port, RADIO, Width::W64, HOST).on(CLOCK);
        let (ip, id) = (*RADIO.ip(), SteppedRadio::DEVICE_ID);
        let topology = topology::discover(&mut management, ip, id, HOST.0 + 1).expect("a device");
        let endpoint = *topology.control().expect("it has a control endpoint");
        topology::route_to(&mut management, &endpoint).expect("it answers");
        let (width, peer) = (Width::W64, endpoint.epid);
        let (control, receiver) = Control::without_thread(port.tx, RADIO, width, HOST, peer);
        CONTROL.set(Some((port.rx, receiver)));
        let control = Arc::new(control.on(CLOCK));
        let blocks = ClientZero::read(&*control).expect("it answers");
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for chain in blocks.chains(StreamDirection::Rx) {
            client_zero::reset(&*control, &chain.radio.block).expect("it answers");
        }
        let endpoint = |chain: &RadioChain| {
            let instance = chain.endpoint.clone().expect("it is wired");
            *topology.instance(instance).expect("it was found")
        };
        for chain in blocks.chains(StreamDirection::Rx) {
            let (port, channel) = (chain.radio.block.port, chain.radio.port);
            let channel = RxChannel::new(&control, port, channel).expect("it answers");
            rx.push((channel, endpoint(&chain)));
        }
        for chain in blocks.chains(StreamDirection::Tx) {
            let (port, channel) = (chain.radio.block.port, chain.radio.port);
            let channel = TxChannel::new(&control, port, channel).expect("it answers");
            tx.push((channel, endpoint(&chain)));
        }
        let rate_hz = config.master_clock_rate_hz;
        let next_epid = Cell::new(STREAMS);
        Self { wrap: Box::new(wrap), topology, rx, tx, rate_hz, next_epid }
    }

    /// Returns a receive channel that no stream has, with a port and a path for a stream.
    pub fn rx(&self, channel: usize, recv_queue_bytes: usize) -> (Port, StreamPath, RxChannel) {
        let (channel, endpoint) = &self.rx[channel];
        let lease = channel.lease().expect("no stream has it");
        ((self.wrap)(port(recv_queue_bytes)), self.path(*endpoint), lease)
    }

    /// Returns a transmit channel that no stream has, with a port and a path for a stream.
    pub fn tx(&self, channel: usize) -> (Port, StreamPath, TxChannel) {
        let (channel, endpoint) = &self.tx[channel];
        let lease = channel.lease().expect("no stream has it");
        ((self.wrap)(port(8 << 20)), self.path(*endpoint), lease)
    }

    fn path(&self, endpoint: Endpoint) -> StreamPath {
        let epid = Epid(self.next_epid.replace(self.next_epid.get() + 1));
        StreamPath {
            device: RADIO,
            width: Width::W64,
            frame_bytes: 8016,
            entry_port: self.topology.entry_port,
            endpoint,
            epid,
            rate: StreamRate::of_radio(self.rate_hz),
            clock: CLOCK,
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Its ports and its radio have no use for others.
        CONTROL.set(None);
        RADIO_HERE.set(None);
    }
}
