//! A device on simulated time, and the actions of a host.

use crate::antenna::{AntennaSource, RampAntenna, Sc16};
use crate::device::*;
use crate::personality::{DeviceKind, ImageOptions};
use crate::time::SampleClock;
use millstream_dsp::chunks::Chunks;
use millstream_link::port::Capabilities;
pub use millstream_wire::Epid;
pub use millstream_wire::chdr::Width;
use millstream_wire::chdr::{DataRepr, Packet};
use millstream_wire::ctrl::ControlStatus;
pub use millstream_wire::ctrl::{CtrlRepr, DataWords, Op};
use millstream_wire::mgmt::{MgmtRepr, Op as Hop};
use millstream_wire::regs::sep;
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};
use std::io;
use std::net::Ipv4Addr;
pub use std::net::SocketAddrV4;
use std::sync::Mutex;

pub const HOST: HostAddress =
    HostAddress { link: 0, socket: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4000), raw: false };
pub const CONTROL: u16 = 1;
pub const SEP: u16 = 2;
pub const STREAM: u16 = 9;
/// One tick is one microsecond, so that instants are easy to read.
pub const RATE_HZ: f64 = 1e6;
pub const US: u64 = 1_000;
pub const PACKET_SAMPLES: u32 = 100;
pub const PACKET_BYTES: usize = 16 + 400;

pub const TX_BUFFER_SAMPLES: u64 = 8_192;

pub type Sent = Arc<Mutex<Vec<Vec<u8>>>>;
pub type SentTo = Arc<Mutex<Vec<(SocketAddrV4, Vec<u8>)>>>;

/// A port that passes sent packets to a function.
pub struct Passing<F>(F, millstream_link::port::FrameLoan);

impl<F: FnMut(&[u8], SocketAddrV4) + Send> PortTx for Passing<F> {
    fn loan(&mut self) -> &mut millstream_link::port::FrameLoan {
        &mut self.1
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(9000, 64)
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        (self.0)(payload, to);
        Ok(())
    }

    fn send_train(&mut self, train: &[u8], each: usize, to: SocketAddrV4) -> io::Result<()> {
        assert!(train.len() <= 65_507);
        train.chunks(each).try_for_each(|packet| self.send(packet, to))
    }
}

pub fn passing<F: FnMut(&[u8], SocketAddrV4) + Send>(take: F) -> Passing<F> {
    Passing(take, Default::default())
}

/// Returns a port that stores sent packets with their destinations.
pub fn witness(sent: &SentTo) -> impl PortTx + use<> {
    let sent = Arc::clone(sent);
    passing(move |payload, to| sent.lock().unwrap().push((to, payload.to_vec())))
}

