//! Tests of groups of channels on devices that misbehave.

use crate::common::group::{finish_rx, receive_group};
use crate::common::{Action, Meddler, PATIENCE, SPP, device, is_data, meddled, ramp};
use millstream_radio::{Cause, Complex32, Device, RxArgs, RxError, RxEvent, RxStreamer};
use millstream_wire::regs::client_zero::noc_id;
use millstream_wire::regs::radio::{RX_HAS_TIME, channel_register};

fn of(channel: usize) -> RxArgs {
    RxArgs::new(channel).with_samples_per_packet(SPP as u32)
}

fn both(device: &Device) -> RxStreamer {
    device.rx_group(&[of(0), of(1)]).unwrap()
}

/// Sets whether the packets of the radio have a time.
fn with_time(device: &Device, has_time: bool) {
    let radio = device.blocks().blocks.iter().find(|block| block.noc_id == noc_id::RADIO).unwrap();
    for channel in 0..2 {
        let register = channel_register(channel, RX_HAS_TIME);
        device.control().write(radio.port, register, has_time.into()).unwrap();
    }
}

#[test]
fn a_device_without_time_cannot_be_aligned_but_received_from() {
    let meddler =
        Meddler::data(|n, _| if (5..8).contains(&n) { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    with_time(&device, false);
    // Each channel separately: losses are counted by sequence numbers.
    let mut stream = device.rx_stream(of(0)).unwrap();
    stream.start_finite(50 * SPP, None).unwrap();
    let mut buffer = vec![Complex32::default(); 100_000];
    let mut events = Vec::new();
    while stream.is_running() {
        let meta = stream.recv(&mut buffer, PATIENCE).unwrap();
        assert_eq!(meta.time_ticks, None);
        events.extend((meta.event != RxEvent::None).then_some(meta.event));
    }
    assert_eq!(events, [RxEvent::SequenceGap { packets: 3, samples: 3 * SPP }]);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.lost(Cause::NetworkLoss)), (50 * SPP, 3 * SPP));
    assert_eq!(ledger.balance(), Ok(()));

    let mut group = both(&device);
    group.start_finite(10 * SPP, None).unwrap();
    let mut second = buffer.clone();
    let error = group.recv_all(&mut [&mut buffer, &mut second], PATIENCE).unwrap_err();
    assert!(matches!(error, RxError::NoTime { .. }), "{error}");
    assert!(error.to_string().contains("contain no time, so its channels cannot be aligned"));
    // The members may be out of step from here on.
    for _ in 0..2 {
        let error = group.recv_all(&mut [&mut buffer, &mut second], PATIENCE).unwrap_err();
        assert!(error.to_string().contains("one failed: end all, and start again"), "{error}");
    }
    with_time(&device, true);
    group.end();
    group.start_finite(10 * SPP, None).unwrap();
    let brought = receive_group(&mut group, u64::MAX);
    assert_eq!((brought.samples, brought.ended, brought.missing), (10 * SPP, true, 0));
    assert!(finish_rx(group).iter().all(|ledger| ledger.balance() == Ok(())));
}

#[test]
fn a_clock_that_is_set_back_or_ahead_takes_all_channels_along() {
    let (_radio, device) = device(2e6);
    let mut group = both(&device);
    group.start_continuous(None).unwrap();
    receive_group(&mut group, 50_000);
    for (ticks, ahead) in [(1_000_000_000_000, true), (5_000, false)] {
        device.set_time_now(ticks).unwrap();
        let (mut one, mut two) = (vec![Complex32::default(); 999], vec![Complex32::default(); 999]);
        let mut samples = 0;
        // Packets in flight come first.
        while samples < 100_000 {
            let meta = group.recv_all(&mut [&mut one, &mut two], PATIENCE).unwrap();
            let time = meta.time_ticks.expect("packets carry time");
            let is_new = time >= ticks && (ahead || time < ticks + 100_000_000);
            if is_new {
                samples += meta.samples;
            }
            for channel in [&one, &two] {
                for (index, sample) in channel[..meta.samples].iter().enumerate() {
                    assert_eq!(ramp(*sample), (time + index as u64) as u32);
                }
            }
        }
        assert!(group.ledgers().all(|ledger| ledger.balance() == Ok(())));
    }
    group.stop().unwrap();
    assert!(receive_group(&mut group, u64::MAX).ended);
    for ledger in finish_rx(group) {
        assert_eq!((ledger.balance(), ledger.lost(Cause::Malformed)), (Ok(()), 0), "{ledger}");
    }
}

#[test]
fn a_wrong_time_in_one_packet_takes_its_channel_nowhere() {
    for wrong in [1u64 << 44, 1 << 12, 0u64.wrapping_sub(5_000)] {
        let mut count = 0;
        let meddler = Meddler::new(move |packet| {
            if !is_data(packet) {
                return Action::Pass;
            }
            count += 1;
            if count != 101 {
                return Action::Pass;
            }
            let mut packet = packet.to_vec();
            let time = u64::from_le_bytes(packet[8..16].try_into().unwrap());
            packet[8..16].copy_from_slice(&time.wrapping_add(wrong).to_le_bytes());
            Action::Replace(packet)
        });
        let (_radio, device) = meddled(meddler, 2e6);
        let mut group = both(&device);
        group.start_continuous(None).unwrap();
        let brought = receive_group(&mut group, 100_000);
        assert!(brought.samples >= 100_000, "{} behind {wrong}", brought.samples);
        group.stop().unwrap();
        assert!(receive_group(&mut group, u64::MAX).ended);
        for ledger in finish_rx(group) {
            assert_eq!(ledger.balance(), Ok(()));
            // That packet, and what the other channel gives up for it: on a busy machine as much as
            // packets wait for others (10 ms), otherwise a packet.
            assert!(ledger.lost_total() <= 2 * SPP + 20_000, "{ledger}");
        }
    }
}

#[test]
fn damaged_and_empty_packets_cost_what_they_hold() {
    let meddler = Meddler::new({
        let mut count = 0;
        move |packet| {
            if !is_data(packet) {
                return Action::Pass;
            }
            count += 1;
            match count % 31 {
                7 => Action::Replace(packet[..packet.len() / 2].to_vec()),
                // A packet with the same time and number and no samples, before the true one.
                19 => {
                    let mut empty = packet[..16].to_vec();
                    empty[4..6].copy_from_slice(&16u16.to_le_bytes());
                    Action::Before(empty)
                }
                _ => Action::Pass,
            }
        }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut group = both(&device);
    group.start_finite(300 * SPP, None).unwrap();
    let brought = receive_group(&mut group, u64::MAX);
    assert_eq!(brought.samples + brought.missing, 300 * SPP);
    for ledger in finish_rx(group) {
        println!("{ledger}");
        assert_eq!((ledger.expected, ledger.balance()), (300 * SPP, Ok(())));
    }
}
