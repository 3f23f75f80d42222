//! Filters with many taps, by Fourier transforms; on the CPU or on a GPU.

use crate::taps::TapParameters;
use crate::{Made, Sample};
use millstream_accel::{Kernel, OffloadParameters, on_host};
use millstream_flow::BlockError;
use millstream_flow::registry::{BlockParameters, wrong};

/// The most samples for one result: a frame must fit into memory.
const DECIMATION_MAX: usize = 1 << 20;

/// Returns the kernel of a filter.
pub(crate) fn filter_kernel(taps: &TapParameters, decimation: usize) -> Result<Kernel, BlockError> {
    let (re, im) = (taps.real()?, taps.imaginary()?);
    let im = im.unwrap_or_else(|| vec![0.0; re.len()]);
    let taps = re.iter().zip(im).map(|(re, im)| Sample::new(*re, im)).collect();
    if decimation > DECIMATION_MAX {
        return Err(wrong("decimation", decimation, "1 to 1048576"));
    }
    Ok(Kernel::Fir { taps, decimation })
}

/// FIR filter for many taps, by FFTs; decimates.
#[derive(BlockParameters)]
#[block(
    fft_filter,
    pure,
    example = "design = \"low_pass\"\nrate_hz = 1e6\ncutoff_hz = 100e3\ntransition_hz = 5e3\n\
               decimation = 4"
)]
struct FftFilterParameters {
    /// number of input items for one output item
    #[parameter(default = 1, least = 1, most = DECIMATION_MAX)]
    decimation: usize,
    #[parameter(flatten)]
    taps: TapParameters,
    #[parameter(flatten)]
    offload: OffloadParameters,
}

impl FftFilterParameters {
    fn make(self) -> Made {
        let kernel = filter_kernel(&self.taps, self.decimation)?;
        self.offload.make::<Sample>(kernel, on_host::<Sample>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;
    use millstream_flow::Mock;

    #[test]
    fn it_is_the_filter_fir_but_for_rounding() {
        let registry = crate::registry();
        let mut noise = Noise::new(4);
        let samples: Vec<Sample> = (0..9001).map(|_| noise.gaussian_pair()).collect();
        for (taps, decimation) in [(1000, 1), (1000, 3), (3, 1), (40, 5)] {
            let taps: Vec<_> = (1..=taps).map(|n| format!("{:.4}", f64::from(n).sin())).collect();
            let values = format!("taps = [{}]\ndecimation = {decimation}", taps.join(","));
            let run = |name| {
                let mut mock = Mock::new(registry.make(name, &values).unwrap());
                mock.feed("in", &samples);
                mock.end("in");
                mock.run().unwrap();
                mock.take::<Sample>("out")
            };
            let (long, plain) = (run("fft_filter"), run("fir"));
            assert_eq!(long.len(), plain.len());
            let scale = (taps.len() as f32).sqrt();
            let worst = long.iter().zip(&plain).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max);
            assert!(worst < 2e-5 * scale, "{decimation}: {worst}");
        }
    }

    #[test]
    fn a_block_for_a_device_that_is_not_there_says_so() {
        let registry = crate::registry();
        let Err(error) = registry.make("fft_filter", "taps = [1]\ndomain = \"gpu\"") else {
            panic!("no device is registered in this test")
        };
        assert!(error.to_string().contains("feature `gpu`"), "{error}");
        assert!(registry.make("fft_filter", "taps = [1]\ndomain = \"auto\"").is_ok());
        let Err(error) = registry.make("fft_filter", "taps = [1]\nstall_ms = 0") else {
            panic!("a device needs time")
        };
        assert!(error.to_string().contains("0.1 to 60000"), "{error}");
        let Err(error) = registry.make("fft_filter", "taps = [1]\ndecimation = 5000000000") else {
            panic!("a frame must fit into memory")
        };
        assert!(error.to_string().contains("1 to 1048576"), "{error}");
    }
}
