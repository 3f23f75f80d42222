//! Tests of the filling of packets, in memory in place of a port.

use std::net::SocketAddrV4;

use millstream_link::port::{Capabilities, FrameLoan};
use millstream_wire::chdr::{DataRepr, Packet};
use millstream_wire::stream::{PACKETS_UNLIMITED, StatusRepr, StreamPlace};
use proptest::prelude::*;

use super::*;
use crate::opening::bench::{DEVICE, HOST, OWN, WIDTH, path};
use crate::tx::accounting::Opened;
use crate::tx::window::CreditWindow;

const SPP: usize = 100;
/// The length of a full packet without time.
const FLOW: u64 = 8 + 4 * SPP as u64;
const CAPACITY: u64 = 8192;

/// A header and ten samples, as small as pieces may begin.
const PIECE_BYTES: usize = 56;

/// Keeps what is sent, unless it is full.
#[derive(Default)]
struct Memory {
    loan: FrameLoan,
    sent: Vec<Vec<u8>>,
    refuses: bool,
}

impl PortTx for Memory {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(9000, 64)
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        assert_eq!(to, DEVICE);
        if self.refuses {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        self.sent.push(payload.to_vec());
        Ok(())
    }

    fn send_train(&mut self, train: &[u8], segment: usize, to: SocketAddrV4) -> io::Result<()> {
        train.chunks(segment).try_for_each(|packet| self.send(packet, to))
    }

    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.loan
    }

    /// Lends in pieces, as a link does whose frames are shorter than a packet.
    fn lent(&mut self, at: usize) -> &mut [u8] {
        let room = self.loan.lent(at);
        let piece = (PIECE_BYTES - at % PIECE_BYTES).min(room.len());
        &mut room[..piece]
    }
}

fn core(whole: usize) -> TxCore {
    let window = CreditWindow::new(CAPACITY, PACKETS_UNLIMITED, 24);
    let filling = Filling::new(WIDTH, SPP, whole);
    TxCore::new(
        path(),
        Opened { window, status_seq: u16::MAX, tells_place: true },
        SPP as u64,
        filling,
    )
}

/// Reports that the device has taken all that was sent.
fn take_all(core: &mut TxCore, memory: &Memory) {
    let bytes = memory.sent.iter().map(|packet| round_to_word(packet.len(), WIDTH) as u64).sum();
    let place = StreamPlace { expected: memory.sent.len() as u16, ..StreamPlace::default() };
    let status = StatusRepr {
        error_info: place.to_info(),
        dst_epid: HOST,
        seq: core.counters.reports as u16,
        src_epid: OWN,
        capacity_bytes: CAPACITY,
        capacity_packets: PACKETS_UNLIMITED,
        count_packets: memory.sent.len() as u64,
        count_bytes: bytes,
        ..StatusRepr::default()
    };
    let mut out = vec![0; StatusRepr::packet_len(WIDTH)];
    status.emit(WIDTH, &mut out).unwrap();
    core.accept(&out, DEVICE);
}

/// Sends samples; `ending` ends the burst.
fn send(core: &mut TxCore, memory: &mut Memory, samples: &[[i16; 2]], ending: bool) {
    let mut sent = 0;
    loop {
        sent += core.load(memory, &samples[sent..], 1.0, ending).unwrap();
        let done = sent == samples.len() && (!ending || core.end_burst(memory).unwrap());
        if !core.filling.train.is_empty() {
            core.send_train(memory).unwrap();
        }
        if done {
            return;
        }
        if !core.has_room() {
            take_all(core, memory);
        }
    }
}

fn flush(core: &mut TxCore, memory: &mut Memory) {
    let rest = core.complete_cycles(memory).unwrap();
    if !core.filling.train.is_empty() {
        core.send_train(memory).unwrap();
    }
    core.put_back(memory, rest).unwrap();
}

fn samples(count: usize) -> Vec<[i16; 2]> {
    (0..count).map(|n| [n as i16, 1 + (n >> 16) as i16]).collect()
}

/// Returns the samples of a packet, and what its header says.
fn parse(bytes: &[u8]) -> (Vec<[i16; 2]>, DataRepr) {
    let packet = Packet::parse(bytes, WIDTH).unwrap();
    let number = |at: &[u8]| i16::from_le_bytes([at[0], at[1]]);
    let samples = packet.payload().chunks(SC16_LEN).map(|item| [number(item), number(&item[2..])]);
    (samples.collect(), DataRepr::parse(&packet).unwrap())
}

#[test]
fn packets_follow_each_other_in_number_time_and_samples() {
    let (mut core, mut memory) = (core(1), Memory::default());
    for burst in 0..3u64 {
        core.open_burst(Some(5000 * burst));
        send(&mut core, &mut memory, &samples(1050), true);
    }
    assert_eq!((memory.sent.len(), core.counters.bursts, core.counters.padding), (33, 3, 0));
    for (number, bytes) in memory.sent.iter().enumerate() {
        let (burst, place) = (number / 11, number % 11);
        let (_, repr) = parse(bytes);
        assert_eq!((repr.seq, repr.dst_epid), (number as u16, OWN));
        assert_eq!(repr.timestamp, Some((5000 * burst + SPP * place) as u64));
        assert_eq!(
            (repr.eob, repr.payload_len),
            (place == 10, if place == 10 { 200 } else { 400 })
        );
    }
    take_all(&mut core, &memory);
    assert_eq!(core.account.ledger().accepted, 3150);
    assert_eq!(core.account.ledger().balance(), Ok(()));
}