/// The device, and the actions of a host.
pub struct Bench {
    pub device: EmulatedDevice,
    sent: Sent,
    pub counters: Arc<Counters>,
    pub now_ns: u64,
    pub ctrl_seq: u8,
    /// The control port of the radio block.
    pub radio_port: u16,
    /// Whether messages of the device are acknowledged as soon as they come.
    pub acknowledges: bool,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(RATE_HZ, TX_BUFFER_SAMPLES)
    }

    /// Returns a radio at this rate whose receive stream is open, with credit for all.
    pub fn streaming(rate_hz: f64) -> Self {
        let mut bench = Self::with(rate_hz, TX_BUFFER_SAMPLES);
        bench.connect();
        bench.open_stream(1 << 30);
        bench
    }

    /// Returns a radio at this rate, with a transmit buffer of this size.
    pub fn with(rate_hz: f64, tx_buffer_samples: u64) -> Self {
        let ramp = || AntennaSource::Signal(Box::new(RampAntenna));
        Self::hearing([ramp(), ramp()], rate_hz, tx_buffer_samples)
    }

    /// Returns a radio whose channels receive `sources`.
    pub fn hearing(sources: [AntennaSource; 2], rate_hz: f64, tx_buffer_samples: u64) -> Self {
        Self::being(DeviceKind::E320Radio, sources, rate_hz, tx_buffer_samples)
    }

    /// Returns such a radio as this device.
    pub fn being(
        device: DeviceKind,
        sources: impl Into<Vec<AntennaSource>>,
        rate_hz: f64,
        tx_buffer_samples: u64,
    ) -> Self {
        Self::with_image(
            device,
            ImageOptions::default(),
            sources.into(),
            rate_hz,
            tx_buffer_samples,
        )
    }

    /// Returns such a radio with this image.
    pub fn with_image(
        device: DeviceKind,
        options: ImageOptions,
        sources: Vec<AntennaSource>,
        rate_hz: f64,
        tx_buffer_samples: u64,
    ) -> Self {
        let sent = Sent::default();
        let stored = Arc::clone(&sent);
        let port = passing(move |payload, to| {
            assert_eq!(to, HOST.socket);
            stored.lock().unwrap().push(payload.to_vec());
        });
        let counters = Arc::new(Counters::default());
        let mut queue = Capabilities::new(9000, 64);
        queue.recv_queue_bytes = 8 << 20;
        let device = EmulatedDevice::new(DeviceParts {
            image: Image::new(device.personality(), options),
            front_end: device.personality().front_end,
            keeper: DeviceClock::new(SampleClock::new(0, 0, rate_hz, 1.0)),
            sources,
            scenes: Vec::new(),
            recorders: Vec::new(),
            rx_buffer_samples: 5_000,
            tx_buffer_samples,
            queue,
            links: vec![Box::new(port)],
            counters: counters.clone(),
        });
        let radio =
            device.image.blocks.iter().position(|block| block.kind == BlockKind::Radio).unwrap();
        Self {
            device,
            sent,
            counters,
            now_ns: 0,
            ctrl_seq: 0,
            radio_port: 2 + radio as u16,
            acknowledges: true,
        }
    }

    /// Makes the device send by `tx`.
    pub fn send_by(&mut self, tx: impl PortTx + 'static) {
        self.device.outbox = Outbox::new(vec![Box::new(tx)], Width::W64, self.counters.clone());
    }

    pub fn take_sent(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let sent = std::mem::take(&mut *self.sent.lock().unwrap());
            if sent.is_empty() {
                return all;
            }
            if self.acknowledges {
                messages(&sent).iter().for_each(|message| self.acknowledge(message));
            }
            all.extend(sent);
        }
    }

    /// Acknowledges a message of the device.
    pub fn acknowledge(&mut self, message: &CtrlRepr) {
        let ack = message.ack(0, ControlStatus::Ok, message.data);
        let ack = CtrlRepr { dst_port: message.src_port, src_port: message.dst_port, ..ack };
        let mut buffer = [0; 128];
        let length = ack.emit(Width::W64, &mut buffer).unwrap();
        self.device.receive(&buffer[..length], HOST, self.now_ns);
    }

    pub fn receive(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.device.receive(datagram, HOST, self.now_ns);
        self.take_sent()
    }

    /// Sends a management request; a NOP hop is added for the answer.
    pub fn manage(&mut self, epid: u16, hops: &[&[Hop]]) {
        let mut packet = MgmtRepr::request(Epid(epid), 0);
        hops.iter().copied().chain([&[Hop::Nop][..]]).for_each(|h| packet.push_hop(h).unwrap());
        let mut buffer = [0; 1024];
        let length = packet.emit(Width::W64, &mut buffer).unwrap();
        let replies = self.receive(&buffer[..length]);
        assert!(!replies.is_empty());
    }

    pub fn set(&mut self, hops: &[&[Hop]], address: u16, value: u32) {
        let write: &[Hop] = &[Hop::CfgWrite { address, value }, Hop::Return];
        self.manage(CONTROL, &[hops, &[write]].concat());
    }

    /// Sets routes for host control and stream, and an id for endpoint 0.
    pub fn connect(&mut self) {
        for epid in [CONTROL, STREAM] {
            self.manage(epid, &[&[Hop::Advertise, Hop::Return]]);
            self.set(&[&[Hop::Nop]], epid, 0);
        }
        self.set(&[&[Hop::Nop]], SEP, 1);
        self.set(&[&[Hop::Nop], &[Hop::SelDest(1)]], sep::EPID_SELF, SEP.into());
        for (address, value) in [
            (0x1028, PACKET_SAMPLES),
            (0x102C, 1),
            (0x1030, 2),
            (0x1034, CONTROL.into()),
            (0x1038, 0x1000),
            (0x1048, 1),
            (0x104C, 2),
            (0x1050, CONTROL.into()),
        ] {
            assert_eq!(self.write(address, value, None).unwrap().status, ControlStatus::Ok);
        }
    }

    /// Does the receive handshake with this capacity at the host.
    pub fn open_stream(&mut self, capacity_bytes: u64) {
        let to_sep: &[&[Hop]] = &[&[Hop::Nop], &[Hop::SelDest(1)]];
        self.set(to_sep, sep::OSTRM_DST_EPID, STREAM.into());
        self.set(to_sep, sep::OSTRM_FC_FREQ_BYTES_LO, (capacity_bytes / 32) as u32);
        let start = [Hop::CfgWrite { address: sep::OSTRM_CTRL_STATUS, value: 0x0B }, Hop::Return];
        let mut packet = MgmtRepr::request(Epid(CONTROL), 0);
        [to_sep[0], to_sep[1], &start, &[Hop::Nop]]
            .iter()
            .for_each(|hop| packet.push_hop(hop).unwrap());
        let mut buffer = [0; 1024];
        let length = packet.emit(Width::W64, &mut buffer).unwrap();
        let sent = self.receive(&buffer[..length]);
        let init = CommandRepr::parse(&Packet::parse(&sent[0], Width::W64).unwrap()).unwrap();
        assert_eq!((init.op, init.dst_epid, init.seq), (CommandOp::Init, Epid(STREAM), 0));
        self.credit(capacity_bytes, 0, 0);
    }

    pub fn credit(&mut self, capacity_bytes: u64, count_bytes: u64, count_packets: u64) {
        self.credit_for(SEP, capacity_bytes, (count_bytes, count_packets));
    }

    /// Grants credit to the endpoint with this id.
    pub fn credit_for(
        &mut self,
        epid: u16,
        capacity_bytes: u64,
        (count_bytes, count_packets): (u64, u64),
    ) {
        let status = StatusRepr {
            dst_epid: Epid(epid),
            src_epid: Epid(STREAM),
            capacity_bytes,
            capacity_packets: 0xff_ffff,
            count_bytes,
            count_packets,
            ..StatusRepr::default()
        };
        let mut buffer = [0; 64];
        let length = status.emit(Width::W64, &mut buffer).unwrap();
        assert!(self.receive(&buffer[..length]).is_empty());
    }

    pub fn request(
        &mut self,
        port: u16,
        op: Op,
        address: u32,
        value: u32,
        at: Option<u64>,
    ) -> CtrlRepr {
        self.ctrl_seq = (self.ctrl_seq + 1) % 64;
        CtrlRepr {
            dst_epid: Epid(SEP),
            src_epid: Epid(CONTROL),
            dst_port: port,
            src_port: port,
            ctrl_seq: self.ctrl_seq,
            timestamp: at,
            address,
            op,
            data: DataWords::one(value),
            ..CtrlRepr::default()
        }
    }

    pub fn control(&mut self, request: CtrlRepr) -> Vec<CtrlRepr> {
        let mut buffer = [0; 128];
        let length = request.emit(Width::W64, &mut buffer).unwrap();
        let sent = self.receive(&buffer[..length]);
        sent.iter().filter(|packet| packet[6] >> 5 == 4).map(|packet| control_of(packet)).collect()
    }

    /// Writes a radio register; returns its acknowledgement if it came at once.
    pub fn write(&mut self, address: u32, value: u32, at: Option<u64>) -> Option<CtrlRepr> {
        self.write_block(self.radio_port, address, value, at)
    }

    /// Writes a register of the block at this control port, as [`Bench::write`] does.
    pub fn write_block(
        &mut self,
        port: u16,
        address: u32,
        value: u32,
        at: Option<u64>,
    ) -> Option<CtrlRepr> {
        let request = self.request(port, Op::Write, address, value, at);
        let acks = self.control(request);
        acks.into_iter().find(|ack| ack.is_ack && ack.ctrl_seq == request.ctrl_seq)
    }

    /// Runs to `until_us`, waking exactly at the requested instants; returns the sent packets.
    pub fn run(&mut self, until_us: u64) -> Vec<Vec<u8>> {
        loop {
            let deadline_ns = self.device.advance(self.now_ns);
            if deadline_ns > until_us * US {
                self.now_ns = until_us * US;
                self.device.advance(self.now_ns);
                return self.take_sent();
            }
            self.now_ns = self.now_ns.max(deadline_ns);
        }
    }
}

