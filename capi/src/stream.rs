//! Streams.

use std::ffi::{c_char, c_void};

use millstream_client::{
    ClientError, GapPolicy, Received, RxOptions, RxStream, StatusKind, StreamDirection, StreamGap,
    StreamSample, StreamStart, StreamStatus, TxOptions,
};
use num_complex::Complex32;

use crate::guard::{Failure, GAP, LATE, bad, guarded, note};
use crate::pointers::{Buffers, CTime, check, duration, put, text, time as time_at};
use crate::settings::direction;
use crate::things::{SampleForm, Thing};

/// What a read returns beside its count: `millstream_received`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CReceived {
    /// Of the first sample, or of the first one behind a gap.
    pub time: CTime,
    /// The missing samples of each channel.
    pub missing: u64,
    /// The cause of a gap, which ends with 0.
    pub cause: [u8; 28],
    /// 1 at the end that was asked for.
    pub end: i32,
}

/// An event of a stream: `millstream_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CEvent {
    /// Its time.
    pub time: CTime,
    /// The samples that it is about.
    pub samples: u64,
    /// Its kind.
    pub kind: i32,
    /// The position of the channel.
    pub channel: u32,
}

/// Opens a stream of `count` channels and stores its number.
///
/// # Safety
/// `channels` has `count` numbers; `options` is null or a text; `stream` is null or a place for the
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_stream(
    radio: u64,
    dir: i32,
    form: i32,
    channels: *const u32,
    count: u32,
    options: *const c_char,
    stream: *mut u64,
) -> i32 {
    guarded(|| {
        let thing = Thing::of(radio)?;
        let (radio, dir) = (thing.radio()?, direction(dir)?);
        let form = match form {
            0 => SampleForm::Sc16,
            1 => SampleForm::Fc32,
            other => {
                let known = "MILLSTREAM_SC16 or MILLSTREAM_FC32";
                return bad(format!("{other} is no form of samples: give {known}"));
            }
        };
        if count == 0 {
            return bad("a stream of 0 channels was asked for: give at least one");
        }
        check(channels, "channels")?;
        // SAFETY: as the caller says; it is not null, and aligned.
        let channels = unsafe { std::slice::from_raw_parts(channels, count as usize) };
        let channels: Vec<usize> = channels.iter().map(|channel| *channel as usize).collect();
        // SAFETY: as the caller says.
        let options = if options.is_null() { "" } else { unsafe { text(options, "options") }? };
        let (rx, tx) = stream_options(options)?;
        let open = || {
            Ok(match dir {
                StreamDirection::Rx => Thing::Rx(radio.rx_stream(&channels, rx)?, form),
                StreamDirection::Tx => Thing::Tx(radio.tx_stream(&channels, tx)?, form),
            }
            .insert())
        };
        // SAFETY: as the caller says.
        unsafe { put(stream, "stream", open) }
    })
}

/// Reads the options of a stream.
fn stream_options(text: &str) -> Result<(RxOptions, TxOptions), Failure> {
    // A gap is a result of a read, with its own code.
    let mut rx = RxOptions::default().with_gaps(GapPolicy::Report);
    let mut tx = TxOptions::default();
    for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let number = |value: &str| match value.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => bad(format!("the option {option} cannot be used: give a number above 0")),
        };
        match option.split_once('=') {
            Some(("packet", value)) => {
                rx = rx.with_samples_per_packet(number(value)?);
                tx = tx.with_samples_per_packet(number(value)?);
            }
            Some(("queue", value)) => rx = rx.with_recv_queue_bytes(number(value)? as usize),
            Some(("gaps", value)) => match GapPolicy::named(value) {
                Some(policy) => rx = rx.with_gaps(policy),
                None => {
                    let names = GapPolicy::NAMES.join(", ");
                    return bad(format!("the option {option} cannot be used: give one of {names}"));
                }
            },
            _ => {
                return bad(format!(
                    "the option {option} is not known: give packet=SAMPLES, queue=BYTES or \
                     gaps=event"
                ));
            }
        }
    }
    Ok((rx, tx))
}

/// Starts a stream, at a time or at once; 0 samples are no end.
///
/// # Safety
/// `time` is null, or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_start(stream: u64, time: *const CTime, samples: u64) -> i32 {
    guarded(|| {
        let thing = Thing::of(stream)?;
        // SAFETY: as the caller says.
        let time = unsafe { time_at(time) }?;
        let start = StreamStart { time, samples: (samples > 0).then_some(samples) };
        match &*thing {
            Thing::Rx(stream, _) => stream.start(start)?,
            Thing::Tx(stream, _) => stream.start(start)?,
            Thing::Radio(_) => return no_stream(&thing, "a stream"),
        }
        Ok(0)
    })
}

/// Stops a stream.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_stop(stream: u64) -> i32 {
    guarded(|| {
        let thing = Thing::of(stream)?;
        match &*thing {
            Thing::Rx(stream, _) => stream.stop()?,
            Thing::Tx(stream, _) => stream.stop()?,
            Thing::Radio(_) => return no_stream(&thing, "a stream"),
        }
        Ok(0)
    })
}

fn no_stream<R>(thing: &Thing, needed: &str) -> Result<R, Failure> {
    bad(format!("{needed} is needed here: this is {}", thing.name()))
}

