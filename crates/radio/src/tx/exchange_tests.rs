//! Recorded exchanges with the logic of a real device, whose datagrams the core takes.

use millstream_wire::Epid;
use millstream_wire::chdr::DataRepr;
use millstream_wire::ctrl::{CtrlRepr, Op};

use super::*;
use crate::testing::{Recorded, recorded};
use crate::tx::ledger::TxCause;
use crate::tx::progress::Totals;

/// The host's id, and the control port of the radio, in all recordings.
const STREAM: Epid = Epid(30);
const RADIO: u16 = 4;

/// What the logic grants in all recordings.
const WINDOW: u64 = 262_143;

/// A host whose packets are those of the recording, the missing ones included.
struct Host {
    core: TxCore,
    /// The number of the next packet, and the time behind the last one; none behind a burst.
    next: u16,
    due: Option<u64>,
    /// What has reached the device.
    arrived: Totals,
    /// The number of the last status.
    status_seq: u16,
    events: Vec<TxEvent>,
}

impl Host {
    /// Replays a recording up to data packet `end`.
    fn replay(name: &str, end: u16) -> Self {
        let window = CreditWindow::new(WINDOW, PACKETS_UNLIMITED, COMMAND);
        let path = StreamPath { epid: STREAM, ..path() };
        let filling = Filling::new(path.width, SPP as usize, 1);
        let opened = Opened { window, status_seq: 0, tells_place: true };
        let core = TxCore::new(path, opened, SPP, filling);
        let (next, due, arrived) = (0, None, Totals::default());
        let mut host = Self { core, next, due, arrived, status_seq: 0, events: Vec::new() };
        let mut has_begun = false;
        for Recorded { bytes, from_device, .. } in recorded(name) {
            let packet = Packet::parse(&bytes, Width::W64).expect("a packet");
            if let Ok(data) = DataRepr::parse(&packet) {
                if data.seq == end {
                    break;
                }
                host.arrived.packets += 1;
                host.arrived.bytes += packet.flow_len() as u64;
                host.send(&data, packet.flow_len() as u64);
            } else if let Ok(command) = CommandRepr::parse(&packet) {
                // The first handshake has no periods, and its answer is not for the stream.
                has_begun |= command.seq == 1;
            } else if let Ok(status) = StatusRepr::parse(&packet) {
                if has_begun && status.seq > 0 {
                    host.status_seq = status.seq;
                    host.core.accept(&bytes, DEVICE);
                }
            } else if let Ok(repr) = CtrlRepr::parse(&packet)
                && (from_device && !repr.is_ack && (repr.dst_port, repr.op) == (RADIO, Op::Write))
            {
                let event = Event::from_message(repr.address, repr.data.first());
                let time = repr.timestamp.expect("messages have times");
                host.core.note_event(event.expect("a message of a radio").0, time);
            }
            host.events.extend(host.core.events.drain(..));
        }
        host.query();
        host
    }

    /// Counts a packet of the host, and those before it that the network has lost. Copies, and
    /// those that were overtaken, are counted already.
    fn send(&mut self, data: &DataRepr, flow: u64) {
        let missing = data.seq.wrapping_sub(self.next);
        if missing >= 1 << 15 {
            return;
        }
        for left in (1..=u64::from(missing)).rev() {
            // Where the next packet does not follow, the burst ended with this one.
            let before = data.timestamp.map(|time| time - left * SPP);
            let time = self.due.or(before);
            let ends = left == 1 && time != before;
            self.count(SPP, FLOW, time, ends);
        }
        self.count(data.payload_len as u64 / 4, flow, data.timestamp, data.eob);
    }

    fn count(&mut self, samples: u64, flow: u64, time: Option<u64>, ends: bool) {
        self.core.account.accept(samples);
        self.core.account.send(flow, samples, time, ends);
        self.next = self.next.wrapping_add(1);
        self.due = time.map(|time| time + samples).filter(|_| !ends);
    }

