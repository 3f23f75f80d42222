//! Streams as functions of C.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

use millstream_client::{
    ClientError, DeviceTime, GapPolicy, HandleTable, Received, RxOptions, RxStream, StatusKind,
    StreamDirection, StreamStart, StreamStatus, TxOptions, TxStream,
};

use crate::direct::DirectBuffers;
use crate::guard::{
    CORRUPTION, Failure, OVERFLOW, STREAM_ERROR, TIME_ERROR, TIMEOUT, UNDERFLOW, guarded,
};
use crate::radio::{direction, radio};
use crate::samples::{ReadRequest, SoapyFormat, WriteRequest, for_format, read, write};
use crate::text::{TextSink, Texts, pairs, text};

/// Flags of SoapySDR (`SoapySDR/Constants.h`).
pub(crate) const END_BURST: i32 = 1 << 1;
const HAS_TIME: i32 = 1 << 2;
const END_ABRUPT: i32 = 1 << 3;
const ONE_PACKET: i32 = 1 << 4;

static STREAMS: HandleTable<SoapyStream> = HandleTable::new();

/// An open stream.
#[derive(Debug)]
pub(crate) struct SoapyStream {
    pub format: SoapyFormat,
    end: StreamEnd,
    pub direct: DirectBuffers,
    /// The failure of a buffer that was released, which the next one reports; 0 for none.
    pub release_failure: AtomicI32,
}

#[derive(Debug)]
enum StreamEnd {
    Rx(RxStream),
    Tx(TxStream),
}

impl SoapyStream {
    pub fn of(handle: u64) -> Result<Arc<Self>, Failure> {
        STREAMS.get(handle).ok_or(Failure::NoHandle)
    }

    pub fn reader(&self) -> Result<&RxStream, Failure> {
        match &self.end {
            StreamEnd::Rx(reader) => Ok(reader),
            StreamEnd::Tx(_) => Err(Failure::Argument("a transmit stream cannot be read".into())),
        }
    }

    pub fn writer(&self) -> Result<&TxStream, Failure> {
        match &self.end {
            StreamEnd::Tx(writer) => Ok(writer),
            StreamEnd::Rx(_) => Err(Failure::Argument("a receive stream cannot be written".into())),
        }
    }

    fn close(&self) -> bool {
        match &self.end {
            StreamEnd::Rx(reader) => reader.close(Duration::MAX),
            StreamEnd::Tx(writer) => writer.close(Duration::MAX),
        }
    }

    pub fn mtu(&self) -> usize {
        match &self.end {
            StreamEnd::Rx(reader) => reader.samples_per_read(),
            StreamEnd::Tx(writer) => writer.samples_per_write(),
        }
    }
}

/// What a read or write returns beside its result.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct MsRead {
    /// The time of the first sample or of the event, nanoseconds.
    pub time_ns: i64,
    /// Flags of SoapySDR.
    pub flags: i32,
}

/// An event of a stream.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct MsStatus {
    /// The time of the event, nanoseconds.
    pub time_ns: i64,
    /// Flags of SoapySDR.
    pub flags: i32,
    /// The position of the channel.
    pub channel: u32,
}

/// Opens a stream of `count` channels and stores its number. Arguments that nobody knows go to
/// `sink`.
///
/// # Safety
/// `channels` has `count` numbers, `format` is a text, `keys` has `key_count` keys, each followed
/// by its value; `handle` can be written; `sink` takes `out` and a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_stream_open(
    radio_handle: u64,
    dir: i32,
    channels: *const usize,
    count: usize,
    format: *const c_char,
    keys: *const *const c_char,
    key_count: usize,
    handle: *mut u64,
    out: *mut c_void,
    sink: TextSink,
) -> i32 {
    guarded(|| {
        let radio = radio(radio_handle)?;
        // SAFETY: as the caller says; a list without numbers may be null.
        let channels = unsafe {
            match count {
                0 => &[0][..],
                count => std::slice::from_raw_parts(channels, count),
            }
        };
        // SAFETY: as the caller says.
        let (format, keys, out) =
            unsafe { (text(format)?, pairs(keys, key_count)?, Texts::new(out, sink)) };
        let format = SoapyFormat::named(format)?;
        let (rx, tx) = options(&keys, &out)?;
        let end = match direction(dir)? {
            StreamDirection::Rx => StreamEnd::Rx(radio.rx_stream(channels, rx)?),
            StreamDirection::Tx => StreamEnd::Tx(radio.tx_stream(channels, tx)?),
        };
        let (direct, release_failure) = (DirectBuffers::default(), AtomicI32::new(0));
        let stream = SoapyStream { format, end, direct, release_failure };
        // SAFETY: as the caller says.
        unsafe { *handle = STREAMS.insert(stream) };
        Ok(0)
    })
}

