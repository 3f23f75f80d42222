//! The forms in vector registers: one loop for all instruction sets and all formats.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(avx512)]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

use std::any::TypeId;
use std::marker::PhantomData;

use num_complex::Complex32;

use super::lanes::{Engine, WireLanes};
use super::sample::HostSample;
use super::scalar;
use super::wire::{Wire, WirePacking};

/// From this size on the result bypasses the caches: it would not fit in them, and a plain store
/// first reads the line that it replaces. Measured on a Sapphire Rapids with 2 MiB of L2: no
/// difference at 32 MB, 1.8 times the rate at 512 MB.
const STREAM_BYTES: usize = 8 << 20;

/// Above the largest 16-bit value, so that it saturates, and below where conversion overflows.
#[cfg(target_arch = "x86_64")]
const TOP: f32 = 65536.0;

/// The order in which the blocks of a conversion are processed, so that stores are aligned.
///
/// The first block begins at sample 0, the next at the first aligned address inside it, and the
/// last one ends with the last sample. Some samples are converted twice, and none one by one.
struct ConversionOrder {
    /// The first sample of the second block.
    second: usize,
    /// Whether the aligned blocks bypass the caches.
    stream: bool,
}

impl ConversionOrder {
    /// Plans a result that begins at `address` and has items of `item` bytes.
    fn plan<E: Engine>(address: usize, item: usize, count: usize, group: usize) -> Self {
        let align = (E::SAMPLES * item).min(64);
        let before = address.wrapping_neg() % align;
        let aligned = before % item == 0 && (before / item) % group == 0;
        let second = if aligned && before > 0 { before / item } else { E::SAMPLES };
        Self { second, stream: E::STREAMS && aligned && count * item >= STREAM_BYTES }
    }
}

/// A direction of conversion over given buffers.
///
/// # Safety
/// The processor has what `E` needs, and a whole block lies behind sample `at` on both sides; with
/// `STREAM` the result is aligned there.
trait Mover {
    unsafe fn block<E: Engine, const STREAM: bool>(&self, at: usize);
}

/// From the wire to the user.
struct Receive<P, U> {
    source: *const u8,
    place: *mut U,
    scale: f64,
    packing: PhantomData<P>,
}

impl<P: WirePacking + WireLanes, U: HostSample> Mover for Receive<P, U> {
    #[inline(always)]
    unsafe fn block<E: Engine, const STREAM: bool>(&self, at: usize) {
        let from = at / P::GROUP_SAMPLES * P::GROUP_BYTES;
        // SAFETY: the caller's.
        unsafe {
            let block = P::load_block::<E>(self.source.add(from));
            U::store_block::<E, STREAM>(self.place.add(at).cast(), block, self.scale);
        }
    }
}

/// From the user to the wire.
struct Transmit<P, U> {
    source: *const U,
    place: *mut u8,
    scale: f64,
    packing: PhantomData<P>,
}

impl<P: WirePacking + WireLanes, U: HostSample> Mover for Transmit<P, U> {
    #[inline(always)]
    unsafe fn block<E: Engine, const STREAM: bool>(&self, at: usize) {
        let to = at / P::GROUP_SAMPLES * P::GROUP_BYTES;
        // SAFETY: the caller's.
        unsafe {
            let (source, place) = (self.source.add(at).cast(), self.place.add(to));
            if P::WIRE == Wire::Sc16 && TypeId::of::<U>() == TypeId::of::<Complex32>() {
                return E::fc32_to_sc16::<STREAM>(source, place, self.scale as f32);
            }
            let block = U::load_block::<E>(source, self.scale);
            P::store_block::<E, STREAM>(place, block);
        }
    }
}

/// Moves `count` samples in groups of `group`, except the last few where no block fits. Returns the
/// first sample that it did not move.
///
/// # Safety
/// The processor has the features of `E`; both sides of `mover` have `count` samples; `course` was
/// planned for it.
#[inline(always)]
unsafe fn run<E: Engine>(
    count: usize,
    group: usize,
    course: ConversionOrder,
    mover: &impl Mover,
) -> usize {
    if count < E::SAMPLES {
        return 0;
    }
    // SAFETY: `0 + E::SAMPLES <= count`.
    unsafe { mover.block::<E, false>(0) };
    let mut at = course.second;
    if course.stream {
        while at + E::SAMPLES <= count {
            // SAFETY: `at + E::SAMPLES <= count`, and `course` aligns these blocks.
            unsafe { mover.block::<E, true>(at) };
            at += E::SAMPLES;
        }
        // SAFETY: the caller's.
        unsafe { E::order_streams() };
    }
    while at + E::SAMPLES <= count {
        // SAFETY: `at + E::SAMPLES <= count`.
        unsafe { mover.block::<E, false>(at) };
        at += E::SAMPLES;
    }
    let last = count - E::SAMPLES;
    if at < count && last % group == 0 {
        // SAFETY: `last + E::SAMPLES == count`.
        unsafe { mover.block::<E, false>(last) };
        return count;
    }
    at
}