pub fn control_of(packet: &[u8]) -> CtrlRepr {
    CtrlRepr::parse(&Packet::parse(packet, Width::W64).unwrap()).unwrap()
}

/// Returns a data packet to the radio, whose samples count up from `first`.
pub fn samples_from(first: u32, repr: DataRepr) -> Vec<u8> {
    let repr = DataRepr { dst_epid: Epid(SEP), ..repr };
    let mut packet = vec![0; repr.packet_len(Width::W64)];
    let header = repr.emit(Width::W64, &mut packet).unwrap();
    let payload: &mut [Sc16] = packet[header..].in_chunks_mut().0;
    payload.iter_mut().zip(first..).for_each(|(sample, value)| *sample = value.to_le_bytes());
    packet
}

/// Returns a stream command to the radio.
pub fn stream_command(op: CommandOp, bytes: u64, packets: u64) -> Vec<u8> {
    let (dst_epid, src_epid) = (Epid(SEP), Epid(STREAM));
    let repr = CommandRepr { dst_epid, src_epid, op, bytes, packets, ..CommandRepr::default() };
    let mut buffer = vec![0; 64];
    let length = repr.emit(Width::W64, &mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

/// Returns the data packets among `sent`, after a check of their ramp against their timestamps.
pub fn data(sent: &[Vec<u8>]) -> Vec<DataRepr> {
    let parse = |packet: &Vec<u8>| {
        let packet = Packet::parse(packet, Width::W64).unwrap();
        let data = DataRepr::parse(&packet).ok()?;
        let (samples, rest): (&[Sc16], _) = packet.payload().in_chunks();
        assert!(rest.is_empty() && !samples.is_empty());
        for (sample, tick) in samples.iter().zip(data.timestamp.unwrap()..) {
            assert_eq!(*sample, (tick as u32).to_le_bytes());
        }
        Some(data)
    };
    sent.iter().filter_map(parse).collect()
}

pub fn messages(sent: &[Vec<u8>]) -> Vec<CtrlRepr> {
    let is_control = |packet: &&Vec<u8>| packet[6] >> 5 == 4;
    sent.iter().filter(is_control).map(|packet| control_of(packet)).filter(|m| !m.is_ack).collect()
}
