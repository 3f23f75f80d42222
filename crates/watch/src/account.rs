//! The account of all flows of a capture.

use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_wire::chdr::{Header, Packet, PacketType, UDP_PORT, Width};
use millstream_wire::ctrl::{Op, Protocol};
use millstream_wire::regs::radio::async_msg::Event;
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};

use crate::flow::{DataFlow, DataPacket, FlowGap, FlowKey, LossPlace};
use crate::frame::{Captured, Datagram, NoDatagram};

/// The most flows, devices, gaps and messages that are kept: anybody may send packets.
const FLOWS_MAX: usize = 1024;
const DEVICES_MAX: usize = 256;
const GAPS_MAX: usize = 1 << 20;
const MESSAGES_MAX: usize = 1 << 16;

/// What was counted besides the flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountCounts {
    /// Captured frames.
    pub frames: u64,
    /// Frames that are no UDP over IPv4.
    pub others: u64,
    /// Later parts of datagrams.
    pub fragments: u64,
    /// Frames that were cut off too early, or have impossible lengths.
    pub short: u64,
    /// Datagrams that are no CHDR packets of a known kind.
    pub foreign: u64,
    /// Packets and gaps beyond the limits of an account.
    pub not_kept: u64,
}

/// A message of a radio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RadioMessage {
    /// The radio's address.
    pub radio: Ipv4Addr,
    /// When it was captured, nanoseconds.
    pub at_ns: Option<u64>,
    /// What happened.
    pub event: Event,
    /// The radio block's channel.
    pub channel: u8,
    /// The time in the message, ticks.
    pub ticks: Option<u64>,
}

/// A device, as far as packets show it.
#[derive(Debug)]
struct Device {
    address: Ipv4Addr,
    width: Width,
}

/// What the packets of a capture show.
#[derive(Debug, Default)]
pub struct CaptureAccount {
    counts: AccountCounts,
    flows: Vec<DataFlow>,
    devices: Vec<Device>,
    gaps: Vec<FlowGap>,
    messages: Vec<RadioMessage>,
    /// Sockets between which packets passed, each pair once, the lower one first.
    pairs: Vec<(SocketAddrV4, SocketAddrV4)>,
}

impl CaptureAccount {
    /// Returns an empty account.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the flows, in the order of their first packets.
    #[must_use]
    pub fn flows(&self) -> &[DataFlow] {
        &self.flows
    }

    /// Returns whether a flow comes from a radio: its sender's port is that of CHDR, or speaks with
    /// more ports than the other end. A program has a port for each stream, and a radio has one.
    #[must_use]
    pub fn is_from_radio(&self, flow: &DataFlow) -> bool {
        let (source, destination) = (flow.key().source, flow.key().destination);
        let peers = |end| self.pairs.iter().filter(|pair| pair.0 == end || pair.1 == end).count();
        match (source.port() == UDP_PORT, destination.port() == UDP_PORT) {
            (true, false) => true,
            (false, true) => false,
            _ => peers(source) > peers(destination),
        }
    }

    /// Returns the points at which samples are missing, in the order of the capture.
    pub fn gaps(&self) -> impl Iterator<Item = &FlowGap> {
        self.gaps.iter().filter(|one| one.packets > 0 || one.place == LossPlace::Sender)
    }

    /// Returns the radios' messages about their channels, in the order of the capture.
    #[must_use]
    pub fn messages(&self) -> &[RadioMessage] {
        &self.messages
    }

    /// Returns what was counted besides.
    #[must_use]
    pub fn counts(&self) -> &AccountCounts {
        &self.counts
    }

    /// Takes the next frame.
    pub fn take(&mut self, frame: &Captured<'_>) {
        self.counts.frames += 1;
        match frame.datagram() {
            Ok(datagram) => self.datagram(&datagram, frame.at_ns),
            Err(NoDatagram::Other) => self.counts.others += 1,
            Err(NoDatagram::Fragment) => self.counts.fragments += 1,
            Err(NoDatagram::Short) => self.counts.short += 1,
        }
    }

