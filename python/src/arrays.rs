//! Arrays as rows of samples, by Python's buffer protocol.

use millstream_client::CHANNELS_MAX;
use millstream_radio::Complex32;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A form of samples in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleForm {
    /// Complex floats: `numpy.complex64`.
    Cf32,
    /// The wire's own 16-bit numbers: `numpy.int16`, I and Q in the last dimension.
    Sc16,
}

impl SampleForm {
    /// Reads its name.
    pub fn from_name(name: &str) -> PyResult<Self> {
        match name {
            "cf32" => Ok(Self::Cf32),
            "sc16" => Ok(Self::Sc16),
            _ => Err(PyValueError::new_err(format!(
                "format is {name:?}: give \"cf32\" (numpy.complex64) or \"sc16\" (numpy.int16, I \
                 and Q in the last dimension)"
            ))),
        }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cf32 => "cf32",
            Self::Sc16 => "sc16",
        }
    }

    /// Returns the names of the element type in the buffer protocol; numpy writes the first one.
    fn codes(self) -> &'static [&'static str] {
        match self {
            Self::Cf32 => &["Zf", "<Zf", "=Zf"],
            Self::Sc16 => &["h", "<h", "=h"],
        }
    }

    fn numpy(self) -> &'static str {
        match self {
            Self::Cf32 => "numpy.complex64",
            Self::Sc16 => "numpy.int16",
        }
    }

    fn element_bytes(self) -> usize {
        match self {
            Self::Cf32 => size_of::<Complex32>(),
            Self::Sc16 => size_of::<i16>(),
        }
    }
}

/// An array that is a row of samples for each channel, which its buffer keeps alive.
pub struct SampleArray {
    buffer: PyUntypedBuffer,
    form: SampleForm,
    channels: usize,
    samples: usize,
    /// Bytes from one row to the next.
    row_bytes: isize,
}

/// What is done with an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ArrayUse {
    /// Its samples are read.
    Read,
    /// Samples are written into it.
    Fill,
}

impl SampleArray {
    /// Looks at an array: its element type, its shape, and how it lies in memory.
    pub fn new(
        array: &Bound<'_, PyAny>,
        form: SampleForm,
        channels: usize,
        purpose: ArrayUse,
    ) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(array).map_err(|error| {
            if !error.is_instance_of::<PyTypeError>(array.py()) {
                let text =
                    format!("this array cannot be used ({error}): give one of {}", form.numpy());
                return PyValueError::new_err(text);
            }
            let kind = array.get_type().name().map_or_else(|_| "object".into(), |n| n.to_string());
            PyTypeError::new_err(format!("a {kind} is not an array: give one of {}", form.numpy()))
        })?;
        let known = form.codes().iter().any(|code| code.as_bytes() == buffer.format().to_bytes());
        if !known || buffer.item_size() != form.element_bytes() {
            return Err(PyTypeError::new_err(format!(
                "the array has elements of the type {:?} (numpy's {}), but the stream has the \
                 format {}: give an array of {}",
                buffer.format().to_string_lossy(),
                element_name(array),
                form.name(),
                form.numpy()
            )));
        }
        if purpose == ArrayUse::Fill && buffer.readonly() {
            let text = "the array is read-only: give one that can be written, such as its copy()";
            return Err(PyValueError::new_err(text));
        }
        let rows = Self::rows(buffer.shape(), form, channels)?;
        let (samples, leading) = rows;
        let row_bytes = Self::row_bytes(&buffer, form, leading)?;
        if buffer.buf_ptr().align_offset(form.element_bytes().min(4)) != 0 {
            let text = "the array is not aligned in memory: give numpy.ascontiguousarray(array)";
            return Err(PyValueError::new_err(text));
        }
        Ok(Self { buffer, form, channels, samples, row_bytes })
    }

    /// Returns the samples of a row, and whether there is a dimension of rows.
    fn rows(shape: &[usize], form: SampleForm, channels: usize) -> PyResult<(usize, bool)> {
        let (pair, inner) = match (form, shape) {
            (SampleForm::Cf32, _) => (true, shape),
            (SampleForm::Sc16, [outer @ .., 2]) => (true, outer),
            (SampleForm::Sc16, _) => (false, shape),
        };
        match inner {
            [samples] if pair && channels == 1 => Ok((*samples, false)),
            [rows, samples] if pair && *rows == channels => Ok((*samples, true)),
            _ => {
                let iq = if form == SampleForm::Sc16 { ", 2" } else { "" };
                let one = if form == SampleForm::Sc16 { "(samples, 2)" } else { "(samples,)" };
                let expected = match channels {
                    1 => format!("{one} or (1, samples{iq})"),
                    _ => format!("({channels}, samples{iq}), a row for each channel"),
                };
                Err(PyValueError::new_err(format!(
                    "the array has the shape {shape:?}, but this stream wants {expected}"
                )))
            }
        }
    }

    /// Returns the bytes between rows, whose samples have to follow each other in memory.
    fn row_bytes(buffer: &PyUntypedBuffer, form: SampleForm, leading: bool) -> PyResult<isize> {
        let (shape, strides) = (buffer.shape(), buffer.strides());
        let rows = usize::from(leading);
        let mut due = form.element_bytes() as isize;
        for (length, stride) in shape[rows..].iter().zip(&strides[rows..]).rev() {
            if *length > 1 && *stride != due {
                let text = "the samples of the array do not follow each other in memory: give \
                            numpy.ascontiguousarray(array), or slices with step 1 of one";
                return Err(PyValueError::new_err(text));
            }
            due *= *length as isize;
        }
        let row_bytes = if leading { strides[0] } else { due };
        if leading && shape[0] > 1 && row_bytes.unsigned_abs() < due.unsigned_abs() {
            let text =
                "the rows of the array overlap in memory: give numpy.ascontiguousarray(array)";
            return Err(PyValueError::new_err(text));
        }
        Ok(row_bytes)
    }

    /// Returns the samples of a row.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the rows from `skip` samples on, for use without the interpreter's lock.
    pub fn rows_from(&self, skip: usize) -> SampleRows {
        let sample_bytes = match self.form {
            SampleForm::Cf32 => size_of::<Complex32>(),
            SampleForm::Sc16 => size_of::<[i16; 2]>(),
        };
        let skip = skip.min(self.samples);
        SampleRows {
            start: self.buffer.buf_ptr().cast::<u8>().wrapping_add(skip * sample_bytes),
            row_bytes: self.row_bytes,
            channels: self.channels,
            samples: self.samples - skip,
        }
    }
}

