//! Operations on sixteen numbers, for kernels that compilers do not vectorise.
//!
//! A kernel is written once over [`Rows`] and compiled for [`Plain`], `Avx512` and `Neon`. Every
//! operation is one of IEEE 754 or of integers, so both give the same bits; only [`Rows::madd`] may
//! be fused.

use crate::pairs::{self, Group};
#[cfg(avx512)]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;

#[cfg(avx512)]
pub use avx512::Avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub use neon::Neon;

/// Numbers of a row.
pub const LANES: usize = pairs::LANES;

/// Operations on rows.
#[allow(missing_docs, reason = "each operation is what its name says, lane by lane")]
pub trait Rows: Copy {
    /// Sixteen floats.
    type Float: Copy;
    /// Sixteen 32-bit integers.
    type Whole: Copy;
    /// Sixteen truth values.
    type Mask: Copy;

    fn load(self, x: &[f32; LANES]) -> Self::Float;
    fn store(self, x: Self::Float) -> [f32; LANES];
    fn load_wholes(self, x: &[i32; LANES]) -> Self::Whole;
    fn store_wholes(self, x: Self::Whole) -> [i32; LANES];
    /// Stores the low 16 bits of the numbers in these `lanes`, and zero in the others.
    fn store_16(self, x: Self::Whole, lanes: u16, to: &mut [i16; LANES]);
    /// Returns the same number in every lane.
    fn floats(self, x: f32) -> Self::Float;
    /// Returns the same number in every lane.
    fn wholes(self, x: i32) -> Self::Whole;
    fn add(self, a: Self::Float, b: Self::Float) -> Self::Float;
    fn sub(self, a: Self::Float, b: Self::Float) -> Self::Float;
    fn mul(self, a: Self::Float, b: Self::Float) -> Self::Float;
    /// Returns `a * b + c`, fused or not.
    fn madd(self, a: Self::Float, b: Self::Float, c: Self::Float) -> Self::Float;
    /// Returns `a` where it is less, otherwise `b`.
    fn min(self, a: Self::Float, b: Self::Float) -> Self::Float;
    /// Returns `a` where it is more, otherwise `b`.
    fn max(self, a: Self::Float, b: Self::Float) -> Self::Float;
    fn abs(self, x: Self::Float) -> Self::Float;
    fn less(self, a: Self::Float, b: Self::Float) -> Self::Mask;
    fn differ(self, a: Self::Float, b: Self::Float) -> Self::Mask;
    /// Returns a bit for each lane, the first in the lowest.
    fn bits(self, mask: Self::Mask) -> u16;
    /// Returns `a` where the mask is set, otherwise `b`.
    fn choose(self, mask: Self::Mask, a: Self::Float, b: Self::Float) -> Self::Float;
    /// Returns `a` where the mask is set, otherwise `b`.
    fn choose_whole(self, mask: Self::Mask, a: Self::Whole, b: Self::Whole) -> Self::Whole;
    fn floats_of(self, x: Self::Whole) -> Self::Float;
    fn whole_add(self, a: Self::Whole, b: Self::Whole) -> Self::Whole;
    fn or(self, a: Self::Whole, b: Self::Whole) -> Self::Whole;
    fn and(self, a: Self::Whole, b: Self::Whole) -> Self::Whole;
    fn shift_left<const N: u32>(self, x: Self::Whole) -> Self::Whole;
    /// Shifts right, and fills with zeros.
    fn shift_right<const N: u32>(self, x: Self::Whole) -> Self::Whole;
    /// Computes [`pairs::add_products`].
    ///
    /// # Panics
    /// As [`pairs::add_products`].
    fn add_products<const N: usize>(
        self,
        groups: &[Group<N>],
        x: &[i16],
        sums: Self::Whole,
    ) -> Self::Whole;
}

/// Rows as arrays: the reference implementation.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

#[inline(always)]
fn each<A: Copy, B: Copy, T: Copy + Default>(
    a: [A; LANES],
    b: [B; LANES],
    of: impl Fn(A, B) -> T,
) -> [T; LANES] {
    let mut out = [T::default(); LANES];
    for lane in 0..LANES {
        out[lane] = of(a[lane], b[lane]);
    }
    out
}

#[inline(always)]
fn pick<T: Copy + Default>(mask: u16, a: [T; LANES], b: [T; LANES]) -> [T; LANES] {
    let mut out = b;
    for lane in 0..LANES {
        out[lane] = if mask >> lane & 1 != 0 { a[lane] } else { b[lane] };
    }
    out
}

#[inline(always)]
fn mask(answers: [bool; LANES]) -> u16 {
    answers.iter().rev().fold(0, |bits, answer| bits << 1 | u16::from(*answer))
}

/// Defines operations of one expression each.
macro_rules! operations {
    ($($name:ident($($x:ident: $X:ident),*) -> $Y:ident = $result:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($x: Self::$X),*) -> Self::$Y {
            $result
        }
    )*};
}

impl Rows for Plain {
    type Float = [f32; LANES];
    type Whole = [i32; LANES];
    type Mask = u16;