    fn datagram(&mut self, datagram: &Datagram<'_>, at_ns: Option<u64>) {
        let header = Header::peek(datagram.payload);
        let Ok(header) = header.map_err(|_| self.counts.foreign += 1) else { return };
        // Anything may begin with these bits; a length within the datagram is rare.
        let slack = datagram.length.wrapping_sub(header.length.into());
        if header.vc != 0 || header.length < 8 || slack >= Width::W512.bytes() {
            // Trains that the kernel has joined or not yet parted have several packets.
            let trains = header.kind.is_data() && datagram.length > header.length.into();
            if !trains {
                self.counts.foreign += 1;
                return;
            }
        }
        if !header.kind.is_data() {
            self.note_pair(datagram.source, datagram.destination);
        }
        match header.kind {
            PacketType::Data | PacketType::TimedData => self.data(datagram, at_ns),
            PacketType::StreamStatus => self.status(datagram, at_ns),
            PacketType::StreamCommand => self.command(datagram),
            PacketType::Control => self.control(datagram, at_ns),
            PacketType::Management => {}
        }
    }

    /// Takes the data packets of a datagram: one, or several of a train.
    fn data(&mut self, datagram: &Datagram<'_>, at_ns: Option<u64>) {
        let (mut at, mut part) = (0, None);
        while at < datagram.length {
            let bytes = datagram.payload.get(at..).unwrap_or_default();
            let header = Header::peek(bytes).ok().filter(|header| header.kind.is_data());
            let (Some(header), 16..) = (header, bytes.len()) else {
                // Cut off: the next packet that is seen shows whether one is missing among them.
                let (Some((number, part)), rest) = (part, datagram.length - at) else { return };
                let flow: &mut DataFlow = &mut self.flows[number];
                return flow.unseen(part as u16, rest, at_ns);
            };
            let ticks = match header.kind {
                // At each width the second word.
                PacketType::TimedData => bytes.get(8..16).and_then(|word| word.try_into().ok()),
                _ => None,
            };
            let packet = DataPacket { header, ticks: ticks.map(u64::from_le_bytes), at_ns };
            let key = FlowKey {
                source: datagram.source,
                destination: datagram.destination,
                epid: header.dst_epid.0,
            };
            let Some(number) = self.flow_of(key) else { return };
            if !self.has_room() {
                return;
            }
            let end = self.flows[number].end_ticks();
            let overran = || told(&self.messages, *datagram.source.ip(), end);
            self.flows[number].data(number, &packet, overran, &mut self.gaps);
            // All parts of a train but the last are as long as the first.
            let word = self.flows[number].width().map_or(8, Width::bytes);
            let length = usize::from(header.length).next_multiple_of(word).max(word);
            at += part.get_or_insert((number, length)).1;
        }
    }

    /// Returns the position of a flow; a new one if there is room.
    fn flow_of(&mut self, key: FlowKey) -> Option<usize> {
        if let Some(number) = self.flows.iter().position(|flow| *flow.key() == key) {
            return Some(number);
        }
        if self.flows.len() == FLOWS_MAX {
            self.counts.not_kept += 1;
            return None;
        }
        self.note_pair(key.source, key.destination);
        let mut flow = DataFlow::new(key);
        if let Some(width) = self.width_of(&key) {
            flow.set_width(width);
        }
        self.flows.push(flow);
        Some(self.flows.len() - 1)
    }

    /// Returns whether another gap is kept.
    fn has_room(&mut self) -> bool {
        let has_room = self.gaps.len() < GAPS_MAX;
        self.counts.not_kept += u64::from(!has_room);
        has_room
    }

    fn note_pair(&mut self, one: SocketAddrV4, other: SocketAddrV4) {
        let pair = (one.min(other), one.max(other));
        if self.pairs.len() < FLOWS_MAX && !self.pairs.contains(&pair) {
            self.pairs.push(pair);
        }
    }

    fn width_of(&self, key: &FlowKey) -> Option<Width> {
        let ends = [*key.source.ip(), *key.destination.ip()];
        self.devices.iter().find(|one| ends.contains(&one.address)).map(|one| one.width)
    }

    /// Notes the width by a packet whose payload has a known length.
    fn note_width(&mut self, datagram: &Datagram<'_>, payload: usize) -> Option<Width> {
        let header = Header::peek(datagram.payload).ok()?;
        let before = usize::from(header.length).checked_sub(payload)?;
        let width = Width::ALL.into_iter().find(|width| header.payload_offset(*width) == before)?;
        for end in [datagram.source, datagram.destination] {
            if end.port() == UDP_PORT || self.devices.is_empty() {
                self.add_device(*end.ip(), width);
            }
        }
        let ends = [*datagram.source.ip(), *datagram.destination.ip()];
        for flow in &mut self.flows {
            let of_flow = [*flow.key().source.ip(), *flow.key().destination.ip()];
            if ends.iter().all(|end| of_flow.contains(end)) {
                flow.set_width(width);
            }
        }
        Some(width)
    }

