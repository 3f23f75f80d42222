//! Functions that several blocks share.

use millstream_flow::{BlockError, ItemRatio, ParameterValue};

/// Writes one item for each input item; there are as many of both.
pub(crate) fn each<A: Copy, B>(input: &[A], output: &mut [B], mut make: impl FnMut(A) -> B) {
    for (to, from) in output.iter_mut().zip(input) {
        *to = make(*from);
    }
}

/// Returns the number in a message.
pub(crate) fn number(value: &ParameterValue) -> Result<f64, BlockError> {
    match value {
        ParameterValue::Number(x) if x.is_finite() => Ok(*x),
        ParameterValue::Integer(n) => Ok(*n as f64),
        other => Err(format!("expected a number, found {other}").into()),
    }
}

/// Returns the estimated time for an item of a filter that changes the rate and computes each
/// output from `taps` inputs.
pub(crate) fn resampled_ns<T>(taps: f64, rate: ItemRatio) -> f64 {
    let output_ns = 0.03 * taps * size_of::<T>() as f64;
    // Items are counted at the busier port.
    output_ns * rate.ratio().min(1.0)
}

/// Returns the estimated time for an item of a Fourier transform of `size`.
pub(crate) fn transform_ns(size: usize) -> f64 {
    0.4 + 0.07 * (size as f64).log2()
}
