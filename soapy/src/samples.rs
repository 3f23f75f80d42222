//! The formats of samples, and buffers of C as slices.

use std::ffi::c_void;
use std::time::Duration;

use bytemuck::Pod;
use millstream_client::{
    CHANNELS_MAX, ClientError, DeviceTime, Received, RxStream, StreamSample, TxStream, TxWrite,
};

use crate::guard::Failure;

/// A format of SoapySDR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoapyFormat {
    Cf32,
    Cs16,
    Cs8,
    Cf64,
    /// Three bytes a sample.
    Cs12,
}

/// Calls a function for the type of a format.
macro_rules! for_format {
    ($format:expr, $function:ident($($argument:expr),*)) => {
        match $format {
            $crate::samples::SoapyFormat::Cf32 => $function::<num_complex::Complex32>($($argument),*),
            $crate::samples::SoapyFormat::Cs16 => $function::<[i16; 2]>($($argument),*),
            $crate::samples::SoapyFormat::Cs8 => $function::<[i8; 2]>($($argument),*),
            $crate::samples::SoapyFormat::Cf64 => $function::<num_complex::Complex64>($($argument),*),
            $crate::samples::SoapyFormat::Cs12 => $function::<[u8; 3]>($($argument),*),
        }
    };
}
pub(crate) use for_format;

impl SoapyFormat {
    /// Returns the format of a name.
    pub fn named(name: &str) -> Result<Self, Failure> {
        match name {
            "CF32" => Ok(Self::Cf32),
            "CS16" => Ok(Self::Cs16),
            "CS8" => Ok(Self::Cs8),
            "CF64" => Ok(Self::Cf64),
            "CS12" => Ok(Self::Cs12),
            other => {
                let known = "CF32, CS16, CS12, CS8 or CF64";
                let text = format!("the format {other} is not known: use {known}");
                Err(Failure::Argument(text))
            }
        }
    }

    /// Returns the bytes of a sample.
    pub fn bytes(self) -> usize {
        match self {
            Self::Cs8 => 2,
            Self::Cs12 => 3,
            Self::Cs16 => 4,
            Self::Cf32 => 8,
            Self::Cf64 => 16,
        }
    }
}

/// How a client reads.
#[derive(Debug, Clone, Copy)]
pub struct ReadRequest {
    pub samples: usize,
    /// Return with the first samples.
    pub some: bool,
    pub timeout: Duration,
}

/// Reads into buffers of C.
///
/// # Safety
/// `buffers` has a buffer for each channel of the reader, with room for the samples, that nobody
/// else uses during the call.
pub unsafe fn read<T: StreamSample + Pod>(
    reader: &RxStream,
    buffers: *const *mut c_void,
    request: ReadRequest,
) -> Result<Received, ClientError> {
    // SAFETY: as the caller says. A buffer may be null only when it has no room.
    let buffer = |index: usize| unsafe {
        let data: *mut T = (*buffers.add(index)).cast();
        if data.is_null() || request.samples == 0 {
            &mut [][..]
        } else {
            std::slice::from_raw_parts_mut(data, request.samples)
        }
    };
    let mut outs: [&mut [T]; CHANNELS_MAX] = Default::default();
    let outs = &mut outs[..reader.channels().len()];
    outs.iter_mut().enumerate().for_each(|(index, out)| *out = buffer(index));
    read_slices(reader, outs, request)
}

/// Reads into slices.
pub fn read_slices<T: StreamSample>(
    reader: &RxStream,
    outs: &mut [&mut [T]],
    request: ReadRequest,
) -> Result<Received, ClientError> {
    if request.some {
        reader.read_some(outs, request.timeout)
    } else {
        reader.read(outs, request.timeout)
    }
}

/// How a client writes.
#[derive(Debug, Clone, Copy)]
pub struct WriteRequest {
    pub samples: usize,
    pub time: Option<DeviceTime>,
    pub end_of_burst: bool,
    pub timeout: Duration,
}

/// Writes from buffers of C.
///
/// # Safety
/// `buffers` has a buffer for each channel of the writer, with the samples.
pub unsafe fn write<T: StreamSample + Pod>(
    writer: &TxStream,
    buffers: *const *const c_void,
    request: WriteRequest,
) -> Result<TxWrite, ClientError> {
    // SAFETY: as the caller says. A buffer may be null only when it has no sample.
    let buffer = |index: usize| unsafe {
        let data: *const T = (*buffers.add(index)).cast();
        if data.is_null() || request.samples == 0 {
            &[][..]
        } else {
            std::slice::from_raw_parts(data, request.samples)
        }
    };
    let WriteRequest { time, end_of_burst, timeout, .. } = request;
    let mut ins: [&[T]; CHANNELS_MAX] = [&[]; CHANNELS_MAX];
    let ins = &mut ins[..writer.channels().len()];
    ins.iter_mut().enumerate().for_each(|(index, from)| *from = buffer(index));
    writer.write(ins, time, end_of_burst, timeout)
}