/// Returns numpy's name of an array's element type, or "unknown".
fn element_name(array: &Bound<'_, PyAny>) -> String {
    let name = array.getattr("dtype").and_then(|dtype| dtype.str());
    name.map_or_else(|_| "unknown".to_owned(), |name| name.to_string())
}

/// The memory of an array's rows.
pub struct SampleRows {
    start: *mut u8,
    row_bytes: isize,
    channels: usize,
    samples: usize,
}

// SAFETY: the pointer stands for memory that the array's buffer keeps alive and in place, on any
// thread; `SampleArray` outlives it in each call.
unsafe impl Send for SampleRows {}
// SAFETY: as above; shared rows are only read.
unsafe impl Sync for SampleRows {}

impl SampleRows {
    /// Runs `call` with all rows as samples to fill.
    ///
    /// # Safety
    /// The [`SampleArray`] of these rows lives, has elements of the form of `T`, and, as for every
    /// function that works on an array without the interpreter's lock, no other thread uses the
    /// array meanwhile.
    pub unsafe fn fill<T, R>(&mut self, call: impl FnOnce(&mut [&mut [T]]) -> R) -> R {
        let mut rows: [&mut [T]; CHANNELS_MAX] = Default::default();
        let rows = &mut rows[..self.channels];
        for (channel, row) in rows.iter_mut().enumerate().filter(|_| self.samples > 0) {
            let start = self.start.wrapping_offset(self.row_bytes * channel as isize);
            // SAFETY: the caller keeps the array; `SampleArray` checked length, order and
            // alignment, and that rows do not overlap.
            *row = unsafe { std::slice::from_raw_parts_mut(start.cast(), self.samples) };
        }
        call(rows)
    }

    /// Runs `call` with all rows as samples to read.
    ///
    /// # Safety
    /// That of [`SampleRows::fill`], but other threads may read the array, too.
    pub unsafe fn read<T, R>(&self, call: impl FnOnce(&[&[T]]) -> R) -> R {
        let mut rows: [&[T]; CHANNELS_MAX] = [&[]; CHANNELS_MAX];
        let rows = &mut rows[..self.channels];
        for (channel, row) in rows.iter_mut().enumerate().filter(|_| self.samples > 0) {
            let start = self.start.wrapping_offset(self.row_bytes * channel as isize);
            // SAFETY: the caller keeps the array; `SampleArray` checked length, order and
            // alignment.
            *row = unsafe { std::slice::from_raw_parts(start.cast(), self.samples) };
        }
        call(rows)
    }
}
