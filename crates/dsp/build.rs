//! Sets `cfg(avx512)` for x86-64 where the compiler has AVX-512: from Rust 1.89 on.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name| std::env::var(name).expect("cargo sets it");
    let output = Command::new(set("RUSTC")).arg("--version").output().expect("the compiler runs");
    // Such as `rustc 1.95.0 (59807616e 2026-04-14)`.
    let version = String::from_utf8_lossy(&output.stdout);
    let minor = version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    if set("CARGO_CFG_TARGET_ARCH") == "x86_64" && minor.is_some_and(|minor| minor >= 89) {
        println!("cargo::rustc-cfg=avx512");
    }
}