/// Reads the arguments of a stream.
fn options(keys: &[(&str, &str)], out: &Texts) -> Result<(RxOptions, TxOptions), Failure> {
    // A gap is a result of a read: SoapySDR has a code for it.
    let mut rx = RxOptions::default().with_gaps(GapPolicy::Report);
    let mut tx = TxOptions::default();
    for (key, value) in keys {
        // Clients with a form pass every argument on, with 0 or nothing for its default.
        let number = || match *value {
            "" => Ok(None),
            value => match value.parse::<u32>() {
                Ok(number) => Ok(Some(number).filter(|number| *number > 0)),
                Err(_) => Err(Failure::Argument(format!(
                    "the stream argument {key}={value} cannot be used: give a number, or 0 for the \
                     default"
                ))),
            },
        };
        match *key {
            "gaps" if value.is_empty() => {}
            "gaps" => {
                let names = GapPolicy::NAMES.join(", ");
                let text = format!("the stream argument gaps={value} is not one of {names}");
                let policy = GapPolicy::named(value).ok_or(Failure::Argument(text))?;
                rx = rx.with_gaps(policy);
            }
            "spp" => (rx.samples_per_packet, tx.samples_per_packet) = (number()?, number()?),
            "mtu" => {
                let samples = number()?.map(|samples| samples as usize);
                (rx.samples_per_read, tx.samples_per_write) = (samples, samples);
            }
            "recv_queue_bytes" => rx.recv_queue_bytes = number()?.map(|bytes| bytes as usize),
            // SoapyUHD names the format of packets, and another one than ours has no effect.
            "WIRE" if ["", "sc16"].contains(value) => {}
            // SoapyRemote passes its own arguments on.
            other if other.starts_with("remote:") => {}
            other => out.put(other),
        }
    }
    Ok((rx, tx))
}

/// Closes a stream: a thread that uses it gets an error.
#[unsafe(no_mangle)]
pub extern "C" fn ms_stream_close(handle: u64) -> i32 {
    guarded(|| {
        STREAMS.remove(handle).ok_or(Failure::NoHandle)?.close();
        Ok(0)
    })
}

/// Returns a good number of samples for one call.
#[unsafe(no_mangle)]
pub extern "C" fn ms_stream_mtu(handle: u64) -> i32 {
    guarded(|| Ok(SoapyStream::of(handle)?.mtu() as i32))
}

/// Starts a stream, at a time if `has_time`, for `samples` samples or, with 0, without end.
#[unsafe(no_mangle)]
pub extern "C" fn ms_stream_start(
    handle: u64,
    has_time: bool,
    time_ns: i64,
    samples: usize,
) -> i32 {
    guarded(|| {
        let stream = SoapyStream::of(handle)?;
        let start = StreamStart {
            time: has_time.then(|| DeviceTime::from_ns(time_ns)),
            samples: (samples > 0).then_some(samples as u64),
        };
        match &stream.end {
            StreamEnd::Rx(reader) => reader.start(start)?,
            StreamEnd::Tx(writer) => writer.start(start)?,
        }
        Ok(0)
    })
}

/// Stops a stream.
#[unsafe(no_mangle)]
pub extern "C" fn ms_stream_stop(handle: u64) -> i32 {
    guarded(|| {
        let stream = SoapyStream::of(handle)?;
        match &stream.end {
            StreamEnd::Rx(reader) => reader.stop()?,
            StreamEnd::Tx(writer) => writer.stop()?,
        }
        Ok(0)
    })
}

/// Reads up to `samples` samples into each buffer. Returns their number or a code.
///
/// # Safety
/// `buffers` has a buffer for each channel with room for the samples, that nobody else uses during
/// the call; `result` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_read(
    handle: u64,
    buffers: *const *mut c_void,
    samples: usize,
    flags: i32,
    timeout_us: i64,
    result: *mut MsRead,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { *result = MsRead::default() };
    guarded(|| {
        let stream = SoapyStream::of(handle)?;
        let request = request(samples, flags, timeout_us);
        // SAFETY: as the caller says.
        let got = unsafe { for_format!(stream.format, read(stream.reader()?, buffers, request)) };
        // SAFETY: as the caller says.
        Ok(answer(got, unsafe { &mut *result })?)
    })
}