/// Receives into the buffers. Returns the number of samples, or a code.
///
/// # Safety
/// `buffers` is null, or has a buffer for each channel with room for the samples, which nobody else
/// uses; `received` is null, or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_read(
    stream: u64,
    buffers: *const *mut c_void,
    samples: usize,
    timeout_ns: i64,
    received: *mut CReceived,
) -> i64 {
    guarded(|| {
        let thing = Thing::of(stream)?;
        let Thing::Rx(stream, form) = &*thing else {
            return no_stream(&thing, "a receive stream");
        };
        let mut code = 0;
        let fetch = || {
            // SAFETY: as the caller says.
            let got = unsafe {
                match form {
                    SampleForm::Sc16 => read::<[i16; 2]>(stream, buffers, samples, timeout_ns),
                    SampleForm::Fc32 => read::<Complex32>(stream, buffers, samples, timeout_ns),
                }
            };
            let result;
            (code, result) = answer(got)?;
            Ok(result)
        };
        // SAFETY: as the caller says.
        unsafe { put(received, "received", fetch) }?;
        Ok(code)
    })
}

/// Reads into buffers of C.
///
/// # Safety
/// As for [`millstream_read`].
unsafe fn read<T: StreamSample>(
    stream: &RxStream,
    buffers: *const *mut c_void,
    samples: usize,
    timeout_ns: i64,
) -> Result<Received, Failure> {
    // SAFETY: as the caller says.
    unsafe {
        let buffers = Buffers::<T>::new(buffers, stream.channels().len(), samples)?;
        Ok(buffers.write(|outs| stream.read(outs, duration(timeout_ns)))?)
    }
}

/// Returns the code of a read and what belongs to it.
fn answer(got: Result<Received, Failure>) -> Result<(i64, CReceived), Failure> {
    let mut result = CReceived::default();
    let got = match got {
        Err(Failure::Client(error @ ClientError::LateStart { time })) => {
            note(error.to_string());
            (result.time, result.end) = (Some(time).into(), 1);
            return Ok((LATE.into(), result));
        }
        other => other?,
    };
    (result.time, result.end) = (got.time.into(), got.end_of_burst.into());
    let Some(gap) = got.gap else { return Ok((got.samples as i64, result)) };
    note(gap.to_string());
    let StreamGap { samples, cause, resume, .. } = gap;
    (result.time, result.missing) = (Some(resume).into(), samples);
    // The last byte stays 0.
    let room = result.cause.len() - 1;
    for (to, from) in result.cause[..room].iter_mut().zip(cause.bytes()) {
        *to = from;
    }
    Ok((GAP.into(), result))
}

/// Transmits the samples of the buffers. Returns the number that was taken, or a code.
///
/// # Safety
/// `buffers` is null, or has a buffer for each channel with the samples; `time` is null, or can be
/// read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_write(
    stream: u64,
    buffers: *const *const c_void,
    samples: usize,
    time: *const CTime,
    end_of_burst: i32,
    timeout_ns: i64,
) -> i64 {
    guarded(|| {
        let thing = Thing::of(stream)?;
        let Thing::Tx(stream, form) = &*thing else {
            return no_stream(&thing, "a transmit stream");
        };
        // SAFETY: as the caller says.
        let time = unsafe { time_at(time) }?;
        let (channels, buffers) = (stream.channels().len(), buffers.cast());
        let (ends, timeout) = (end_of_burst != 0, duration(timeout_ns));
        // SAFETY: as the caller says. What is only read is lent for that.
        let done = unsafe {
            match form {
                SampleForm::Sc16 => Buffers::<[i16; 2]>::new(buffers, channels, samples)?
                    .read(|ins| stream.write(ins, time, ends, timeout)),
                SampleForm::Fc32 => Buffers::<Complex32>::new(buffers, channels, samples)?
                    .read(|ins| stream.write(ins, time, ends, timeout)),
            }
        }?;
        Ok(done.samples as i64)
    })
}

/// Takes the oldest event of a stream. Returns 1 with an event, else 0.
///
/// # Safety
/// `event` is null, or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_next_event(
    stream: u64,
    timeout_ns: i64,
    event: *mut CEvent,
) -> i32 {
    guarded(|| {
        let thing = Thing::of(stream)?;
        let mut taken = 0;
        let take = || {
            let status = match &*thing {
                Thing::Rx(stream, _) => stream.take_status(duration(timeout_ns)),
                Thing::Tx(stream, _) => stream.take_status(duration(timeout_ns)),
                Thing::Radio(_) => return no_stream(&thing, "a stream"),
            };
            taken = i32::from(status.is_some());
            Ok(status.map_or(CEvent::default(), details))
        };
        // SAFETY: as the caller says.
        unsafe { put(event, "event", take) }?;
        Ok(taken)
    })
}

fn details(status: StreamStatus) -> CEvent {
    let (kind, samples) = match status.kind {
        StatusKind::Gap(gap) => (1, gap.samples),
        StatusKind::LateStart | StatusKind::Late => (2, 0),
        StatusKind::Underflow => (3, 0),
        StatusKind::BurstEnd => (4, 0),
        StatusKind::Sequence => (5, 0),
        StatusKind::Lost { samples } => (6, samples),
        StatusKind::Reestablished { samples } => (7, samples),
        // A kind that the header does not name yet.
        _ => (0, 0),
    };
    let channel = u32::try_from(status.channel).unwrap_or(u32::MAX);
    CEvent { time: status.time.into(), samples, kind, channel }
}
