#!/usr/bin/env bash
# Runs a careless program of SoapySDR (tests/stress.cpp) under the address and the thread sanitizer: soapy/sanitize.sh [TURNS]
#
# Module, Rust code and program are all instrumented, and the program carries the sanitizer of Rust's compiler. For the thread
# sanitizer the standard library is compiled, too, because waits for its locks show only then what they order. That needs its
# source (rustup component add rust-src); where it cannot be had, that part is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
turns=${1:-20}
target=$(rustc -vV | sed -n 's/^host: //p')
libraries=$(rustc --print sysroot)/lib/rustlib/$target/lib
# The flags are unstable, so the stable compiler is told to take them.
export RUSTC_BOOTSTRAP=1
command -v addr2line >/dev/null || { echo "sanitize: addr2line is missing: apt-get install binutils" >&2; exit 1; }

# sanitize NAME SHORT CARGO-OPTION...
sanitize() {
    echo "== $1 sanitizer"
    local name=$1 short=$2 folder=target/sanitize-$1/soapy
    shift 2
    RUSTFLAGS="-Zsanitizer=$name -Cdebuginfo=line-tables-only" CARGO_TARGET_DIR="target/sanitize-$name" \
        cargo build -p millstream-soapy --lib --target "$target" "$@"
    mkdir -p "$folder"
    # -z nodelete as in soapy/build.sh. The sanitizer's functions are those of the program.
    local compile=(c++ -std=c++14 -O1 -g -fPIC "-fsanitize=$name" -Wall -Wextra)
    # shellcheck disable=SC2046 # one word an option
    "${compile[@]}" -c -fvisibility=hidden $(pkg-config --cflags SoapySDR) -o "$folder/module.o" soapy/module.cpp
    # shellcheck disable=SC2046
    c++ -shared -o "$folder/libmillstreamSupport.so" "$folder/module.o" \
        "target/sanitize-$name/$target/debug/libmillstream_soapy.a" \
        -Wl,-z,nodelete -Wl,--exclude-libs,ALL $(pkg-config --libs SoapySDR) -lpthread -ldl -lm
    # shellcheck disable=SC2046
    "${compile[@]}" -c $(pkg-config --cflags SoapySDR) -o "$folder/stress.o" soapy/tests/stress.cpp
    # shellcheck disable=SC2046
    c++ -rdynamic -o "$folder/stress" "$folder/stress.o" \
        -Wl,--whole-archive "$(echo "$libraries"/librustc-*_rt."$short".a)" -Wl,--no-whole-archive \
        $(pkg-config --libs SoapySDR) -lpthread -ldl -lrt -lm -lresolv
    # A sanitizer that finds nothing may be one that does not look.
    if "$folder/stress" proof >/dev/null 2>&1; then
        echo "sanitize: the $name sanitizer missed an error made for it" >&2
        exit 1
    fi
    SOAPY_STRESS_SLOW=1 SOAPY_SDR_PLUGIN_PATH=$PWD/$folder "$folder/stress" "$turns"
}

sanitize address asan
if [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ] ||
    rustup component add rust-src >/dev/null 2>&1; then
    TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp" sanitize thread tsan -Zbuild-std
else
    echo "skipped: the thread sanitizer: no source of Rust's standard library (rustup component add rust-src)"
fi
