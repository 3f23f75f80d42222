//! One timed job: a conversion or a copy, with buffers of its own.

use super::{ConvertDirection, FormatPair, User};
use millstream_dsp::noise::Noise;
use millstream_radio::convert::{ConvertForm, Converter, HostSample};
use millstream_radio::{Complex32, Complex64};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A repeatable job.
pub struct ConvertJob(Box<dyn FnMut()>);

impl ConvertJob {
    /// A conversion of `samples` samples in a form that this processor supports.
    pub fn conversion(pair: FormatPair, form: ConvertForm, samples: usize) -> Self {
        match pair.user {
            User::Fc32 => Self::typed::<Complex32>(pair, form, samples),
            User::Fc64 => Self::typed::<Complex64>(pair, form, samples),
            User::Sc16 => Self::typed::<[i16; 2]>(pair, form, samples),
            User::Sc8 => Self::typed::<[i8; 2]>(pair, form, samples),
        }
    }

    fn typed<U: HostSample>(pair: FormatPair, form: ConvertForm, samples: usize) -> Self {
        let converter = Converter::with_form(pair.wire, form).unwrap_or(Converter::new(pair.wire));
        let mut wire = Placed::new(pair.wire.bytes_of(samples), 0, noise);
        let mut user = Placed::new(samples, SECOND_OFFSET, |count| vec![U::zeroed(); count]);
        let (in_scale, out_scale) = (U::scale_from(pair.wire), U::scale_to(pair.wire));
        // Values of a radio's range; others can be slow on some processors.
        converter.to_user(wire.get(), user.get_mut(), in_scale);
        Self(match pair.direction {
            ConvertDirection::Receive => Box::new(move || {
                converter.to_user(black_box(wire.get()), black_box(user.get_mut()), in_scale);
            }),
            ConvertDirection::Transmit => Box::new(move || {
                converter.to_wire(black_box(user.get()), black_box(wire.get_mut()), out_scale);
            }),
        })
    }

    /// A copy of `bytes` bytes.
    pub fn copy(bytes: usize) -> Self {
        let from = Placed::new(bytes, 0, noise);
        let mut to = Placed::new(bytes, SECOND_OFFSET, |count| vec![0; count]);
        Self(Box::new(move || black_box(to.get_mut()).copy_from_slice(black_box(from.get()))))
    }

    /// Million samples per second, when one run of this converts `samples`; measured for about
    /// `time`.
    pub fn msps(&mut self, samples: usize, time: Duration) -> f64 {
        // Warms up, and estimates how many runs fill the time.
        let once = self.time(2) / 2.0;
        let runs = (time.as_secs_f64() / once).clamp(1.0, 1e9) as u32;
        samples as f64 * f64::from(runs) / self.time(runs) / 1e6
    }

    /// Seconds that `runs` runs take.
    fn time(&mut self, runs: u32) -> f64 {
        let began = Instant::now();
        for _ in 0..runs {
            (self.0)();
        }
        began.elapsed().as_secs_f64().max(1e-9)
    }
}

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;

/// The offset of the second buffer in its page. A load and a store with the same offset in their
/// pages slow each other down, so the place of the buffers would change the result.
const SECOND_OFFSET: usize = PAGE_BYTES / 2;

/// A buffer with a given offset in its page, so that its address changes no result.
struct Placed<T> {
    items: Vec<T>,
    start: usize,
    length: usize,
}

impl<T> Placed<T> {
    /// `length` items that `make` makes, at `offset` bytes in a page.
    fn new(length: usize, offset: usize, make: impl FnOnce(usize) -> Vec<T>) -> Self {
        let items = make(length + 2 * PAGE_BYTES / size_of::<T>());
        let start = items.as_ptr().align_offset(PAGE_BYTES) + offset / size_of::<T>();
        Self { items, start, length }
    }

    fn get(&self) -> &[T] {
        &self.items[self.start..self.start + self.length]
    }

    fn get_mut(&mut self) -> &mut [T] {
        &mut self.items[self.start..self.start + self.length]
    }
}

/// Pseudo-random bytes, always the same.
fn noise(bytes: usize) -> Vec<u8> {
    let mut noise = Noise::new(1);
    (0..bytes).map(|_| (noise.bits() >> 56) as u8).collect()
}
