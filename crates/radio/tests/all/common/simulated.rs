//! A network and a radio in one thread, in simulated time.
//!
//! Time passes where the host waits, and a little with each call of a port. Everything that happens
//! follows from the seed of a test: nothing here reads a clock or another source of chance.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use millstream_emulator::SteppedRadio;
use millstream_link::port::{Capabilities, Datagram, FrameLoan, Port, PortRx, PortTx};
use millstream_radio::Clock;
use millstream_radio::control::ControlReceiver;
use millstream_wire::Epid;

mod host;

pub use host::Host;

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

/// The host's port for control.
pub const CONTROL_PORT: u16 = 1;

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
    /// The receive half of its port.
    static RADIO_PORT: RefCell<Option<Box<dyn PortRx>>> = const { RefCell::new(None) };
    /// Something may hold datagrams before that half, so that it is polled often.
    static RADIO_PORT_HOLDS: Cell<bool> = const { Cell::new(false) };
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
    let polled = if RADIO_PORT_HOLDS.get() { now_ns() + SLEEP_NS } else { u64::MAX };
    let now = until_ns.min(next).min(DUE_NS.get()).min(polled).max(now_ns());
    NOW_NS.set(now);
    NETWORK.with_borrow_mut(|network| {
        while let Some((_, bytes, port)) = due(&mut network.to_host, now) {
            network.arrived.entry(port).or_default().push_back(bytes);
        }
    });
    hear_host(now);
    if DUE_NS.get() <= now {
        // It may ask for another call at once.
        let due = with_radio(|radio| radio.advance(now));
        DUE_NS.set(due.clamp(now + CALL_NS, now + LOOK_NS));
    }
    hear_control();
}

/// Passes the datagrams that have arrived by `now` to the radio.
fn hear_host(now: u64) {
    let Some(mut port) = RADIO_PORT.take() else { return };
    while let count @ 1.. = port.recv_batch(Duration::ZERO).expect("it cannot fail") {
        for index in 0..count {
            let Datagram { payload, source } = port.datagram(index);
            with_radio(|radio| radio.receive(payload, source, now));
        }
        DUE_NS.set(now);
    }
    RADIO_PORT.set(Some(port));
}

/// Takes the first datagram if it has arrived by `now`.
fn due<T>(way: &mut VecDeque<(u64, Vec<u8>, T)>, now: u64) -> Option<(u64, Vec<u8>, T)> {
    if way.front()?.0 <= now { way.pop_front() } else { None }
}

/// Passes the datagrams on the control port to their receiver.
fn hear_control() {
    let Some((mut rx, mut receiver)) = CONTROL.take() else { return };
    let here = NETWORK
        .with_borrow(|network| network.arrived.get(&CONTROL_PORT).is_some_and(|q| !q.is_empty()));
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

/// Returns whether no datagram is on its way.
pub fn is_quiet() -> bool {
    NETWORK.with_borrow(|network| network.to_radio.is_empty() && network.to_host.is_empty())
}

/// Puts what `wrap` returns before the receive half of the radio's port.
pub fn wrap_radio_port(wrap: impl FnOnce(Box<dyn PortRx>) -> Box<dyn PortRx>) {
    let port = RADIO_PORT.take().expect("a radio was switched on");
    RADIO_PORT.set(Some(wrap(port)));
}

/// Sets whether something before that half may hold datagrams, so that it is polled often.
pub fn poll_radio_port_often(often: bool) {
    RADIO_PORT_HOLDS.set(often);
}

/// The receive half of the radio's port.
#[derive(Default)]
struct ToRadio(Vec<(Vec<u8>, SocketAddrV4)>);

impl PortRx for ToRadio {
    fn capabilities(&self) -> Capabilities {
        capabilities(8 << 20)
    }

    /// Never waits: the caller steps the simulation.
    fn recv_batch(&mut self, _: Duration) -> io::Result<usize> {
        NETWORK.with_borrow_mut(|network| {
            network.spare.extend(self.0.drain(..).map(|(bytes, _)| bytes));
            while self.0.len() < 64 {
                let Some((_, bytes, from)) = due(&mut network.to_radio, now_ns()) else { break };
                self.0.push((bytes, from));
            }
        });
        Ok(self.0.len())
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        let (payload, source) = &self.0[index];
        Datagram { payload, source: *source }
    }

    fn queue_drops(&self) -> u64 {
        0
    }
}

/// The transmit half of the radio's port.
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