#[test]
fn nothing_is_taken_without_credit_and_a_begun_packet_keeps_its_own() {
    let (mut core, mut memory) = (core(1), Memory::default());
    core.open_burst(None);
    let room = core.ready_samples();
    let taken = core.load(&mut memory, &samples(20_000), 1.0, false).unwrap();
    core.send_train(&mut memory).unwrap();
    assert_eq!((taken, core.ready_samples()), (room, 0));
    assert_eq!(core.load(&mut memory, &samples(1), 1.0, false).unwrap(), 0);
    assert!(!core.has_room() && !core.end_burst(&mut memory).unwrap());
    take_all(&mut core, &memory);
    send(&mut core, &mut memory, &samples(1), false);
    assert_eq!((core.begun_bytes(), core.filling.train.filled()), (FLOW, 1));
    assert!(core.end_burst(&mut memory).unwrap());
    assert_eq!((core.begun_bytes(), core.filling.burst), (0, Burst::Idle));
}

#[test]
fn whole_cycles_are_flushed_and_the_last_one_is_filled_with_zeros() {
    let (mut core, mut memory) = (core(4), Memory::default());
    core.open_burst(Some(0));
    send(&mut core, &mut memory, &samples(3), false);
    flush(&mut core, &mut memory);
    assert!(memory.sent.is_empty(), "there is no whole cycle");
    send(&mut core, &mut memory, &samples(10), false);
    flush(&mut core, &mut memory);
    send(&mut core, &mut memory, &samples(1), true);
    let parts: Vec<_> = memory.sent.iter().map(|bytes| parse(bytes)).collect();
    let wire: Vec<_> = parts.iter().flat_map(|(samples, _)| samples.clone()).collect();
    assert_eq!(parts.iter().map(|(samples, _)| samples.len()).collect::<Vec<_>>(), [12, 4]);
    let times: Vec<_> = parts.iter().map(|(_, repr)| repr.timestamp).collect();
    assert_eq!(times, [Some(0), Some(12)]);
    assert_eq!(wire[14..], [[0, 0], [0, 0]]);
    assert!(wire[..14].iter().all(|sample| *sample != [0, 0]));
    assert_eq!((core.counters.padding, core.account.ledger().accepted), (2, 14));
    // A gap comes behind a whole cycle.
    core.open_burst(Some(100));
    send(&mut core, &mut memory, &samples(5), false);
    assert!(core.continues(None) && core.continues(Some(105)) && !core.continues(Some(104)));
    core.complete_part(&mut memory).unwrap();
    core.send_train(&mut memory).unwrap();
    assert_eq!((parse(&memory.sent[2]).0.len(), core.counters.padding), (8, 5));
}

#[test]
fn a_port_that_refuses_leaves_a_ledger_that_balances() {
    let (mut core, mut memory) = (core(1), Memory::default());
    core.open_burst(None);
    send(&mut core, &mut memory, &samples(250), false);
    memory.refuses = true;
    core.load(&mut memory, &samples(250), 1.0, false).unwrap();
    assert!(core.send_train(&mut memory).is_err());
    memory.refuses = false;
    send(&mut core, &mut memory, &samples(100), true);
    take_all(&mut core, &memory);
    assert_eq!(core.account.ledger().balance(), Ok(()));
    assert_eq!(core.account.ledger().accepted, 600);
}

proptest! {
    /// The division into calls, the credit between them and flushes change no sample, and every
    /// packet but the last has whole cycles of the caller's samples.
    #[test]
    fn the_cut_into_calls_changes_no_sample(
        whole in prop::sample::select(vec![1usize, 2, 4, 20]),
        calls in prop::collection::vec((0usize..350, any::<bool>()), 1..30),
    ) {
        let (mut core, mut memory) = (core(whole), Memory::default());
        let all = samples(calls.iter().map(|(count, _)| count).sum());
        core.open_burst(Some(7000));
        let mut rest = &all[..];
        for (index, (count, flushes)) in calls.iter().enumerate() {
            let (now, later) = rest.split_at(*count);
            send(&mut core, &mut memory, now, index + 1 == calls.len());
            if *flushes {
                flush(&mut core, &mut memory);
            }
            rest = later;
        }
        let mut wire = Vec::new();
        for (number, bytes) in memory.sent.iter().enumerate() {
            let (samples, repr) = parse(bytes);
            prop_assert_eq!(samples.len() % whole, 0);
            prop_assert_eq!(repr.timestamp, Some(7000 + wire.len() as u64));
            prop_assert_eq!(repr.eob, number + 1 == memory.sent.len());
            wire.extend(samples);
        }
        let (sent, zeros) = wire.split_at(all.len());
        prop_assert!(zeros.iter().all(|sample| *sample == [0, 0]) && zeros.len() <= whole);
        prop_assert_eq!(zeros.len() as u64, core.counters.padding);
        prop_assert!(sent == all);
        take_all(&mut core, &memory);
        prop_assert_eq!(core.account.ledger().accepted, all.len() as u64);
        prop_assert_eq!(core.account.ledger().balance(), Ok(()));
    }
}