    fn add_device(&mut self, address: Ipv4Addr, width: Width) {
        if let Some(device) = self.devices.iter_mut().find(|one| one.address == address) {
            device.width = width;
        } else if self.devices.len() < DEVICES_MAX {
            self.devices.push(Device { address, width });
        } else {
            self.counts.not_kept += 1;
        }
    }

    /// Takes a report of a receiver.
    fn status(&mut self, datagram: &Datagram<'_>, at_ns: Option<u64>) {
        let width = self.note_width(datagram, 32);
        let status = width.and_then(|width| {
            StatusRepr::parse(&Packet::parse(datagram.payload, width).ok()?).ok()
        });
        let Some(status) = status else {
            self.counts.foreign += 1;
            return;
        };
        let Some(number) = self.against(datagram, status.src_epid.0).filter(|_| self.has_room())
        else {
            return;
        };
        if let Some(packets) = self.flows[number].status(&status, at_ns) {
            self.gaps.push(FlowGap {
                flow: number,
                at_ns,
                place: LossPlace::Behind,
                packets,
                ticks: None,
                samples: None,
                overrun: false,
                credit: None,
                is_sure: true,
            });
        }
    }

    /// Returns the flow whose receiver, with this endpoint, has sent a datagram.
    fn against(&self, datagram: &Datagram<'_>, epid: u16) -> Option<usize> {
        let key = FlowKey { source: datagram.destination, destination: datagram.source, epid };
        self.flows.iter().position(|flow| *flow.key() == key)
    }

    /// Takes a command of a sender.
    fn command(&mut self, datagram: &Datagram<'_>) {
        let Some(width) = self.note_width(datagram, 16) else {
            self.counts.foreign += 1;
            return;
        };
        let packet = Packet::parse(datagram.payload, width);
        let Ok(command) = packet.and_then(|packet| CommandRepr::parse(&packet)) else { return };
        let key = FlowKey {
            source: datagram.source,
            destination: datagram.destination,
            epid: command.dst_epid.0,
        };
        let flow = self.flows.iter_mut().find(|flow| *flow.key() == key);
        if let Some(flow) = flow.filter(|_| command.op == CommandOp::Init) {
            flow.set_up();
        }
    }

    /// Takes a message of a radio block.
    fn control(&mut self, datagram: &Datagram<'_>, at_ns: Option<u64>) {
        let radio = *datagram.source.ip();
        let known = self.devices.iter().find(|device| device.address == radio);
        let widths = known.map_or(&Width::ALL[..], |device| std::slice::from_ref(&device.width));
        let found = widths.iter().find_map(|width| {
            let packet = Packet::parse(datagram.payload, *width).ok()?;
            [Protocol::V1, Protocol::V2].into_iter().find_map(|protocol| {
                let message = protocol.parse(&packet).ok()?;
                let is_message = !message.is_ack && message.op == Op::Write;
                let data = message.data.as_slice();
                let event = Event::from_message(message.address, *data.first()?)?;
                let (event, channel) = is_message.then_some(event)?;
                // Messages about a moment have its time; other writes to such addresses do not.
                let ticks = message.timestamp?;
                Some(RadioMessage { radio, at_ns, event, channel, ticks: Some(ticks) })
            })
        });
        let Some(message) = found else { return };
        if self.messages.last().is_some_and(|last| RadioMessage { at_ns, ..*last } == message) {
            // The radio repeats it until the host has acknowledged it.
            return;
        }
        if self.messages.len() == MESSAGES_MAX {
            self.counts.not_kept += 1;
            return;
        }
        self.messages.push(message);
    }
}

/// Returns whether a radio has reported an overrun at this time. The message has the time of the
/// last sample, or of the first that is missing.
fn told(messages: &[RadioMessage], radio: Ipv4Addr, end: Option<u64>) -> bool {
    let of_radio = messages.iter().rev().filter(|one| one.radio == radio);
    let mut overruns = of_radio.filter(|one| one.event == Event::RxOverrun).take(64);
    overruns.any(|one| one.ticks.zip(end).is_some_and(|(ticks, end)| end.wrapping_sub(ticks) <= 64))
}
