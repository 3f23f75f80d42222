//! Sets up a device-to-host stream.

use std::net::SocketAddrV4;
use std::time::Duration;

use millstream_link::port::Port;
use millstream_wire::mgmt::Op;
use millstream_wire::regs::sep::{
    ItemSize, OSTRM_CTRL_STATUS, OSTRM_DST_EPID, OSTRM_FC_FREQ_BYTES_HI, OSTRM_FC_FREQ_BYTES_LO,
    OSTRM_FC_FREQ_PKTS, OSTRM_FC_HEADROOM, STATUS_FC_ENABLED, STATUS_SETUP_ERROR, StreamCtrl,
};
use millstream_wire::stream::{CommandOp, PACKETS_UNLIMITED, StatusRepr};
use millstream_wire::{Epid, Width};

use super::credit::Credit;
use super::rate::StreamRate;
use crate::error::io_error;
use crate::topology::{Endpoint, Management, advertise, route_to};
use crate::{Clock, RadioError};

/// The time limit for the device to open the stream.
const INIT_TIMEOUT: Duration = Duration::from_millis(100);

/// The number of polls, 1 ms apart, of the endpoint's readiness.
const STATUS_POLLS: u32 = 200;

/// The number of polls after which the host's answer is sent again, because it may be lost.
const ANSWER_AGAIN: u32 = 10;

/// The attempts of the handshake: one fails when the device's packet of it is lost.
const TRIES: u32 = 8;

/// The source and destination of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamPath {
    /// The device's CHDR address.
    pub device: SocketAddrV4,
    /// Its CHDR width.
    pub width: Width,
    /// The largest packet on the path, bytes.
    pub frame_bytes: usize,
    /// The crossbar port towards this host.
    pub entry_port: u16,
    /// The device's endpoint that sends the samples.
    pub endpoint: Endpoint,
    /// The endpoint of this stream's port.
    pub epid: Epid,
    /// The rates of its samples and of the radio's time.
    pub rate: StreamRate,
    /// The clock of the stream.
    pub clock: Clock,
}

/// Routes the stream to `port` and opens it. Afterwards both sides count from zero. Returns the
/// number of samples that came meanwhile and were skipped.
pub(crate) fn open(
    port: &mut Port,
    path: &StreamPath,
    credit: &mut Credit,
) -> Result<u64, RadioError> {
    let mut management = Management::new(port, path.device, path.width, path.epid).on(path.clock);
    let mut samples = 0;
    advertise(&mut management, path.entry_port)?;
    route_to(&mut management, &path.endpoint)?;
    for _ in 0..TRIES {
        if attempt(&mut management, path, credit, &mut samples)? {
            return Ok(samples);
        }
    }
    let wait_ms = INIT_TIMEOUT.as_millis() as u64;
    let what = "the opening of a stream";
    Err(RadioError::Silent { address: path.device, what, attempts: TRIES, wait_ms })
}

/// Runs one handshake; returns false when a packet of it must have been lost.
fn attempt(
    management: &mut Management<'_>,
    path: &StreamPath,
    credit: &mut Credit,
    samples: &mut u64,
) -> Result<bool, RadioError> {
    credit.reset();
    configure(management, path, credit.period_bytes())?;
    let until = path.clock.now() + INIT_TIMEOUT;
    let init = management.stream_command(until)?;
    if init.is_none_or(|command| command.op != CommandOp::Init) {
        return Ok(false);
    }
    *samples += management.take_passed_over().samples;
    for poll in 0..STATUS_POLLS {
        if poll.is_multiple_of(ANSWER_AGAIN) {
            answer(management, path, credit)?;
        }
        let status = status(management, &path.endpoint)?;
        if status & STATUS_SETUP_ERROR != 0 {
            return Err(management.unusable("its endpoint reports an error in the stream set-up"));
        }
        if status & STATUS_FC_ENABLED != 0 {
            // Packets in the device's buffer may have come meanwhile. They are lost, but must not
            // take the window with them: they may fill it.
            let passed_over = management.take_passed_over();
            credit.release_many(passed_over.packets, passed_over.flow_bytes);
            *samples += passed_over.samples;
            return Ok(true);
        }
        path.clock.sleep(Duration::from_millis(1));
    }
    Ok(false)
}

/// Sends the credit window; nothing has been consumed.
fn answer(
    management: &mut Management<'_>,
    path: &StreamPath,
    credit: &mut Credit,
) -> Result<(), RadioError> {
    let mut bytes = [0; StatusRepr::packet_len(Width::W512)];
    let report = credit.report(path.endpoint.epid, path.epid);
    let length = report.emit(path.width, &mut bytes).expect("the buffer is that long");
    management.send_raw(&bytes[..length]).map_err(io_error("send to", path.device))
}

fn configure(
    management: &mut Management<'_>,
    path: &StreamPath,
    period_bytes: u64,
) -> Result<(), RadioError> {
    let control =
        StreamCtrl { start: true, lossy: true, payload: ItemSize::Bits16, ..StreamCtrl::default() };
    let write = |address, value| Op::CfgWrite { address, value };
    let writes = [
        write(OSTRM_DST_EPID, path.epid.0.into()),
        write(OSTRM_FC_FREQ_BYTES_LO, period_bytes as u32),
        write(OSTRM_FC_FREQ_BYTES_HI, (period_bytes >> 32) as u32),
        write(OSTRM_FC_FREQ_PKTS, PACKETS_UNLIMITED),
        write(OSTRM_FC_HEADROOM, 0),
        write(OSTRM_CTRL_STATUS, control.to_word()),
        Op::Return,
    ];
    let select = [Op::SelDest(path.endpoint.port)];
    let hops: [&[Op]; 3] = [&[Op::Nop], &select, &writes];
    management.transact("the configuration of a stream", &hops).map(drop)
}

fn status(management: &mut Management<'_>, endpoint: &Endpoint) -> Result<u32, RadioError> {
    let select = [Op::SelDest(endpoint.port)];
    let read = [Op::CfgRead { address: OSTRM_CTRL_STATUS }, Op::Return];
    let hops: [&[Op]; 3] = [&[Op::Nop], &select, &read];
    let answers = management.transact("the state of a stream", &hops)?;
    let value = answers.iter().find_map(|op| match op {
        Op::CfgReadResp { address: OSTRM_CTRL_STATUS, value } => Some(*value),
        _ => None,
    });
    Ok(value.unwrap_or(0))
}
