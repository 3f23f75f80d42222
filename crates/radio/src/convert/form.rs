//! The forms of a conversion.

use super::self_test::SelfTest;
use std::sync::OnceLock;

/// The test of the forms, which runs when the first one is chosen.
static TESTED: OnceLock<SelfTest> = OnceLock::new();

/// The form of a conversion: scalar or an instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvertForm {
    /// Plain Rust, the reference.
    Scalar,
    /// 128-bit vectors of ARM64.
    Neon,
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

impl ConvertForm {
    /// Every form, the fastest last.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Neon, Self::Avx2, Self::Avx512];

    /// Returns a stable name for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Returns whether this processor has the instructions of the form, and the compiler knew them
    /// (those of AVX-512 from Rust 1.89 on).
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            Self::Scalar => true,
            Self::Neon => false,
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            Self::Avx512 => {
                cfg!(avx512)
                    && std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512bw")
            }
        };
        #[cfg(not(target_arch = "x86_64"))]
        return match self {
            Self::Scalar => true,
            // Every ARM64 processor has it. Big-endian lanes lie in another order.
            Self::Neon => cfg!(all(target_arch = "aarch64", target_endian = "little")),
            Self::Avx2 | Self::Avx512 => false,
        };
    }

    /// Returns the fastest form that this processor has and that gives the bits of the scalar one.
    /// The first call tests that, in a fraction of a millisecond.
    pub fn best() -> Self {
        TESTED.get_or_init(SelfTest::run).best
    }

    /// Returns the forms that this processor has, but that gave wrong results in the test; it is
    /// empty before the test, too.
    pub fn wrong() -> &'static [Self] {
        TESTED.get().map_or(&[], |tested| &tested.wrong)
    }
}
