//! Receiving from a group, with every sample of every channel checked.

use millstream_radio::{Complex32, Ledger, RxEvent, RxStreamer, TxLedger, TxStreamer};

use super::{PATIENCE, ramp};

/// The results of a group.
#[derive(Debug, Default)]
pub struct GroupBrought {
    /// Samples of each channel.
    pub samples: u64,
    pub first_ticks: Option<u64>,
    pub events: Vec<RxEvent>,
    /// The channel in each event.
    pub channels: Vec<usize>,
    pub missing: u64,
    pub ended: bool,
}

/// Receives until the burst ends or `most` samples have come, with buffers of odd sizes, and checks
/// that each sample of each channel is that of its time.
pub fn receive_group(group: &mut RxStreamer, most: u64) -> GroupBrought {
    let mut buffers = vec![vec![Complex32::default(); 5003]; group.members().len()];
    let mut brought = GroupBrought::default();
    let mut due = None;
    for turn in 0.. {
        let size = [5003, 1, 1999, 2000, 2001, 17, 4096][turn % 7];
        let mut outs: Vec<_> = buffers.iter_mut().map(|buffer| &mut buffer[..size]).collect();
        let meta = group.recv_all(&mut outs, PATIENCE).expect("the devices live");
        if meta.event != RxEvent::None {
            assert_eq!(meta.samples, 0);
            assert_ne!(meta.event, RxEvent::Timeout, "{brought:?}, {group:?}");
            if meta.event != RxEvent::LateCommand {
                brought.missing += meta.event.missing();
                due = due.map(|due: u64| match meta.event {
                    RxEvent::ClockJump { ticks, .. } => due.wrapping_add(ticks as u64),
                    event => due + event.missing(),
                });
                assert!(meta.time_ticks.is_none() || due.is_none() || meta.time_ticks == due);
            }
            brought.events.push(meta.event);
            brought.channels.push(meta.channel);
        }
        if meta.samples > 0 {
            let ticks = meta.time_ticks.expect("the device sends time");
            assert_eq!(ticks, due.unwrap_or(ticks), "time is contiguous");
            brought.first_ticks.get_or_insert(ticks);
            for (channel, buffer) in buffers.iter().enumerate() {
                for (index, sample) in buffer[..meta.samples].iter().enumerate() {
                    let want = (ticks + index as u64) as u32;
                    assert_eq!(ramp(*sample), want, "channel {channel}, sample {index}");
                }
            }
            due = Some(ticks + meta.samples as u64);
            brought.samples += meta.samples as u64;
        }
        if meta.end_of_burst || brought.samples >= most {
            brought.ended = meta.end_of_burst;
            break;
        }
    }
    for ledger in group.ledgers() {
        ledger.balance().expect("the ledger balances at any time");
    }
    brought
}

/// Ends a stream and returns the ledger of each channel.
pub fn finish_rx(mut stream: RxStreamer) -> Vec<Ledger> {
    stream.end();
    stream.ledgers().cloned().collect()
}

/// Ends a stream and returns the ledger of each channel.
pub fn finish_tx(mut stream: TxStreamer) -> Vec<TxLedger> {
    stream.end(None);
    stream.ledgers().cloned().collect()
}
