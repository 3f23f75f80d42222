//! How the shared library is linked: its name has the version of the ABI.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmillstream_c.so.1");
    // A program may unload the library while a thread of it still runs.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
