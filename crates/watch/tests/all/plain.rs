//! Flows that are not CHDR: drawn counters, and signal data of VITA 49.

use millstream_watch::{CaptureAccount, FlowGap, FlowProtocol};
use millstream_wire::vita49::{Epoch, PrologueRepr, emit_data_header};
use proptest::prelude::*;

use crate::packets::{HOST, RADIO, packet, take};

/// Gives an account datagrams, a microsecond after each other.
fn account(datagrams: impl IntoIterator<Item = Vec<u8>>) -> CaptureAccount {
    let mut account = CaptureAccount::new();
    for (n, bytes) in datagrams.into_iter().enumerate() {
        take(&mut account, n as u64 * 1000, &packet(RADIO, HOST, &bytes));
    }
    account
}

fn gaps(account: &CaptureAccount) -> Vec<FlowGap> {
    account.gaps().copied().collect()
}

/// Returns a packet of a stream of VITA 49 whose samples come each 13.0208 µs.
fn signal(n: u64, samples: usize, is_timed: bool) -> Vec<u8> {
    let picoseconds = n * samples as u64 * 13_020_833;
    let prologue = PrologueRepr {
        stream: 7,
        count: n as u8,
        epoch: Epoch::Utc,
        seconds: 1000 + (picoseconds / 1_000_000_000_000) as u32,
        picoseconds: picoseconds % 1_000_000_000_000,
    };
    let mut bytes = vec![0; 28 + 4 * samples];
    emit_data_header(&prologue, samples, &mut bytes).unwrap();
    if !is_timed {
        // No kinds of time, and no words of it.
        bytes[1] &= 0x0F;
        bytes.drain(16..28);
        let words = (bytes.len() / 4) as u16;
        bytes[2..4].copy_from_slice(&words.to_be_bytes());
    }
    bytes
}

proptest! {
    #[test]
    fn a_counter_at_any_place_is_found_and_each_loss_with_it(
        width in proptest::sample::select(vec![2_usize, 4, 8]),
        is_little in any::<bool>(),
        place in 0..40_usize,
        first in any::<u64>(),
        noise in any::<u64>(),
        losses in proptest::collection::btree_map(400..4000_u64, 1..3000_u64, 0..6),
    ) {
        let (mut n, mut lost, mut found) = (first, 0, Vec::new());
        let mut noise = noise | 1;
        for packet in 0..5000 {
            if let Some(by) = losses.get(&packet) {
                (n, lost) = (n.wrapping_add(*by), lost + by);
            }
            let mut bytes = vec![0xEE; 120];
            // The rest of the datagram changes, and is not CHDR or VITA 49.
            for byte in &mut bytes {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                *byte = noise as u8 | 0x80;
            }
            let number = if is_little { n.to_le_bytes() } else { n.to_be_bytes() };
            let number = if is_little { &number[..width] } else { &number[8 - width..] };
            bytes[place..place + width].copy_from_slice(number);
            n = n.wrapping_add(1);
            found.push(bytes);
        }
        let account = account(found);
        let [flow] = account.flows() else { panic!("{:?}", account.flows().len()) };
        let at = if is_little { place } else { place + width - 2 };
        prop_assert_eq!(flow.protocol(), FlowProtocol::Counter { at, is_little });
        prop_assert_eq!(flow.lost_before(), lost);
        prop_assert_eq!((flow.reordered(), flow.duplicates()), (0, 0));
        prop_assert_eq!(gaps(&account).len(), losses.len());
        prop_assert!(account.is_from_radio(flow));
    }

    #[test]
    fn times_say_how_many_packets_of_vita_49_are_missing(
        samples in 1..400_usize,
        first in 0..1000_u64,
        losses in proptest::collection::btree_map(40..400_u64, 1..200_u64, 0..6),
    ) {
        let (mut n, mut lost) = (first, 0);
        let packets = (0..500).map(|packet| {
            let by = losses.get(&packet).copied().unwrap_or(0);
            (n, lost) = (n + by + 1, lost + by);
            signal(n, samples, true)
        });
        let account = account(packets.collect::<Vec<_>>());
        let [flow] = account.flows() else { panic!("{:?}", account.flows().len()) };
        prop_assert_eq!((flow.protocol(), flow.key().stream), (FlowProtocol::Vita49, 7));
        prop_assert_eq!(flow.lost_before(), lost);
        prop_assert!(gaps(&account).iter().all(|gap| gap.is_sure));
    }
}

#[test]
fn without_times_a_loss_of_vita_49_has_at_least_its_number() {
    // Three are lost, then 16 + 5, then 16, which nothing shows.
    let numbers = (0..60).chain(63..100).chain(121..150).chain(166..200);
    let account = account(numbers.map(|n| signal(n, 100, false)));
    let found: Vec<_> = gaps(&account).iter().map(|gap| (gap.packets, gap.is_sure)).collect();
    assert_eq!(found, [(3, false), (5, false)]);
}

#[test]
fn what_only_looks_like_a_number_is_no_flow() {
    // Eight bits alone do not say how many are missing, and what jumps proves nothing.
    let short = |n: u64| {
        let mut bytes = vec![0xEE; 100];
        bytes[10] = n as u8;
        bytes
    };
    let jumping = |n: u64| {
        let mut bytes = vec![0xEE; 100];
        bytes[10..14].copy_from_slice(&(n as u32 / 3).to_be_bytes());
        bytes
    };
    for account in [account((0..2000).map(short)), account((0..2000).map(jumping))] {
        assert!(account.flows().is_empty());
        assert_eq!(account.counts().foreign, 2000);
    }
}
