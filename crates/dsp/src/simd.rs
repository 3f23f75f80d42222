//! Run-time choice between copies of a kernel: baseline, AVX2 + FMA, and AVX-512 on request.

/// Returns whether this processor runs the AVX2 + FMA copies.
#[inline]
#[must_use]
pub fn has_avx2_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Returns whether this processor runs the AVX-512 copies, and the compiler made them (from Rust
/// 1.89 on).
#[inline]
#[must_use]
pub fn has_avx512() -> bool {
    #[cfg(avx512)]
    {
        has_avx2_fma() && std::arch::is_x86_feature_detected!("avx512f")
    }
    #[cfg(not(avx512))]
    {
        false
    }
}

/// Returns whether this processor runs copies that multiply pairs of 16-bit integers in 64-byte
/// registers.
#[cfg(avx512)]
pub(crate) fn has_vnni() -> bool {
    is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512f")
}

/// Returns `a * b + c`, fused when `FMA` is set.
///
/// The fused form must be chosen only where the target has the instruction, because elsewhere it is
/// a slow library call. [`multiversion!`](crate::multiversion) passes the right constant.
#[inline(always)]
#[must_use]
pub fn madd<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Defines a function that runs the generic kernel `$body::<FMA>` compiled for the best
/// instruction set of this processor.
///
/// `$body` must be `#[inline(always)]` and take one `const FMA: bool` parameter. With `, avx512`
/// behind it there is a third copy, for kernels that 64-byte registers make faster (measure:
/// unaligned loads then cross a cache line every time); the crate must have the build script of
/// this one, which finds whether the compiler knows AVX-512. On ARM64 there is one copy: the
/// baseline has vectors and fused multiply-add.
///
/// ```
/// use millstream_dsp::{multiversion, simd::madd};
///
/// #[inline(always)]
/// fn scale_add_body<const FMA: bool>(gain: f32, x: &[f32], y: &mut [f32]) {
///     for (y, x) in y.iter_mut().zip(x) {
///         *y = madd::<FMA>(gain, *x, *y);
///     }
/// }
///
/// multiversion! {
///     /// Adds `gain * x` to `y`.
///     fn scale_add(gain: f32, x: &[f32], y: &mut [f32]) = scale_add_body;
/// }
///
/// let mut y = [1.0, 2.0];
/// scale_add(2.0, &[1.0, 1.0], &mut y);
/// assert_eq!(y, [3.0, 4.0]);
/// ```
#[macro_export]
macro_rules! multiversion {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident;
    ) => {
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                unsafe fn wide($($arg: $ty),*) $(-> $ret)? {
                    $body::<true>($($arg),*)
                }
                if $crate::simd::has_avx2_fma() {
                    // SAFETY: just checked: the processor has what `wide` is compiled for.
                    return unsafe { wide($($arg),*) };
                }
            }
            // ARM64 always has the instruction.
            $body::<{ cfg!(target_arch = "aarch64") }>($($arg),*)
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? =
            $body:ident, avx512;
    ) => {
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[cfg(avx512)]
            {
                #[target_feature(enable = "avx512f,avx2,fma")]
                unsafe fn widest($($arg: $ty),*) $(-> $ret)? {
                    $body::<true>($($arg),*)
                }
                if $crate::simd::has_avx512() {
                    // SAFETY: just checked: the processor has what `widest` is compiled for.
                    return unsafe { widest($($arg),*) };
                }
            }
            $crate::multiversion! { fn narrower($($arg: $ty),*) $(-> $ret)? = $body; }
            narrower($($arg),*)
        }
    };
}