/// # Safety
/// The processor has what `E` needs; `wire` has the samples for `out`.
#[inline(always)]
unsafe fn to_user<E: Engine, P: WirePacking + WireLanes, U: HostSample>(
    wire: &[u8],
    out: &mut [U],
    scale: U::Real,
) {
    let (count, group) = (out.len(), P::GROUP_SAMPLES);
    let (source, place) = (wire.as_ptr(), out.as_mut_ptr());
    let course = ConversionOrder::plan::<E>(place.addr(), size_of::<U>(), count, group);
    let mover = Receive::<P, U> { source, place, scale: scale.into(), packing: PhantomData };
    // SAFETY: the caller's.
    let rest = unsafe { run::<E>(count, group, course, &mover) };
    scalar::to_user::<P, U>(wire, out, rest..count, scale);
}

/// # Safety
/// The processor has what `E` needs; `out` has space for `samples`.
#[inline(always)]
unsafe fn to_wire<E: Engine, P: WirePacking + WireLanes, U: HostSample>(
    samples: &[U],
    out: &mut [u8],
    scale: U::Real,
) {
    let (count, group) = (samples.len(), P::GROUP_SAMPLES);
    let (source, place) = (samples.as_ptr(), out.as_mut_ptr());
    let course = ConversionOrder::plan::<E>(place.addr(), P::GROUP_BYTES / group, count, group);
    let mover = Transmit::<P, U> { source, place, scale: scale.into(), packing: PhantomData };
    // SAFETY: the caller's.
    let rest = unsafe { run::<E>(count, group, course, &mover) };
    scalar::to_wire::<P, U>(samples, out, rest..count, scale);
}

/// The two directions, compiled for an instruction set.
macro_rules! entry_points {
    ($engine:ty, $features:literal, $to_user:ident, $to_wire:ident) => {
        /// # Safety
        /// The processor has the features; `wire` has the samples for `out`.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $to_user<P: WirePacking + WireLanes, U: HostSample>(
            wire: &[u8],
            out: &mut [U],
            scale: U::Real,
        ) {
            // SAFETY: the caller's.
            unsafe { to_user::<$engine, P, U>(wire, out, scale) }
        }

        /// # Safety
        /// The processor has the features; `out` has space for `samples`.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $to_wire<P: WirePacking + WireLanes, U: HostSample>(
            samples: &[U],
            out: &mut [u8],
            scale: U::Real,
        ) {
            // SAFETY: the caller's.
            unsafe { to_wire::<$engine, P, U>(samples, out, scale) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
entry_points!(avx2::Avx2, "avx2", to_user_avx2, to_wire_avx2);
#[cfg(avx512)]
entry_points!(avx512::Avx512, "avx512f,avx512bw", to_user_avx512, to_wire_avx512);
#[cfg(target_arch = "aarch64")]
entry_points!(neon::Neon, "neon", to_user_neon, to_wire_neon);

/// In a 128-bit lane with four 12-bit samples in three little-endian words: the bytes of each
/// value's 16-bit cover, low byte first. Even values lie in its upper 12 bits, odd in its lower.
const SC12_SPREAD: [i8; 16] = {
    let mut spread = [0; 16];
    let mut value = 0;
    while value < 8 {
        let first = value * 12 / 8;
        spread[2 * value] = ((first + 1) ^ 3) as i8;
        spread[2 * value + 1] = (first ^ 3) as i8;
        value += 1;
    }
    spread
};

/// In a 128-bit lane with four samples of 24 bits in 32: the bytes of three little-endian words.
const SC12_GATHER: [i8; 16] = {
    let mut gather = [-128; 16];
    let mut place = 0;
    while place < 12 {
        let byte = place ^ 3;
        gather[place] = (byte / 3 * 4 + 2 - byte % 3) as i8;
        place += 1;
    }
    gather
};
