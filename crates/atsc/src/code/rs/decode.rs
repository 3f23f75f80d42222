//! Correction: syndromes, Berlekamp-Massey, Chien search, Forney's formula.

use super::{CORRECTABLE_BYTES, check::is_codeword, remainder::remainder};
use crate::code::galois::{div, eval, exp, log, mul};
use crate::params::{CODEWORD_BYTES, PARITY_BYTES, PAYLOAD_BYTES};

/// The codeword has more errors than the code can correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the packet has more than {CORRECTABLE_BYTES} wrong bytes, which is more than the \
     Reed-Solomon code can correct"
)]
pub struct Uncorrectable;

/// Corrects a codeword in place and returns how many bytes were wrong.
///
/// A clean codeword costs a check alone.
///
/// # Errors
/// [`Uncorrectable`]; the codeword is then unchanged.
pub fn decode(codeword: &mut [u8; CODEWORD_BYTES]) -> Result<usize, Uncorrectable> {
    if is_codeword(codeword) { Ok(0) } else { correct(codeword) }
}

#[cold]
fn correct(codeword: &mut [u8; CODEWORD_BYTES]) -> Result<usize, Uncorrectable> {
    let (payload, parity) = codeword.split_first_chunk::<PAYLOAD_BYTES>().expect("fixed sizes");
    // The word modulo the generator has the same values at the generator's roots.
    let mut rest = remainder(payload);
    rest.iter_mut().zip(parity).for_each(|(r, p)| *r ^= p);
    let syndromes: [u8; PARITY_BYTES] = std::array::from_fn(|root| eval(&rest, exp(root)));
    let (locator, degree) = locator(&syndromes)?;
    let evaluator = evaluator(&syndromes, &locator);
    let mut fixes = [(0, 0); CORRECTABLE_BYTES];
    let mut found = 0;
    for position in 0..CODEWORD_BYTES {
        let power = CODEWORD_BYTES - 1 - position;
        let inverse = exp((255 - power) % 255);
        if value_at(&locator, inverse) != 0 {
            continue;
        }
        // Forney with first root alpha^0: magnitude = X * omega(1/X) / lambda'(1/X).
        let slope = derivative_at(&locator, inverse);
        if found == degree || slope == 0 {
            return Err(Uncorrectable);
        }
        fixes[found] = (position, mul(exp(power), div(value_at(&evaluator, inverse), slope)));
        found += 1;
    }
    if found != degree {
        return Err(Uncorrectable);
    }
    fixes[..found].iter().for_each(|(position, magnitude)| codeword[*position] ^= magnitude);
    Ok(found)
}

/// Computes the error locator (lowest power first) and its degree.
fn locator(
    syndromes: &[u8; PARITY_BYTES],
) -> Result<([u8; PARITY_BYTES + 1], usize), Uncorrectable> {
    let mut current = [0; PARITY_BYTES + 1];
    let mut previous = current;
    (current[0], previous[0]) = (1, 1);
    let (mut length, mut gap, mut last) = (0, 1, 1);
    for n in 0..PARITY_BYTES {
        let discrepancy = (0..=length).fold(0, |d, i| d ^ mul(current[i], syndromes[n - i]));
        if discrepancy == 0 {
            gap += 1;
            continue;
        }
        let before = current;
        let scale = div(discrepancy, last);
        for i in gap..=PARITY_BYTES {
            current[i] ^= mul(scale, previous[i - gap]);
        }
        if 2 * length <= n {
            (length, previous, last, gap) = (n + 1 - length, before, discrepancy, 1);
        } else {
            gap += 1;
        }
    }
    if length > CORRECTABLE_BYTES { Err(Uncorrectable) } else { Ok((current, length)) }
}

/// Computes the error evaluator: syndromes times locator, modulo x^20.
fn evaluator(
    syndromes: &[u8; PARITY_BYTES],
    locator: &[u8; PARITY_BYTES + 1],
) -> [u8; PARITY_BYTES] {
    std::array::from_fn(|n| (0..=n).fold(0, |sum, i| sum ^ mul(locator[i], syndromes[n - i])))
}

/// Returns the value of a polynomial, lowest power first.
fn value_at(lowest_first: &[u8], x: u8) -> u8 {
    lowest_first.iter().rev().fold(0, |acc, c| mul(acc, x) ^ c)
}

/// Returns the value of the formal derivative: odd coefficients at even powers.
fn derivative_at(lowest_first: &[u8], x: u8) -> u8 {
    let square = exp(2 * log(x) % 255);
    lowest_first.iter().skip(1).step_by(2).rev().fold(0, |acc, c| mul(acc, square) ^ c)
}
