//! Compiles the shim against the machine's libdpdk, where the feature asks for it.

fn main() {
    println!("cargo::rerun-if-changed=shim");
    #[cfg(feature = "libdpdk")]
    shim();
}

#[cfg(feature = "libdpdk")]
fn shim() {
    // The libraries are named here, not by pkg-config's output: that lists all sixty, and a binary
    // loads all that it names.
    let mut wanted = pkg_config::Config::new();
    wanted.atleast_version("22.11").cargo_metadata(false);
    let found = wanted.probe("libdpdk").unwrap_or_else(|error| {
        panic!("the feature `libdpdk` needs DPDK 22.11 or newer (apt install libdpdk-dev): {error}")
    });
    let mut build = cc::Build::new();
    build.includes(found.include_paths).flag("-include").flag("rte_config.h");
    // The instructions that the machine's libdpdk was built for (`pkg-config --cflags libdpdk`).
    if cfg!(target_arch = "x86_64") {
        build.flag("-march=corei7");
    }
    let files = ["eal.c", "log.c", "gate.c", "port.c", "burst.c", "flow.c"];
    build.files(files.map(|file| format!("shim/{file}"))).opt_level(3).std("gnu11");
    build
        .define("ALLOW_EXPERIMENTAL_API", None)
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wno-unused-parameter");
    build.compile("millstream_dpdk");
    for path in found.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    for library in ["ethdev", "mbuf", "mempool", "eal", "ring"] {
        println!("cargo::rustc-link-lib=dylib=rte_{library}");
    }
}
