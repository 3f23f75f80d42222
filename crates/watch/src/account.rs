//! The account of all flows of a capture.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_wire::chdr::{Header, Packet, PacketType, UDP_PORT, Width};
use millstream_wire::ctrl::{Op, Protocol};
use millstream_wire::regs::radio::async_msg::Event;
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};

use crate::flow::{DataFlow, DataPacket, FlowGap, FlowKey};
use crate::frame::{Captured, Datagram, NoDatagram};
use crate::numbered::Numbered;
use crate::plain::{FlowProtocol, PlainFlows};
use crate::reading::DroppedPacket;

/// The most flows that are kept (a program may open one each second), and pairs of sockets:
/// anybody may send packets.
const FLOWS_MAX: usize = 1 << 14;
/// Gaps and messages that are kept, the newest ones.
const GAPS_MAX: usize = 1 << 16;
const MESSAGES_MAX: usize = 1 << 14;

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
    /// Datagrams that are no CHDR packets of a known kind, and of no other flow with numbers.
    pub foreign: u64,
    /// Packets of flows beyond the limit of an account.
    pub not_kept: u64,
    /// Packets that passed another interface than the one where their flow is followed: most often
    /// the same ones again.
    pub elsewhere: u64,
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

/// What the packets of a capture show.
#[derive(Debug)]
pub struct CaptureAccount {
    counts: AccountCounts,
    flows: Vec<DataFlow>,
    /// The positions of flows.
    places: HashMap<u128, usize>,
    /// The flow of the last packet: most often that of the next one, too.
    last: Option<(FlowKey, usize)>,
    /// The widths of CHDR packets between two addresses, the lower one first.
    widths: HashMap<(Ipv4Addr, Ipv4Addr), Width>,
    gaps: Numbered<FlowGap>,
    messages: Numbered<RadioMessage>,
    /// Sockets between which packets passed, each pair once, the lower one first, and the interface
    /// where they did first.
    pairs: HashMap<(SocketAddrV4, SocketAddrV4), u32>,
    plain: PlainFlows,
    /// With how many others a socket speaks.
    peers: HashMap<SocketAddrV4, u32>,
}

impl Default for CaptureAccount {
    fn default() -> Self {
        Self {
            counts: AccountCounts::default(),
            flows: Vec::new(),
            places: HashMap::new(),
            last: None,
            widths: HashMap::new(),
            gaps: Numbered::new(GAPS_MAX),
            messages: Numbered::new(MESSAGES_MAX),
            pairs: HashMap::new(),
            plain: PlainFlows::default(),
            peers: HashMap::new(),
        }
    }
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
    /// Flows of other protocols come from one unless this host sends them.
    #[must_use]
    pub fn is_from_radio(&self, flow: &DataFlow) -> bool {
        if flow.protocol() != FlowProtocol::Chdr {
            return flow.is_outgoing() != Some(true);
        }
        let (source, destination) = (flow.key().source, flow.key().destination);
        let peers = |end| self.peers.get(&end).copied().unwrap_or(0);
        match (source.port() == UDP_PORT, destination.port() == UDP_PORT) {
            (true, false) => true,
            (false, true) => false,
            _ if peers(source) == peers(destination) => flow.is_outgoing() == Some(false),
            _ => peers(source) > peers(destination),
        }
    }

    /// Returns the position of a flow.
    #[must_use]
    pub fn find(&self, key: &FlowKey) -> Option<usize> {
        let number = *self.places.get(&packed(key))?;
        (self.flows[number].key() == key).then_some(number)
    }

    /// Returns the position of the flow that a dropped packet is of, its number, and the bits that
    /// its number has; `None` for a packet without samples.
    pub(crate) fn place_of(&self, dropped: &DroppedPacket) -> Option<(usize, u64, u64)> {
        let (source, destination) = (dropped.source, dropped.destination);
        let first = dropped.header.as_ref()?;
        if let Some((stream, number, bits)) = self.plain.peek((source, destination), first) {
            let flow = self.find(&FlowKey { source, destination, epid: 0, stream })?;
            return Some((flow, number, bits));
        }
        let header = Header::peek(first).ok()?;
        let epid = header.dst_epid.0;
        let flow = self.find(&FlowKey { source, destination, epid, stream: 0 })?;
        header.kind.is_data().then_some((flow, header.seq.into(), u16::MAX.into()))
    }

    /// Returns the points at which samples are missing, in the order of the capture: the newest
    /// 65 536. The totals of the flows have all.
    pub fn gaps(&self) -> impl Iterator<Item = &FlowGap> {
        self.gaps_from(0).map(|(_, gap)| gap)
    }

    /// Returns the points at which samples are missing from a number on, with their numbers, which
    /// go on for ever. Packets that come late take from a gap, and end it.
    pub fn gaps_from(&self, number: u64) -> impl Iterator<Item = (u64, &FlowGap)> {
        self.gaps.from(number).filter(|(_, gap)| gap.is_open())
    }

