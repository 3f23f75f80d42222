//! The common part of the SIMD forms: blocks of samples that pass through vector registers as
//! 32-bit integers. All wire values are exact in them, and so are all 16-bit values as floats.

#![expect(unsafe_op_in_unsafe_fn, reason = "all is unsafe for the one reason stated at `Engine`")]

use num_complex::Complex;

use super::wire::{Sc8, Sc12, Sc16};

/// One instruction set: loads, scales and stores a block of samples.
///
/// Loads and stores of a block access exactly its own bytes, at any alignment. `STREAM` stores
/// bypass the caches where that is useful; their address must be a multiple of the block's bytes or
/// of 64, whichever is smaller.
///
/// # Safety
/// Every function needs the processor features of its engine, and memory for a whole block.
pub trait Engine {
    /// Samples in a block; a multiple of every wire format's group.
    const SAMPLES: usize;
    /// Whether `STREAM` makes a difference.
    const STREAMS: bool;
    /// A block's I and Q alternating, as 32-bit integers.
    type Block: Copy;

    unsafe fn load_sc16(at: *const u8) -> Self::Block;
    unsafe fn load_sc12(at: *const u8) -> Self::Block;
    unsafe fn load_sc8(at: *const u8) -> Self::Block;
    /// Loads floats times `scale`, rounded. Results beyond 16 bits may be any value beyond, with
    /// the same sign. Not-a-number gives 0.
    unsafe fn load_fc32(at: *const u8, scale: f32) -> Self::Block;
    /// Does the same for doubles.
    unsafe fn load_fc64(at: *const u8, scale: f64) -> Self::Block;

    /// Saturates to 16 bits; the other integer stores saturate to their width.
    unsafe fn store_sc16<const STREAM: bool>(at: *mut u8, block: Self::Block);
    unsafe fn store_sc12(at: *mut u8, block: Self::Block);
    unsafe fn store_sc8(at: *mut u8, block: Self::Block);
    unsafe fn store_fc32<const STREAM: bool>(at: *mut u8, block: Self::Block, scale: f32);
    unsafe fn store_fc64<const STREAM: bool>(at: *mut u8, block: Self::Block, scale: f64);

    /// Does [`Engine::load_fc32`] and [`Engine::store_sc16`] together: the most frequent pair in
    /// transmission, for engines with a faster sequence.
    #[inline(always)]
    unsafe fn fc32_to_sc16<const STREAM: bool>(from: *const u8, to: *mut u8, scale: f32) {
        Self::store_sc16::<STREAM>(to, Self::load_fc32(from, scale));
    }

    /// Orders stores that bypass the caches before a later signal to a reader.
    unsafe fn order_streams();

    /// Integers times `scale`, rounded, as [`Engine::load_fc32`] does.
    unsafe fn rescale(block: Self::Block, scale: f32) -> Self::Block;
}

/// The wire side of a conversion.
///
/// # Safety
/// As for [`Engine`].
pub(super) trait WireLanes {
    unsafe fn load_block<E: Engine>(at: *const u8) -> E::Block;
    unsafe fn store_block<E: Engine, const STREAM: bool>(at: *mut u8, block: E::Block);
}

/// The user's side of a conversion.
///
/// # Safety
/// As for [`Engine`].
pub trait UserLanes {
    /// Loads a block times `scale`.
    unsafe fn load_block<E: Engine>(at: *const u8, scale: f64) -> E::Block;
    /// Stores a block times `scale`.
    unsafe fn store_block<E: Engine, const STREAM: bool>(at: *mut u8, block: E::Block, scale: f64);
}

macro_rules! wire_lanes {
    ($format:ident, $load:ident, $store:ident $(, $stream:ident)?) => {
        impl WireLanes for $format {
            #[inline(always)]
            unsafe fn load_block<E: Engine>(at: *const u8) -> E::Block {
                E::$load(at)
            }

            #[inline(always)]
            unsafe fn store_block<E: Engine, const STREAM: bool>(at: *mut u8, block: E::Block) {
                E::$store$(::<$stream>)?(at, block)
            }
        }
    };
}

wire_lanes!(Sc16, load_sc16, store_sc16, STREAM);
wire_lanes!(Sc12, load_sc12, store_sc12);
wire_lanes!(Sc8, load_sc8, store_sc8);

macro_rules! float_lanes {
    ($real:ident, $load:ident, $store:ident) => {
        impl UserLanes for Complex<$real> {
            #[inline(always)]
            unsafe fn load_block<E: Engine>(at: *const u8, scale: f64) -> E::Block {
                E::$load(at, scale as $real)
            }

            #[inline(always)]
            unsafe fn store_block<E: Engine, const STREAM: bool>(
                at: *mut u8,
                block: E::Block,
                scale: f64,
            ) {
                E::$store::<STREAM>(at, block, scale as $real)
            }
        }
    };
}

float_lanes!(f32, load_fc32, store_fc32);
float_lanes!(f64, load_fc64, store_fc64);

macro_rules! integer_lanes {
    ($int:ident, $format:ident) => {
        impl UserLanes for [$int; 2] {
            #[inline(always)]
            unsafe fn load_block<E: Engine>(at: *const u8, scale: f64) -> E::Block {
                E::rescale($format::load_block::<E>(at), scale as f32)
            }

            #[inline(always)]
            unsafe fn store_block<E: Engine, const STREAM: bool>(
                at: *mut u8,
                block: E::Block,
                scale: f64,
            ) {
                $format::store_block::<E, STREAM>(at, E::rescale(block, scale as f32))
            }
        }
    };
}

integer_lanes!(i16, Sc16);
integer_lanes!(i8, Sc8);