    operations! {
        add(a: Float, b: Float) -> Float = each(a, b, |a, b| a + b);
        sub(a: Float, b: Float) -> Float = each(a, b, |a, b| a - b);
        mul(a: Float, b: Float) -> Float = each(a, b, |a, b| a * b);
        min(a: Float, b: Float) -> Float = each(a, b, |a, b| if a < b { a } else { b });
        max(a: Float, b: Float) -> Float = each(a, b, |a, b| if a > b { a } else { b });
        abs(x: Float) -> Float = each(x, x, |x, _| x.abs());
        less(a: Float, b: Float) -> Mask = mask(each(a, b, |a, b| a < b));
        differ(a: Float, b: Float) -> Mask = mask(each(a, b, |a, b| a != b));
        choose(mask: Mask, a: Float, b: Float) -> Float = pick(mask, a, b);
        choose_whole(mask: Mask, a: Whole, b: Whole) -> Whole = pick(mask, a, b);
        floats_of(x: Whole) -> Float = each(x, x, |x, _| x as f32);
        whole_add(a: Whole, b: Whole) -> Whole = each(a, b, i32::wrapping_add);
        or(a: Whole, b: Whole) -> Whole = each(a, b, |a, b| a | b);
        and(a: Whole, b: Whole) -> Whole = each(a, b, |a, b| a & b);
    }

    #[inline(always)]
    fn load(self, x: &[f32; LANES]) -> Self::Float {
        *x
    }
    #[inline(always)]
    fn store(self, x: Self::Float) -> [f32; LANES] {
        x
    }
    #[inline(always)]
    fn load_wholes(self, x: &[i32; LANES]) -> Self::Whole {
        *x
    }
    #[inline(always)]
    fn store_wholes(self, x: Self::Whole) -> [i32; LANES] {
        x
    }
    #[inline(always)]
    fn store_16(self, x: Self::Whole, lanes: u16, to: &mut [i16; LANES]) {
        for lane in 0..LANES {
            to[lane] = if lanes >> lane & 1 != 0 { x[lane] as i16 } else { 0 };
        }
    }
    #[inline(always)]
    fn floats(self, x: f32) -> Self::Float {
        [x; LANES]
    }
    #[inline(always)]
    fn wholes(self, x: i32) -> Self::Whole {
        [x; LANES]
    }
    #[inline(always)]
    fn madd(self, a: Self::Float, b: Self::Float, c: Self::Float) -> Self::Float {
        self.add(self.mul(a, b), c)
    }
    #[inline(always)]
    fn bits(self, mask: Self::Mask) -> u16 {
        mask
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self, x: Self::Whole) -> Self::Whole {
        each(x, x, |x, _| x << N)
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self, x: Self::Whole) -> Self::Whole {
        each(x, x, |x, _| (x as u32 >> N) as i32)
    }
    #[inline(always)]
    fn add_products<const N: usize>(
        self,
        groups: &[Group<N>],
        x: &[i16],
        mut sums: Self::Whole,
    ) -> Self::Whole {
        // Where rows have another form for every processor, this one is only the reference.
        if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
            pairs::check(groups, x);
            pairs::add_products_plain(groups, x, &mut sums);
        } else {
            pairs::add_products(groups, x, &mut sums);
        }
        sums
    }
}

#[cfg(all(
    test,
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))
))]
mod tests {
    use super::*;

    /// Returns the results of every operation on these rows, as plain numbers.
    fn all<R: Rows>(r: R, a: &[f32; LANES], b: &[f32; LANES]) -> (Vec<[f32; LANES]>, Vec<i32>) {
        let (x, y) = (r.load(a), r.load(b));
        let less = r.less(x, y);
        let floats = [
            r.add(x, y),
            r.sub(x, y),
            r.mul(x, y),
            r.min(x, y),
            r.max(x, y),
            r.abs(x),
            r.choose(less, x, r.floats(3.5)),
            // Exact, fused or not.
            r.madd(r.floats(3.0), r.floats(5.0), r.floats(7.0)),
        ];
        let [n, m] = [a, b].map(|x| r.load_wholes(&x.map(|x| x.to_bits() as i32 >> 3)));
        let mut short = [[1; LANES]; 2];
        r.store_16(n, 0xFFFF, &mut short[0]);
        r.store_16(n, 0x0FF1, &mut short[1]);
        let taps = std::array::from_fn(|j| [j as i16 * 900 - 7000, 31_000 - j as i16]);
        let groups = [Group::<16> { start: 0, taps }, Group { start: 3, taps }];
        let row: Vec<i16> = (0..60).map(|k| (k * k * 37 - 20_000) as i16).collect();
        let wholes = [
            r.whole_add(n, m),
            r.or(n, m),
            r.and(n, m),
            r.shift_left::<4>(n),
            r.shift_right::<12>(n),
            r.choose_whole(r.differ(x, y), n, r.wholes(-7)),
            r.add_products(&groups, &row, m),
        ];
        let mut numbers: Vec<i32> =
            wholes.iter().flat_map(|whole| r.store_wholes(*whole)).collect();
        numbers.extend(short.as_flattened().iter().map(|x| i32::from(*x)));
        numbers.extend([r.bits(less), r.bits(r.differ(x, y))].map(i32::from));
        let mut floats: Vec<_> = floats.iter().map(|x| r.store(*x)).collect();
        floats.push(r.store(r.floats_of(n)));
        (floats, numbers)
    }

    #[test]
    fn both_kinds_of_rows_give_the_same_bits() {
        #[cfg(avx512)]
        let Some(fast) = Avx512::new() else { return };
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        let fast = Neon;
        for seed in 0..50u32 {
            let row = |k: u32| -> [f32; LANES] {
                std::array::from_fn(|lane| {
                    let hash = (seed * 64 + k * 16 + lane as u32).wrapping_mul(2_654_435_761);
                    if hash % 5 == 0 { 2.0 } else { (hash >> 9) as f32 / 1e5 - 40.0 }
                })
            };
            assert_eq!(all(fast, &row(0), &row(1)), all(Plain, &row(0), &row(1)), "seed {seed}");
        }
    }
}
