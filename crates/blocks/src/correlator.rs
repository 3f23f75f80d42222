//! Correlation with a reference; on the CPU or on a GPU.

use crate::{Made, Sample};
use millstream_accel::{Kernel, on_host};
use millstream_flow::registry::{BlockType, Parameters};
use millstream_flow::{ParameterKind, Registry};

/// Returns the kernel that correlates: `y[n] = Σₖ conj(reference[k]) · x[n - (length - 1) + k]`.
#[must_use]
pub fn correlator(reference: &[Sample]) -> Kernel {
    Kernel::Fir { taps: reference.iter().rev().map(Sample::conj).collect(), decimation: 1 }
}

fn make(parameters: &Parameters) -> Made {
    let (re, im) = (parameters.numbers("reference"), parameters.numbers("reference_im"));
    if re.is_empty() {
        return Err(parameters.wrong("reference", "at least one number"));
    }
    if !im.is_empty() && im.len() != re.len() {
        let (is, expected) = (im.len(), re.len());
        let text = format!(
            "reference_im: {is} numbers; expected {expected}, as in reference, or none for a real \
             reference"
        );
        return Err(text.into());
    }
    let im = im.iter().copied().chain(std::iter::repeat(0.0));
    let reference: Vec<_> =
        re.iter().zip(im).map(|(re, im)| Sample::new(*re as f32, im as f32)).collect();
    millstream_accel::make::<Sample>(parameters, correlator(&reference), on_host::<Sample>)
}

pub(crate) fn register(registry: &mut Registry) {
    let block_type =
        BlockType::declare("correlator", "Correlates with a reference, whose end gives the peak.")
            .required("reference", ParameterKind::Numbers, "real parts of the reference")
            .optional("reference_im", &[][..] as &[f64], "imaginary parts of the reference");
    registry.register(
        millstream_accel::declare(block_type)
            .example("reference = [1, 1, 1, -1, -1, 1, -1]")
            .pure(make),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn the_peak_is_at_the_end_of_the_reference() {
        let mut registry = Registry::new();
        register(&mut registry);
        let values = "reference = [1, 0, -2]\nreference_im = [0, 1, 1]";
        let mut mock = Mock::new(registry.make("correlator", values).unwrap());
        let reference = [Sample::new(1.0, 0.0), Sample::new(0.0, 1.0), Sample::new(-2.0, 1.0)];
        let mut x = vec![Sample::default(); 10];
        x[4..7].copy_from_slice(&reference);
        mock.feed("in", &x);
        mock.run().unwrap();
        let y = mock.take::<Sample>("out");
        assert!((y[6] - Sample::new(7.0, 0.0)).norm() < 1e-5, "{y:?}");
        assert!(y.iter().enumerate().all(|(n, y)| n == 6 || y.norm() < 6.9));
        assert!(registry.make("correlator", "reference = []").is_err());
        assert!(registry.make("correlator", "reference = [1]\nreference_im = [1, 2]").is_err());
    }
}
