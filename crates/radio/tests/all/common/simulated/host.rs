//! The host of a simulation, with the radio of its thread.

use std::cell::Cell;
use std::sync::Arc;

use millstream_emulator::{RadioConfig, SteppedRadio};
use millstream_link::port::{FrameLoan, Port};
use millstream_radio::StreamRate;
use millstream_radio::channel::RxChannel;
use millstream_radio::client_zero::{self, ClientZero};
use millstream_radio::control::Control;
use millstream_radio::graph::{RadioChain, StreamDirection};
use millstream_radio::stream::StreamPath;
use millstream_radio::topology::{self, Endpoint, Management, RadioTopology};
use millstream_radio::tx::TxChannel;
use millstream_wire::ctrl::Protocol;
use millstream_wire::{Epid, Width};

use super::{
    BEGIN_NS, CLOCK, CONTROL, DUE_NS, FromRadio, HOST, NETWORK, NOW_NS, Network, RADIO, RADIO_HERE,
    RADIO_PORT, RADIO_PORT_HOLDS, STREAMS, ToRadio, capabilities, now_ns, port,
};

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
        RADIO_PORT.set(Some(Box::new(ToRadio::default())));
        RADIO_PORT_HOLDS.set(false);
        DUE_NS.set(now_ns());

        let mut port = wrap(port(8 << 20));
        let mut management = Management::new(&mut port, RADIO, Width::W64, HOST).on(CLOCK);
        let (ip, id) = (*RADIO.ip(), SteppedRadio::DEVICE_ID);
        let topology = topology::discover(&mut management, ip, id, HOST.0 + 1).expect("a device");
        let endpoint = *topology.control().expect("it has a control endpoint");
        topology::route_to(&mut management, &endpoint).expect("it answers");
        let (width, peer) = (Width::W64, endpoint.epid);
        let (control, receiver) =
            Control::without_thread(port.tx, RADIO, (width, Protocol::V1), HOST, peer);
        CONTROL.set(Some((port.rx, receiver)));
        let control = Arc::new(control.on(CLOCK));
        let blocks = ClientZero::read(&*control).expect("it answers");
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for chain in blocks.chains(StreamDirection::Rx) {
            client_zero::reset(&*control, &[chain.radio.block]).expect("it answers");
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
        RADIO_PORT.set(None);
        RADIO_HERE.set(None);
    }
}