    /// Returns a gap by its number, if it is kept and not ended by packets that came late.
    #[must_use]
    pub fn gap(&self, number: u64) -> Option<&FlowGap> {
        self.gaps.get(number).filter(|gap| gap.is_open())
    }

    /// Returns the number that the next gap will have.
    #[must_use]
    pub fn next_gap(&self) -> u64 {
        self.gaps.next()
    }

    /// Returns gaps and messages that were told and are no longer kept.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.gaps.forgotten() + self.messages.forgotten()
    }

    /// Returns the radios' messages about their channels, in the order of the capture: the newest
    /// 16 384.
    pub fn messages(&self) -> impl Iterator<Item = &RadioMessage> {
        self.messages_from(0).map(|(_, message)| message)
    }

    /// Returns the radios' messages from a number on, with their numbers, which go on for ever.
    pub fn messages_from(&self, number: u64) -> impl Iterator<Item = (u64, &RadioMessage)> {
        self.messages.from(number)
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
            Ok(datagram) => self.datagram(&datagram, frame),
            Err(NoDatagram::Other) => self.counts.others += 1,
            Err(NoDatagram::Fragment) => self.counts.fragments += 1,
            Err(NoDatagram::Short) => self.counts.short += 1,
        }
    }

    fn datagram(&mut self, datagram: &Datagram<'_>, frame: &Captured<'_>) {
        let (at_ns, interface) = (frame.at_ns, frame.interface);
        let header = Header::peek(datagram.payload).ok().filter(|header| {
            // Anything may begin with these bits; a length within the datagram is rare. Trains that
            // the kernel has joined or not yet parted have several packets.
            let length = usize::from(header.length);
            let slack = datagram.length.wrapping_sub(length);
            let is_train = header.kind.is_data() && datagram.length > length;
            header.vc == 0 && length >= 8 && (slack < Width::W512.bytes() || is_train)
        });
        let Some(header) = header else { return self.plain(datagram, frame) };
        if !header.kind.is_data() {
            let first = self.note_pair(datagram.source, datagram.destination, interface);
            if first != interface {
                self.counts.elsewhere += 1;
                return;
            }
        }
        match header.kind {
            PacketType::Data | PacketType::TimedData => self.data(datagram, frame),
            PacketType::StreamStatus => self.status(datagram, at_ns),
            PacketType::StreamCommand => self.command(datagram),
            PacketType::Control => self.control(datagram, at_ns),
            PacketType::Management => {}
        }
    }

    /// Takes the data packets of a datagram: one, or several of a train.
    fn data(&mut self, datagram: &Datagram<'_>, frame: &Captured<'_>) {
        let at_ns = frame.at_ns;
        let (mut at, mut part) = (0, None);
        while at < datagram.length {
            let bytes = datagram.payload.get(at..).unwrap_or_default();
            let header = Header::peek(bytes).ok().filter(|header| header.kind.is_data());
            // A timed one has its time in the second word.
            let whole = header.is_some_and(|header| match header.kind {
                PacketType::TimedData => bytes.len() >= 16,
                _ => true,
            });
            let Some(header) = header.filter(|_| whole) else {
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
            let ticks = ticks.map(u64::from_le_bytes);
            let packet = DataPacket { header, ticks, at_ns, is_least: false };
            let key = FlowKey {
                source: datagram.source,
                destination: datagram.destination,
                epid: header.dst_epid.0,
                stream: 0,
            };
            let Some(number) = self.flow_of(key, FlowProtocol::Chdr, frame) else { return };
            let end = self.flows[number].end_ticks();
            let overran = || told(&self.messages, *datagram.source.ip(), end);
            self.flows[number].data(number, &packet, overran, &mut self.gaps);
            // All parts of a train but the last are as long as the first.
            let word = self.flows[number].width().map_or(8, Width::bytes);
            let length = usize::from(header.length).next_multiple_of(word).max(word);
            at += part.get_or_insert((number, length)).1;
        }
    }

    /// Takes a datagram that is not CHDR.
    fn plain(&mut self, datagram: &Datagram<'_>, frame: &Captured<'_>) {
        let Some(found) = self.plain.number(datagram) else {
            self.counts.foreign += 1;
            return;
        };
        let key = FlowKey {
            source: datagram.source,
            destination: datagram.destination,
            epid: 0,
            stream: found.stream,
        };
        let Some(number) = self.flow_of(key, found.protocol, frame) else { return };
        let length = u16::try_from(datagram.length).unwrap_or(u16::MAX);
        let header = Header { seq: found.number, length, ..Header::default() };
        let (at_ns, is_least) = (frame.at_ns, found.is_least);
        let packet = DataPacket { header, ticks: None, at_ns, is_least };
        self.flows[number].data(number, &packet, || false, &mut self.gaps);
    }

    /// Returns the position of a frame's flow; a new one if there is room. `None` if the flow is
    /// not followed, or not on the frame's interface.
    fn flow_of(
        &mut self,
        key: FlowKey,
        protocol: FlowProtocol,
        frame: &Captured<'_>,
    ) -> Option<usize> {
        let number = self.place(key, protocol, frame)?;
        let passes = self.flows[number].passes(frame);
        self.counts.elsewhere += u64::from(!passes);
        passes.then_some(number)
    }

    fn place(
        &mut self,
        key: FlowKey,
        protocol: FlowProtocol,
        frame: &Captured<'_>,
    ) -> Option<usize> {
        if let Some((_, number)) = self.last.filter(|(last, _)| *last == key) {
            return Some(number);
        }
        let number = match self.find(&key) {
            Some(number) => number,
            None if self.flows.len() == FLOWS_MAX || self.places.contains_key(&packed(&key)) => {
                self.counts.not_kept += 1;
                return None;
            }
            None => {
                let interface = self.note_pair(key.source, key.destination, frame.interface);
                let mut flow = DataFlow::new(key, protocol, interface, frame.is_outgoing);
                if let Some(width) = self.widths.get(&between(key.source, key.destination)) {
                    flow.set_width(*width);
                }
                self.flows.push(flow);
                self.places.insert(packed(&key), self.flows.len() - 1);
                self.flows.len() - 1
            }
        };
        self.last = Some((key, number));
        Some(number)
    }

    /// Returns the interface where packets between two sockets are followed.
    fn note_pair(&mut self, one: SocketAddrV4, other: SocketAddrV4, interface: u32) -> u32 {
        let pair = (one.min(other), one.max(other));
        if let Some(first) = self.pairs.get(&pair) {
            return *first;
        }
        if self.pairs.len() < FLOWS_MAX {
            self.pairs.insert(pair, interface);
            for end in [one, other] {
                *self.peers.entry(end).or_default() += 1;
            }
        }
        interface
    }

    /// Notes the width by a packet whose payload has a known length.
    fn note_width(&mut self, datagram: &Datagram<'_>, payload: usize) -> Option<Width> {
        let header = Header::peek(datagram.payload).ok()?;
        let before = usize::from(header.length).checked_sub(payload)?;
        let width = Width::ALL.into_iter().find(|width| header.payload_offset(*width) == before)?;
        let ends = between(datagram.source, datagram.destination);
        if self.widths.get(&ends) == Some(&width) {
            return Some(width);
        }
        if self.widths.len() < FLOWS_MAX || self.widths.contains_key(&ends) {
            self.widths.insert(ends, width);
            for flow in &mut self.flows {
                if between(flow.key().source, flow.key().destination) == ends {
                    flow.set_width(width);
                }
            }
        }
        Some(width)
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
        // The flow whose receiver, with this endpoint, has sent it.
        let (source, destination) = (datagram.destination, datagram.source);
        let key = FlowKey { source, destination, epid: status.src_epid.0, stream: 0 };
        if let Some(number) = self.find(&key) {
            self.flows[number].status(number, &status, at_ns, &mut self.gaps);
        }
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
            stream: 0,
        };
        match (self.find(&key), command.op) {
            (Some(number), CommandOp::Init) => self.flows[number].set_up(),
            (Some(number), _) => self.flows[number].commanded(),
            (None, _) => {}
        }
    }

    /// Takes a message of a radio block.
    fn control(&mut self, datagram: &Datagram<'_>, at_ns: Option<u64>) {
        let radio = *datagram.source.ip();
        let known = self.widths.get(&between(datagram.source, datagram.destination));
        let widths = known.map_or(&Width::ALL[..], std::slice::from_ref);
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
        let last = self.messages.next().checked_sub(1).and_then(|last| self.messages.get(last));
        // The radio repeats it until the host has acknowledged it.
        if !last.is_some_and(|last| RadioMessage { at_ns, ..*last } == message) {
            self.messages.push(message);
            if message.event == Event::RxOverrun {
                let flows = self.flows.iter_mut();
                let of_radio = flows.filter(|flow| *flow.key().source.ip() == radio);
                of_radio.for_each(|flow| flow.overran(at_ns));
            }
        }
    }
}

/// Returns whether a radio has reported an overrun at this time. The message has the time of the
/// last sample, or of the first that is missing.
fn told(messages: &Numbered<RadioMessage>, radio: Ipv4Addr, end: Option<u64>) -> bool {
    let newest = messages.from(0).rev().map(|(_, message)| message).take(256);
    let mut overruns = newest.filter(|one| one.radio == radio && one.event == Event::RxOverrun);
    overruns.any(|one| one.ticks.zip(end).is_some_and(|(ticks, end)| end.wrapping_sub(ticks) <= 64))
}

/// Returns the addresses of two sockets, the lower one first.
fn between(one: SocketAddrV4, other: SocketAddrV4) -> (Ipv4Addr, Ipv4Addr) {
    (*one.ip().min(other.ip()), *one.ip().max(other.ip()))
}

/// Returns a key as one number, which is hashed fast.
fn packed(key: &FlowKey) -> u128 {
    let end = |end: SocketAddrV4| u128::from(end.ip().to_bits()) << 16 | u128::from(end.port());
    // Only one of both is not 0.
    end(key.source) << 80
        | end(key.destination) << 32
        | u128::from(key.stream | u32::from(key.epid))
}
