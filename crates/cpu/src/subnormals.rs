//! Subnormal floats count as zero on threads that process samples.
//!
//! A filter behind a signal that has ended decays into the subnormal range (below 1e-38 for `f32`)
//! and often never leaves it by rounding. Many processors take ten to a hundred times as long for
//! an operation on such a number. So each thread of the runtime sets the processor to read and
//! write them as zero: FTZ and DAZ in MXCSR on x86-64 (Intel SDM volume 1, section 10.2.3), FZ in
//! FPCR on 64-bit Arm (Arm ARM, section C5.2). Elsewhere nothing changes.

/// Lets this thread, and the threads that it starts, count subnormal floats as zero.
#[inline]
pub fn flush_subnormals() {
    #[cfg(target_arch = "x86_64")]
    {
        /// Flush to zero, and denormals are zero.
        const FTZ_DAZ: u32 = 1 << 15 | 1 << 6;
        let mut control = 0u32;
        // SAFETY: the two instructions read and write `control` and the thread's own register.
        // Only how subnormal numbers round is set, on this thread: no code of this program, and no
        // constant that the compiler folds, depends on the value of a subnormal number.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack));
            control |= FTZ_DAZ;
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack));
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        /// Flush to zero.
        const FZ: u64 = 1 << 24;
        let mut control: u64;
        // SAFETY: as above; the instructions touch the thread's own register only.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack));
            control |= FZ;
            std::arch::asm!("msr fpcr, {}", in(reg) control, options(nomem, nostack));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn half_of_the_least_normal() -> f32 {
        black_box(f32::MIN_POSITIVE) * black_box(0.5)
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn subnormals_are_zero_on_the_thread_that_asked_and_nowhere_else() {
        let flushed = std::thread::spawn(|| {
            flush_subnormals();
            let read = black_box(f32::from_bits(1)) * black_box(1e30);
            (half_of_the_least_normal(), read, black_box(1.0_f32) / black_box(3.0))
        });
        assert_eq!(flushed.join().unwrap(), (0.0, 0.0, 1.0 / 3.0));
        assert!(half_of_the_least_normal() > 0.0);
    }
}
