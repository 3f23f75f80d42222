#!/bin/sh
# Compiles the SoapySDR module against the installed headers: soapy/build.sh [release|debug] makes
# PROFILE/libmillstreamSupport.so, or $CARGO_BUILD_TARGET/PROFILE/libmillstreamSupport.so, in cargo's target folder;
# MILLSTREAM_SOAPY names another folder for it. With debug and MILLSTREAM_BUILT, the Rust side is there already.
set -eu
cd "$(dirname "$0")/.."
profile=${1:-release}
case ${MILLSTREAM_BUILT:+built }$profile in
"built debug") ;;
debug) ${CARGO:-cargo} build -p millstream-soapy ;;
release | "built release") ${CARGO:-cargo} build --release -p millstream-soapy ;;
*) echo "soapy/build.sh: the profile $profile is not known: give release or debug" >&2; exit 2 ;;
esac
folder=$(scripts/target.sh)/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$profile
# Options such as those of scripts/cross.sh.
flags=$(printenv "CXXFLAGS_$(echo "${CARGO_BUILD_TARGET:-none}" | tr - _)" || true)
module=${MILLSTREAM_SOAPY:-$folder}/libmillstreamSupport.so
mkdir -p "${module%/*}"
# -z nodelete: SoapySDR unloads its modules while threads of this one may still run.
${CXX:-c++} -std=c++14 -O2 -fPIC -shared -Wall -Wextra -fvisibility=hidden $flags $(pkg-config --cflags SoapySDR) \
    -o "$module" soapy/module.cpp "$folder/libmillstream_soapy.a" \
    -Wl,-z,nodelete -Wl,-z,defs -Wl,--exclude-libs,ALL $(pkg-config --libs SoapySDR) -lpthread -ldl -lm
echo "$module"
