//! The thread that receives on the control port.

use std::sync::atomic::Ordering;
use std::time::Duration;

use millstream_link::port::PortRx;
use millstream_wire::chdr;
use millstream_wire::ctrl::{CtrlRepr, Op, Status};
use millstream_wire::regs::radio::async_msg::Event;

use super::client::{Shared, lock};

/// How soon the thread notices that it should end.
const SLICE: Duration = Duration::from_millis(50);

pub(super) fn run(mut rx: Box<dyn PortRx>, shared: &Shared) {
    while !shared.stop.load(Ordering::Acquire) {
        // A port that fails leaves accesses without answers, and they report it.
        let Ok(count) = rx.recv_batch(SLICE) else { return };
        for index in 0..count {
            let datagram = rx.datagram(index);
            if datagram.source != shared.device {
                shared.counters.foreign.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let packet = chdr::Packet::parse(datagram.payload, shared.width);
            match packet.and_then(|packet| CtrlRepr::parse(&packet)) {
                Ok(repr) if repr.dst_epid == shared.epid => take(shared, repr),
                _ => {
                    shared.counters.malformed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

fn take(shared: &Shared, repr: CtrlRepr) {
    if repr.is_ack {
        acknowledge(shared, repr);
    } else {
        message(shared, &repr);
    }
}

/// Hands an acknowledgement to the access that waits for it.
fn acknowledge(shared: &Shared, repr: CtrlRepr) {
    let mut waiting = lock(&shared.waiting);
    let expected = waiting.tries >> repr.ctrl_seq & 1 == 1
        && (waiting.port, waiting.address) == (repr.dst_port, repr.address);
    if expected && waiting.answer.is_none() {
        waiting.answer = Some(repr);
        shared.answered.notify_all();
    } else {
        shared.counters.stray_acks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Notes an asynchronous message and acknowledges it.
fn message(shared: &Shared, repr: &CtrlRepr) {
    let known = (repr.op == Op::Write)
        .then(|| Event::from_message(repr.address, repr.data.first()))
        .flatten();
    let channels = lock(&shared.channels);
    let mut heard = false;
    if let Some((event, channel)) = known {
        for (_, _, events) in
            channels.iter().filter(|(port, of, _)| (*port, *of) == (repr.dst_port, channel))
        {
            events.note(event, repr.timestamp.unwrap_or(0));
            heard = true;
        }
    }
    drop(channels);
    let status = if known.is_some() { Status::Ok } else { Status::CommandError };
    if !heard {
        shared.counters.unknown_messages.fetch_add(1, Ordering::Relaxed);
    }
    // The device repeats or forgets what is not acknowledged; either is harmless.
    let _ = shared.send(repr.ack(0, status, repr.data));
}
