//! Buffers of a stream that clients read or fill in place, as functions of C.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytemuck::Pod;
use millstream_client::{
    CHANNELS_MAX, ClientError, Received, RxStream, StreamSample, TxStream, TxWrite,
};

use crate::direct::DirectBlock;
use crate::guard::{Failure, STREAM_ERROR, TIMEOUT, guarded};
use crate::samples::{ReadRequest, WriteRequest, for_format, read_slices};
use crate::stream::{END_BURST, MsRead, SoapyStream, answer, request, write_request};

fn all_in_use() -> Failure {
    Failure::Argument("all buffers are in use: release one before the next".to_owned())
}

/// Reads into a buffer of the stream, whose number and addresses it stores. Returns the number of
/// samples or a code.
///
/// # Safety
/// `number` can be written, and `buffers` for each channel; `result` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_acquire(
    handle: u64,
    number: *mut usize,
    buffers: *mut *const c_void,
    flags: i32,
    timeout_us: i64,
    result: *mut MsRead,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { *result = MsRead::default() };
    guarded(|| {
        let stream = SoapyStream::of(handle)?;
        let (reader, samples) = (stream.reader()?, stream.mtu());
        let bytes = samples * stream.format.bytes();
        let block = stream.direct.take(reader.channels().len(), bytes);
        let mut block = block.ok_or_else(all_in_use)?;
        let request = request(samples, flags, timeout_us);
        let got = for_format!(stream.format, read_block(reader, &mut block, request));
        // SAFETY: as the caller says.
        let code = match answer(got, unsafe { &mut *result }) {
            Ok(code) if code >= 0 => code,
            failed => {
                stream.direct.put_back(block);
                return Ok(failed?);
            }
        };
        // SAFETY: as the caller says.
        let tell = |index: usize, data: *const u64| unsafe { *buffers.add(index) = data.cast() };
        let place = stream.direct.hold(block, tell);
        // SAFETY: as the caller says.
        unsafe { *number = place };
        Ok(code)
    })
}

fn read_block<T: StreamSample + Pod>(
    reader: &RxStream,
    block: &mut DirectBlock,
    request: ReadRequest,
) -> Result<Received, ClientError> {
    let samples = request.samples;
    fn of<T: Pod>(part: &mut [u64], samples: usize) -> &mut [T] {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(part);
        bytemuck::cast_slice_mut(&mut bytes[..samples * size_of::<T>()])
    }
    let mut outs: [&mut [T]; CHANNELS_MAX] = Default::default();
    let channels = block.len();
    outs.iter_mut().zip(block).for_each(|(out, part)| *out = of(part, samples));
    read_slices(reader, &mut outs[..channels], request)
}

/// Gives a buffer back to its stream.
#[unsafe(no_mangle)]
pub extern "C" fn ms_release(handle: u64, number: usize) -> i32 {
    guarded(|| {
        SoapyStream::of(handle)?.direct.release(number);
        Ok(0)
    })
}

/// Lends a buffer to fill, whose number and addresses it stores. Returns its samples, or the code of
/// the failure of a buffer that was released before.
///
/// # Safety
/// `number` can be written, and `buffers` for each channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_acquire_write(
    handle: u64,
    number: *mut usize,
    buffers: *mut *mut c_void,
) -> i32 {
    guarded(|| {
        let stream = SoapyStream::of(handle)?;
        let (writer, samples) = (stream.writer()?, stream.mtu());
        let failure = stream.release_failure.swap(0, Ordering::Relaxed);
        if failure < 0 {
            return Ok(failure);
        }
        let bytes = samples * stream.format.bytes();
        let block = stream.direct.take(writer.channels().len(), bytes).ok_or_else(all_in_use)?;
        let tell = |index: usize, data: *const u64| {
            // SAFETY: as the caller says. The block is the client's until it is released.
            unsafe { *buffers.add(index) = data.cast_mut().cast() };
        };
        let place = stream.direct.hold(block, tell);
        // SAFETY: as the caller says.
        unsafe { *number = place };
        Ok(samples as i32)
    })
}

/// Transmits the first `samples` samples of a buffer, after waiting for room, and takes it back.
/// Stores the flags that result. The next buffer reports a failure.
///
/// # Safety
/// `flags` can be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_release_write(
    handle: u64,
    number: usize,
    samples: usize,
    flags: *mut i32,
    time_ns: i64,
) -> i32 {
    guarded(|| {
        let stream = SoapyStream::of(handle)?;
        let writer = stream.writer()?;
        // SAFETY: as the caller says.
        let asked = unsafe { *flags };
        let request = write_request(samples.min(stream.mtu()), asked, time_ns, Duration::MAX);
        let Some(block) = stream.direct.take_back(number) else {
            let text = format!("the buffer {number} is not held: acquire one first");
            return Err(Failure::Argument(text));
        };
        let done = for_format!(stream.format, write_block(writer, &block, request));
        stream.direct.put_back(block);
        let whole = |done: &TxWrite| done.samples == request.samples;
        let code = match &done {
            Ok(done) if whole(done) => 0,
            // Only a stream that does not run takes less.
            Ok(_) => TIMEOUT,
            Err(_) => STREAM_ERROR,
        };
        stream.release_failure.store(code, Ordering::Relaxed);
        let done = done?;
        // SAFETY: as the caller says.
        unsafe { *flags = if done.end_of_burst { END_BURST } else { 0 } };
        Ok(code)
    })
}

fn write_block<T: StreamSample>(
    writer: &TxStream,
    block: &DirectBlock,
    request: WriteRequest,
) -> Result<TxWrite, ClientError> {
    let WriteRequest { samples, time, end_of_burst, timeout } = request;
    fn of<T: Pod>(part: &[u64], samples: usize) -> &[T] {
        let bytes: &[u8] = bytemuck::cast_slice(part);
        bytemuck::cast_slice(&bytes[..samples * size_of::<T>()])
    }
    let mut ins: [&[T]; CHANNELS_MAX] = [&[]; CHANNELS_MAX];
    ins.iter_mut().zip(block).for_each(|(from, part)| *from = of(part, samples));
    writer.write(&ins[..block.len()], time, end_of_burst, timeout)
}
