//! Whether a word is a codeword, which nearly every received word is.

use super::remainder::remainder;
use crate::params::{CODEWORD_BYTES, PAYLOAD_BYTES};

/// Returns whether the word is a codeword.
#[inline]
#[must_use]
pub fn is_codeword(word: &[u8; CODEWORD_BYTES]) -> bool {
    #[cfg(avx512)]
    if has_gfni() {
        // SAFETY: `has_gfni` has found the features.
        return unsafe { x86::is_codeword(word) };
    }
    let (payload, parity) = word.split_first_chunk::<PAYLOAD_BYTES>().expect("fixed sizes");
    remainder(payload) == parity
}

/// Returns whether this processor multiplies bytes by matrices of bits.
#[cfg(avx512)]
fn has_gfni() -> bool {
    is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2")
}

#[cfg(avx512)]
#[allow(clippy::incompatible_msrv, reason = "compiled only where the compiler has GFNI")]
mod x86 {
    use crate::code::galois;
    use crate::params::{CODEWORD_BYTES, PARITY_BYTES};
    use millstream_dsp::chunks::Chunks;
    use std::arch::x86_64::*;

    /// Roots of a vector, and vectors of all roots.
    const LANES: usize = 4;
    const VECTORS: usize = PARITY_BYTES / LANES;

    /// For each root of the generator the matrix of a multiplication by a power of it: the byte
    /// `7 - i` has the bits of the factor that the bit `i` of the product is the sum of.
    #[repr(align(32))]
    struct Matrices([[u64; LANES]; VECTORS]);

    static EIGHTH: Matrices = matrices(8);
    static FOURTH: Matrices = matrices(4);
    static SECOND: Matrices = matrices(2);
    static FIRST: Matrices = matrices(1);

    const fn matrices(power: usize) -> Matrices {
        let mut matrices = [[0; LANES]; VECTORS];
        let mut root = 0;
        while root < PARITY_BYTES {
            let factor = galois::exp(root * power % 255);
            let mut bit = 0;
            while bit < 64 {
                let (row, column) = (bit / 8, bit % 8);
                let product = galois::mul(factor, 1 << column);
                let is_set = (product >> row & 1) as u64;
                matrices[root / LANES][root % LANES] |= is_set << (8 * (7 - row) + column);
                bit += 1;
            }
            root += 1;
        }
        Matrices(matrices)
    }

    /// Evaluates the word at all roots of the generator: eight neighbouring bytes of it at a time
    /// are the coefficients of eight polynomials in the eighth power of a root.
    #[target_feature(enable = "gfni,avx2")]
    pub(super) fn is_codeword(word: &[u8; CODEWORD_BYTES]) -> bool {
        let (first, eights) = word.in_rchunks::<8>();
        let first = first.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let mut values = [all(first.swap_bytes()); VECTORS];
        for eight in eights {
            let eight = all(u64::from_le_bytes(*eight));
            for (value, matrices) in values.iter_mut().zip(&EIGHTH.0) {
                *value = _mm256_xor_si256(multiply(*value, matrices), eight);
            }
        }
        let mut any = _mm256_setzero_si256();
        for (v, value) in values.into_iter().enumerate() {
            // The first of the remaining coefficients are those of the higher powers.
            let fours = multiply(value, &FOURTH.0[v]);
            let fours = _mm256_xor_si256(fours, _mm256_srli_epi64::<32>(value));
            let twos = multiply(fours, &SECOND.0[v]);
            let twos = _mm256_xor_si256(twos, _mm256_srli_epi64::<16>(fours));
            let ones = multiply(twos, &FIRST.0[v]);
            let ones = _mm256_xor_si256(ones, _mm256_srli_epi64::<8>(twos));
            any = _mm256_or_si256(any, ones);
        }
        let values = _mm256_and_si256(any, all(0xFF));
        _mm256_testz_si256(values, values) == 1
    }

    #[inline]
    #[target_feature(enable = "gfni,avx2")]
    fn multiply(x: __m256i, matrices: &[u64; LANES]) -> __m256i {
        // SAFETY: four matrices are there.
        let matrices = unsafe { _mm256_loadu_si256(matrices.as_ptr().cast()) };
        _mm256_gf2p8affine_epi64_epi8::<0>(x, matrices)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn all(x: u64) -> __m256i {
        _mm256_set1_epi64x(x as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::rs::encode;

    #[test]
    fn a_codeword_is_one_and_every_wrong_bit_is_seen() {
        for seed in 0..20 {
            let byte = |i: usize| (i * i * 31 + i * (7 + seed) + seed * 59) as u8;
            let word = encode(&std::array::from_fn(byte));
            assert!(is_codeword(&word));
            for bit in 0..8 * CODEWORD_BYTES {
                let mut wrong = word;
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_codeword(&wrong), "bit {bit}");
            }
        }
    }

    #[test]
    fn the_fast_copy_sees_each_root_alone() {
        // A word that all roots but one have in common.
        use crate::code::galois::{exp, mul};
        for missing in 0..20 {
            let mut word = [0; CODEWORD_BYTES];
            word[CODEWORD_BYTES - 1] = 1;
            for root in (0..20).filter(|root| *root != missing) {
                for i in 0..CODEWORD_BYTES {
                    let next = word.get(i + 1).copied().unwrap_or(0);
                    word[i] = mul(word[i], exp(root)) ^ next;
                }
            }
            assert!(!is_codeword(&word), "alpha^{missing}");
            for i in 0..CODEWORD_BYTES {
                let next = word.get(i + 1).copied().unwrap_or(0);
                word[i] = mul(word[i], exp(missing)) ^ next;
            }
            assert!(is_codeword(&word), "alpha^{missing}");
        }
    }
}
