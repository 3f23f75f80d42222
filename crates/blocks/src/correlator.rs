//! Correlation with a reference; on the CPU or on a GPU.

use crate::{Made, Sample};
use millstream_accel::{Kernel, OffloadParameters, on_host};
use millstream_flow::registry::{BlockParameters, wrong};

/// Returns the kernel that correlates: `y[n] = Σₖ conj(reference[k]) · x[n - (length - 1) + k]`.
#[must_use]
pub fn correlator(reference: &[Sample]) -> Kernel {
    Kernel::Fir { taps: reference.iter().rev().map(Sample::conj).collect(), decimation: 1 }
}

/// Correlates with a reference, whose end gives the peak.
#[derive(BlockParameters)]
#[block(correlator, pure, example = "reference = [1, 1, 1, -1, -1, 1, -1]")]
struct CorrelatorParameters {
    /// real parts of the reference
    reference: Vec<f32>,
    /// imaginary parts of the reference
    reference_im: Option<Vec<f32>>,
    #[parameter(flatten)]
    offload: OffloadParameters,
}

impl CorrelatorParameters {
    fn make(self) -> Made {
        let re = self.reference;
        if re.is_empty() {
            return Err(wrong("reference", "[]", "at least one number"));
        }
        let im = self.reference_im.unwrap_or_else(|| vec![0.0; re.len()]);
        if im.len() != re.len() {
            let (is, expected) = (im.len(), re.len());
            let text = format!(
                "reference_im: {is} numbers; expected {expected}, as in reference, or none for a \
                 real reference"
            );
            return Err(text.into());
        }
        let reference: Vec<_> = re.iter().zip(im).map(|(re, im)| Sample::new(*re, im)).collect();
        self.offload.make::<Sample>(correlator(&reference), on_host::<Sample>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn the_peak_is_at_the_end_of_the_reference() {
        let registry = crate::registry();
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
