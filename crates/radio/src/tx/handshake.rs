//! Sets up a host-to-device stream.

use std::time::Duration;

use millstream_link::port::Port;
use millstream_wire::chdr::{Packet, round_to_word};
use millstream_wire::mgmt::Op;
use millstream_wire::regs::sep::{ISTRM_CTRL_STATUS, ItemSize, StreamCtrl};
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};
use millstream_wire::{Epid, Width};

use super::accounting::Opened;
use super::command_counts::measure;
use super::window::CreditWindow;
use crate::RadioError;
use crate::error::io_error;
use crate::stream::StreamPath;
use crate::topology::{Management, advertise, route_to};

/// The time limit for the device's answer to an INIT.
const INIT_TIMEOUT: Duration = Duration::from_millis(200);

/// The INITs of each kind before giving up: each fails when one packet of it is lost.
const TRIES: u32 = 8;

/// The most batches taken off the port before an INIT: other programs may send to it without end.
const STRAY_BATCHES_MAX: u32 = 16;

/// Routes the stream to `port` and opens it with the device's advertised window. Afterwards both
/// sides count from zero.
pub(super) fn open(port: &mut Port, path: &StreamPath) -> Result<Opened, RadioError> {
    let mut management = Management::new(port, path.device, path.width, path.epid).on(path.clock);
    advertise(&mut management, path.entry_port)?;
    route_to(&mut management, &path.endpoint)?;
    let format = StreamCtrl { payload: ItemSize::Bits16, ..StreamCtrl::default() };
    let write = Op::CfgWrite { address: ISTRM_CTRL_STATUS, value: format.to_word() };
    let select = [Op::SelDest(path.endpoint.port)];
    let hops: [&[Op]; 3] = [&[Op::Nop], &select, &[write, Op::Return]];
    management.transact("the format of a stream", &hops)?;

    let status = init(port, path, 0, 0, 0)?;
    let period = window(&status, path.width).period();
    let counts = measure(port, path)?;
    let status = init(port, path, 1, period.packets, period.bytes)?;
    // A device may grant more bytes to a host whose limit of packets it has received.
    let window = window(&status, path.width).counting(counts);
    Ok(Opened { window, status_seq: status.seq })
}

/// Returns the length of a stream command in flow control, bytes.
pub(super) fn command_bytes(width: Width) -> u64 {
    round_to_word(CommandRepr::packet_len(width), width) as u64
}

fn window(status: &StatusRepr, width: Width) -> CreditWindow {
    CreditWindow::new(status.capacity_bytes, status.capacity_packets, command_bytes(width))
}

/// Requests a count from zero and reports with this period. Returns the answer.
fn init(
    port: &mut Port,
    path: &StreamPath,
    seq: u16,
    packets: u64,
    bytes: u64,
) -> Result<StatusRepr, RadioError> {
    for _ in 0..TRIES {
        pass_over_strays(port, path)?;
        send_command(port, path, seq, CommandOp::Init, packets, bytes)?;
        // Other counts are late answers to commands before it.
        let zero = |status: StatusRepr| (status.count_packets == 0).then_some(status);
        if let Some(status) = hear(port, path, zero)? {
            return Ok(status);
        }
    }
    let (what, wait_ms) = ("the opening of a stream", INIT_TIMEOUT.as_millis() as u64);
    Err(RadioError::Silent { address: path.device, what, attempts: TRIES, wait_ms })
}

/// Drops earlier answers, because the answer to an earlier INIT must not be taken for that to the
/// next one.
pub(super) fn pass_over_strays(port: &mut Port, path: &StreamPath) -> Result<(), RadioError> {
    for _ in 0..STRAY_BATCHES_MAX {
        let received = port.rx.recv_batch(Duration::ZERO);
        if received.map_err(io_error("receive from", path.device))? == 0 {
            break;
        }
    }
    Ok(())
}

/// Sends one stream command.
pub(super) fn send_command(
    port: &mut Port,
    path: &StreamPath,
    seq: u16,
    op: CommandOp,
    packets: u64,
    bytes: u64,
) -> Result<(), RadioError> {
    let mut buffer = [0; CommandRepr::packet_len(Width::W512)];
    let (dst_epid, src_epid) = (path.endpoint.epid, path.epid);
    let command = CommandRepr { dst_epid, seq, src_epid, op, op_data: 0, packets, bytes };
    let length = command.emit(path.width, &mut buffer).expect("the buffer is that long");
    port.tx.send(&buffer[..length], path.device).map_err(io_error("send to", path.device))
}

/// Returns what `take` makes of the first status that it wants, within [`INIT_TIMEOUT`].
pub(super) fn hear<T>(
    port: &mut Port,
    path: &StreamPath,
    mut take: impl FnMut(StatusRepr) -> Option<T>,
) -> Result<Option<T>, RadioError> {
    let until = path.clock.now() + INIT_TIMEOUT;
    loop {
        let left = path.clock.left(until);
        let received = port.rx.recv_batch(left);
        let count = received.map_err(io_error("receive from", path.device))?;
        for index in 0..count {
            let datagram = port.rx.datagram(index);
            if datagram.source == path.device
                && let Some(status) = status(datagram.payload, path.width, path.epid)
                && let Some(taken) = take(status)
            {
                return Ok(Some(taken));
            }
        }
        if count == 0 || path.clock.now() >= until {
            return Ok(None);
        }
    }
}

fn status(payload: &[u8], width: Width, epid: Epid) -> Option<StatusRepr> {
    let packet = Packet::parse(payload, width).ok()?;
    let status = StatusRepr::parse(&packet).ok()?;
    (status.dst_epid == epid).then_some(status)
}
