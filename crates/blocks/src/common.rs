//! Functions that several blocks share.

use millstream_flow::{BlockError, ParameterValue};

/// Writes one item for each input item.
pub(crate) fn each<A: Copy, B>(
    input: &[A],
    output: &mut [B],
    mut make: impl FnMut(A) -> B,
) -> (usize, usize) {
    let items = input.len().min(output.len());
    for (to, from) in output[..items].iter_mut().zip(&input[..items]) {
        *to = make(*from);
    }
    (items, items)
}

/// Returns the number in a message.
pub(crate) fn number(value: &ParameterValue) -> Result<f64, BlockError> {
    match value {
        ParameterValue::Number(x) if x.is_finite() => Ok(*x),
        ParameterValue::Integer(n) => Ok(*n as f64),
        other => Err(format!("expected a number, found {other}").into()),
    }
}