    /// Asks for the place of the device, which answers as the logic does with nothing queued
    /// (exchange 30).
    fn query(&mut self) {
        let mut query = [0; QUERY_BYTES_MAX];
        let length = self.core.query(&mut query).expect("there is room");
        let packet = Packet::parse(&query[..length], Width::W64).expect("a packet");
        let number = CommandRepr::parse(&packet).expect("a command").seq;
        let Totals { packets, bytes } = self.arrived;
        let place = StreamPlace { period: false, expected: self.next, command: number };
        let status = StatusRepr {
            dst_epid: STREAM,
            seq: self.status_seq.wrapping_add(1),
            src_epid: OWN,
            status: StreamCondition::Ok,
            capacity_bytes: WINDOW,
            capacity_packets: PACKETS_UNLIMITED,
            count_packets: packets + 1,
            count_bytes: bytes + COMMAND,
            error_info: place.to_info(),
            ..StatusRepr::default()
        };
        let mut out = vec![0; StatusRepr::packet_len(Width::W64)];
        status.emit(Width::W64, &mut out).expect("there is room");
        self.core.accept(&out, DEVICE);
    }

    /// Returns the samples accepted, transmitted, lost before the device took them, and late.
    fn ledger(&self) -> [u64; 4] {
        let ledger = self.core.account.ledger();
        assert_eq!((ledger.balance(), ledger.in_flight), (Ok(()), 0), "{ledger}");
        let lost = |cause| ledger.lost(cause);
        let missing = lost(TxCause::NetworkLoss);
        let known = missing + lost(TxCause::Late);
        assert_eq!((ledger.lost_total(), ledger.unknown.samples), (known, 0), "{ledger}");
        [ledger.accepted, ledger.transmitted, missing, lost(TxCause::Late)]
    }

    /// Returns the events in short: an acknowledgement, an underflow, a late packet, a gap.
    fn told(&self) -> String {
        let short = |event: &TxEvent| match event {
            TxEvent::BurstAck { .. } => Some('A'),
            TxEvent::Underflow { .. } => Some('U'),
            TxEvent::Late { .. } => Some('L'),
            TxEvent::SequenceError => Some('S'),
            TxEvent::Lost { .. } => None,
            other => panic!("{other:?}"),
        };
        self.events.iter().filter_map(short).collect()
    }
}

/// The number of a packet that no recording has.
const WHOLE: u16 = u16::MAX;

#[test]
fn bursts_of_the_logic_are_acknowledged_and_one_that_touches_another_or_a_lost_end_is_late() {
    let host = Host::replay("50-transmit-burst", WHOLE);
    // Seven bursts; two that touch, whose second loses its first packet; one whose end is lost, and
    // the late one behind it; one; one whose message waits behind another.
    assert_eq!(host.told(), "AAAAAAA".to_owned() + "ALA" + "ULL" + "A");
    let transmitted = [400, 400, 300, 3, 2, 200, 200, 200 + 100, 300, 200, 200].iter().sum();
    assert_eq!(host.ledger(), [transmitted + 300, transmitted, 0, 300]);
}

#[test]
fn what_the_logic_transmits_of_bursts_with_packets_missing_repeated_and_exchanged_is_known() {
    let host = Host::replay("51-transmit-order-faults", WHOLE);
    assert_eq!(host.told(), "SA".to_owned() + "SA" + "SSSA" + "SA" + "A" + "U" + "SLLLLL" + "A");
    let transmitted = [400, 500, 500, 400, 300, 400, 500].iter().sum();
    assert_eq!(host.ledger(), [transmitted + 300 + 500, transmitted, 300, 500]);
}

#[test]
fn packets_of_the_logic_behind_an_underflow_are_late_one_by_one() {
    // Up to the other error policy, which this host never sets.
    let host = Host::replay("53-transmit-underrun", 14);
    // The rest of a burst comes late with times, or without.
    assert_eq!(host.told(), "ULLL".to_owned() + "A" + "ULA" + "A");
    let transmitted = 200 + 200 + (200 + 200) + 200;
    assert_eq!(host.ledger(), [transmitted + 400, transmitted, 0, 400]);
}

#[test]
fn a_lone_sample_at_the_end_of_a_burst_of_the_logic_belongs_to_it() {
    // A lone sample as a burst is no evidence: the recording has models of the blocks behind.
    let host = Host::replay("56-transmit-one-sample", 8);
    assert_eq!((host.told(), host.ledger()), ("AAAA".to_owned(), [601, 601, 0, 0]));
}
