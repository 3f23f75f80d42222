//! Arithmetic in GF(256) with x^8 + x^4 + x^3 + x^2 + 1 (A/53 Part 2, clause 5.3).

/// The field polynomial.
const POLYNOMIAL: u16 = 0x11D;

/// Powers of alpha, twice over so that sums of two logarithms need no reduction.
const EXP: [u8; 512] = tables().0;

/// Logarithms to the base alpha; `LOG[0]` is unused.
const LOG: [u8; 256] = tables().1;

const fn tables() -> ([u8; 512], [u8; 256]) {
    let (mut exp, mut log) = ([0; 512], [0; 256]);
    let mut value: u16 = 1;
    let mut power = 0;
    while power < 255 {
        exp[power] = value as u8;
        exp[power + 255] = value as u8;
        log[value as usize] = power as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        power += 1;
    }
    (exp, log)
}

/// Returns alpha to the power `n` (any `n` below 510).
#[inline]
#[must_use]
pub const fn exp(n: usize) -> u8 {
    EXP[n]
}

/// Returns the logarithm of `x`.
///
/// # Panics
/// In debug builds, if `x` is zero.
#[inline]
#[must_use]
pub fn log(x: u8) -> usize {
    debug_assert!(x != 0, "zero has no logarithm");
    LOG[x as usize] as usize
}

/// Returns the product.
#[inline]
#[must_use]
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// Returns the quotient; `b` must not be zero.
#[inline]
#[must_use]
pub fn div(a: u8, b: u8) -> u8 {
    if a == 0 { 0 } else { EXP[log(a) + 255 - log(b)] }
}

/// Returns the value at `x` of a polynomial, highest power first.
#[must_use]
pub fn eval(highest_first: &[u8], x: u8) -> u8 {
    highest_first.iter().fold(0, |acc, c| mul(acc, x) ^ c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the schoolbook product, computed bit by bit.
    fn slow_mul(a: u8, b: u8) -> u8 {
        let mut product = (0..8)
            .fold(0u16, |p, bit| if b >> bit & 1 != 0 { p ^ (u16::from(a) << bit) } else { p });
        for bit in (8..16).rev() {
            if product >> bit & 1 != 0 {
                product ^= POLYNOMIAL << (bit - 8);
            }
        }
        product as u8
    }

    #[test]
    fn product_agrees_with_the_schoolbook() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), slow_mul(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn division_undoes_multiplication() {
        for a in 0..=255 {
            for b in 1..=255 {
                assert_eq!(div(mul(a, b), b), a);
            }
        }
    }
}