pub(crate) fn request(samples: usize, flags: i32, timeout_us: i64) -> ReadRequest {
    // The number of samples is a result, too.
    let samples = samples.min(i32::MAX as usize);
    ReadRequest { samples, some: flags & ONE_PACKET != 0, timeout: micros(timeout_us) }
}

fn micros(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or(0))
}

/// Returns the number of samples of a read, or the code of what came in their place.
pub(crate) fn answer(
    got: Result<Received, ClientError>,
    result: &mut MsRead,
) -> Result<i32, ClientError> {
    let (code, time, got) = match got {
        Ok(got) if got.samples > 0 => (got.samples as i32, got.time, got),
        Ok(got) => match got.gap {
            Some(gap) => (OVERFLOW, Some(gap.resume), got),
            None => (TIMEOUT, None, got),
        },
        Err(ClientError::LateStart { time }) => {
            let mut nothing = Received::default();
            nothing.end_of_burst = true;
            (TIME_ERROR, Some(time), nothing)
        }
        Err(error) => return Err(error),
    };
    let flag = |flag: i32, set: bool| if set { flag } else { 0 };
    result.time_ns = time.map_or(0, DeviceTime::ns);
    result.flags = flag(HAS_TIME, time.is_some())
        | flag(END_BURST, got.end_of_burst)
        | flag(END_ABRUPT, got.abrupt_end);
    Ok(code)
}

/// Writes up to `samples` samples of each buffer. Returns their number or a code.
///
/// # Safety
/// `buffers` has a buffer for each channel with the samples; `result` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_write(
    handle: u64,
    buffers: *const *const c_void,
    samples: usize,
    flags: i32,
    time_ns: i64,
    timeout_us: i64,
    result: *mut MsRead,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { *result = MsRead::default() };
    guarded(|| {
        let stream = SoapyStream::of(handle)?;
        let writer = stream.writer()?;
        let request = write_request(samples, flags, time_ns, micros(timeout_us));
        // SAFETY: as the caller says.
        let done = unsafe { for_format!(stream.format, write(writer, buffers, request)) }?;
        let ended = if done.end_of_burst { END_BURST } else { 0 };
        // SAFETY: as the caller says.
        unsafe { (*result).flags = ended };
        let nothing = done.samples == 0 && !(done.end_of_burst && samples == 0);
        Ok(if nothing { TIMEOUT } else { done.samples as i32 })
    })
}

pub(crate) fn write_request(
    samples: usize,
    flags: i32,
    time_ns: i64,
    timeout: Duration,
) -> WriteRequest {
    WriteRequest {
        samples: samples.min(i32::MAX as usize),
        time: (flags & HAS_TIME != 0).then(|| DeviceTime::from_ns(time_ns)),
        end_of_burst: flags & END_BURST != 0,
        timeout,
    }
}

/// Returns the code of the stream's oldest event, and its details in `status`; waits for one.
///
/// # Safety
/// `status` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_status(handle: u64, timeout_us: i64, status: *mut MsStatus) -> i32 {
    // SAFETY: as the caller says.
    unsafe { *status = MsStatus::default() };
    guarded(|| {
        let stream = SoapyStream::of(handle)?;
        let timeout = micros(timeout_us);
        let event = match &stream.end {
            StreamEnd::Rx(reader) => reader.take_status(timeout),
            StreamEnd::Tx(writer) => writer.take_status(timeout),
        };
        let Some(event) = event else { return Ok(TIMEOUT) };
        let (code, details) = details(&event);
        // SAFETY: as the caller says.
        unsafe { *status = details };
        Ok(code)
    })
}

fn details(event: &StreamStatus) -> (i32, MsStatus) {
    let (code, flags) = match event.kind {
        StatusKind::Gap(_) => (OVERFLOW, 0),
        StatusKind::LateStart | StatusKind::Late => (TIME_ERROR, 0),
        StatusKind::Underflow => (UNDERFLOW, 0),
        StatusKind::BurstEnd => (0, END_BURST),
        StatusKind::Sequence | StatusKind::Lost { .. } => (CORRUPTION, 0),
        _ => (STREAM_ERROR, 0),
    };
    let has_time = if event.time.is_some() { HAS_TIME } else { 0 };
    let channel = u32::try_from(event.channel).unwrap_or(0);
    let time_ns = event.time.map_or(0, DeviceTime::ns);
    (code, MsStatus { time_ns, flags: flags | has_time, channel })
}
