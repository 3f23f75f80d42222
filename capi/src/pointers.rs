//! Pointers of C: texts, times, places for results, buffers.

use std::ffi::{CStr, c_char, c_void};
use std::time::Duration;

use millstream_client::{CHANNELS_MAX, DeviceTime};

use crate::guard::{Failure, bad};

/// A moment: `millstream_time`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CTime {
    /// Ticks since the clock began.
    pub ticks: u64,
    /// Ticks of a second; 0 for no time.
    pub rate_hz: f64,
}

impl From<Option<DeviceTime>> for CTime {
    fn from(time: Option<DeviceTime>) -> Self {
        time.map_or(Self::default(), |time| Self { ticks: time.ticks(), rate_hz: time.rate_hz() })
    }
}

/// Returns a time-out; one below 0 is as long as it takes.
pub fn duration(timeout_ns: i64) -> Duration {
    u64::try_from(timeout_ns).map_or(Duration::MAX, Duration::from_nanos)
}

/// Returns a text of C, which `name` calls in an error.
///
/// # Safety
/// `pointer` is null, or ends with 0 and lives as long as the result.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return bad(format!("{name} is a null pointer: give a text"));
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().or_else(|_| bad(format!("{name} is not valid UTF-8")))
}

/// Stores what `make` returns. Without a place for it nothing is made.
///
/// # Safety
/// `place` is null, or can be written.
pub unsafe fn put<T>(
    place: *mut T,
    name: &str,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<i32, Failure> {
    check(place.cast_const(), name)?;
    let made = make()?;
    // SAFETY: as the caller says; it is not null, and aligned.
    unsafe { place.write(made) };
    Ok(0)
}

/// Returns the time at a pointer; none for null.
///
/// # Safety
/// `pointer` is null, or can be read.
pub unsafe fn time(pointer: *const CTime) -> Result<Option<DeviceTime>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    check(pointer, "time")?;
    // SAFETY: as the caller says; it is aligned.
    let CTime { ticks, rate_hz } = unsafe { pointer.read() };
    if !(rate_hz.is_finite() && rate_hz > 0.0) {
        return bad(format!("time has {rate_hz} ticks a second: give a number above 0"));
    }
    Ok(Some(DeviceTime::from_ticks(ticks, rate_hz)))
}

/// Checks a pointer to a `T`.
pub fn check<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return bad(format!("{name} is a null pointer: give an address"));
    }
    if !pointer.is_aligned() {
        let needed = align_of::<T>();
        return bad(format!("{name} is {pointer:p}: give an address that {needed} divides"));
    }
    Ok(())
}

/// The buffers of a call, one for each channel.
pub struct Buffers<T> {
    addresses: [*mut T; CHANNELS_MAX],
    channels: usize,
    samples: usize,
}

impl<T> Buffers<T> {
    /// Checks the addresses of the buffers.
    ///
    /// # Safety
    /// `buffers` is null, or has an address for each channel.
    pub unsafe fn new(
        buffers: *const *mut c_void,
        channels: usize,
        samples: usize,
    ) -> Result<Self, Failure> {
        let mut addresses = [std::ptr::dangling_mut::<T>(); CHANNELS_MAX];
        if samples > 0 {
            check(buffers, "buffers")?;
            let bytes = samples.checked_mul(size_of::<T>()).filter(|bytes| *bytes < 1 << 62);
            let Some(bytes) = bytes else {
                return bad(format!("samples is {samples}: no buffer is that large"));
            };
            for index in 0..channels {
                // SAFETY: as the caller says.
                let address = unsafe { buffers.add(index).read() }.cast::<T>();
                check(address.cast_const(), &format!("buffers[{index}]"))?;
                let overlap = |other: &*mut T| other.addr().abs_diff(address.addr()) < bytes;
                if let Some(other) = addresses[..index].iter().position(overlap) {
                    return bad(format!("buffers[{other}] and buffers[{index}] overlap"));
                }
                addresses[index] = address;
            }
        }
        Ok(Self { addresses, channels, samples })
    }

    /// Runs `call` with the buffers, to be read.
    ///
    /// # Safety
    /// Each buffer has as many samples as were announced.
    pub unsafe fn read<R>(&self, call: impl FnOnce(&[&[T]]) -> R) -> R {
        let mut slices: [&[T]; CHANNELS_MAX] = [&[]; CHANNELS_MAX];
        for (slice, address) in slices.iter_mut().zip(self.addresses).take(self.channels) {
            // SAFETY: as the caller says; `new` has checked the address.
            *slice = unsafe { std::slice::from_raw_parts(address, self.samples) };
        }
        call(&slices[..self.channels])
    }

    /// Runs `call` with the buffers, to be written.
    ///
    /// # Safety
    /// Each buffer has room for as many samples as were announced, and nobody else uses it.
    pub unsafe fn write<R>(&self, call: impl FnOnce(&mut [&mut [T]]) -> R) -> R {
        let mut slices: [&mut [T]; CHANNELS_MAX] = Default::default();
        for (slice, address) in slices.iter_mut().zip(self.addresses).take(self.channels) {
            // SAFETY: as the caller says; `new` has checked that it overlaps no other one.
            *slice = unsafe { std::slice::from_raw_parts_mut(address, self.samples) };
        }
        call(&mut slices[..self.channels])
    }
}
