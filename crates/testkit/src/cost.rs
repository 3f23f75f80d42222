//! Kernels to be run a number of times while a program counts their instructions.

/// Whether every processor of this kind has the fused multiplication and addition, so that a scalar
/// form uses it.
pub const FUSED: bool = cfg!(target_arch = "aarch64");

/// Runs one of two forms of a kernel, as often as the environment says: `MILLSTREAM_FORM` is
/// `scalar` or `fast`, `MILLSTREAM_REPEATS` a number. Without them it runs each form once.
///
/// # Panics
/// If a variable has another value.
pub fn repeat(mut scalar: impl FnMut(), mut fast: impl FnMut()) {
    let form = std::env::var("MILLSTREAM_FORM");
    let repeats = std::env::var("MILLSTREAM_REPEATS")
        .map_or(1, |repeats| repeats.parse().expect("MILLSTREAM_REPEATS is a number"));
    match form.as_deref() {
        Ok("scalar") => (0..repeats).for_each(|_| scalar()),
        Ok("fast") => (0..repeats).for_each(|_| fast()),
        Ok(other) => panic!("MILLSTREAM_FORM is {other}: set it to scalar or fast"),
        Err(_) => {
            scalar();
            fast();
        }
    }
}
