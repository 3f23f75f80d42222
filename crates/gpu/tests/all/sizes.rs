//! Kernels that no device can have, and the rate of copies.

use crate::all_devices;
use millstream_accel::{Accelerator, AcceleratorError, Kernel};

/// Returns why the device does not take a kernel.
fn refusal(gpu: &dyn Accelerator, kernel: &Kernel, frames: usize) -> String {
    match gpu.open(kernel, 3, frames) {
        Err(error @ AcceleratorError::Unfit { .. }) => error.to_string(),
        Err(error) => panic!("{kernel}: {error}"),
        Ok(_) => panic!("{kernel}: the device takes it"),
    }
}

#[test]
fn what_is_too_large_is_refused_with_the_limit() {
    for gpu in all_devices() {
        let refusal = |kernel, frames| refusal(&**gpu, &kernel, frames);
        let text = refusal(Kernel::PowerSpectrum { window: vec![1.0; 5000], average: 1 }, 1);
        assert!(text.contains("5000 samples, and the limit is 4096, or "), "{text}");
        let channels = Kernel::Channelizer { channels: 4097, hop: 4097, taps: vec![1.0] };
        let text = refusal(channels, 1);
        assert!(text.contains("4097 channels, and the limit is 4096"), "{text}");
        let taps = vec![millstream_dsp::Sample::new(1.0, 0.0)];
        let text = refusal(Kernel::Fir { taps, decimation: 1 }, 1 << 32);
        let bytes = "need 34359738752 bytes for samples, and the limit is ";
        let samples = "need 4294967312 samples, and the limit is ";
        assert!(text.contains(bytes) || text.contains(samples), "{text}");
        assert!(text.ends_with("Take fewer frames in a batch"), "{text}");
    }
}

#[test]
fn copies_have_a_rate() {
    for gpu in all_devices() {
        let rate = gpu.copy_rate(1 << 20).unwrap();
        // Slower than any bus of this century, and faster than any memory.
        assert!((1e7..1e13).contains(&rate), "{}: {rate}", gpu.name());
    }
}
