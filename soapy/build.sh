#!/bin/sh
# Compiles the SoapySDR module against the installed headers: soapy/build.sh [release|debug] makes
# target/PROFILE/libmillstreamSupport.so.
set -eu
cd "$(dirname "$0")/.."
profile=${1:-release}
case $profile in
release) ${CARGO:-cargo} build --release -p millstream-soapy ;;
debug) ${CARGO:-cargo} build -p millstream-soapy ;;
*) echo "soapy/build.sh: the profile $profile is not known: give release or debug" >&2; exit 2 ;;
esac
module=target/$profile/libmillstreamSupport.so
# -z nodelete: SoapySDR unloads its modules while threads of this one may still run.
${CXX:-c++} -std=c++14 -O2 -fPIC -shared -Wall -Wextra -fvisibility=hidden $(pkg-config --cflags SoapySDR) \
    -o "$module" soapy/module.cpp "target/$profile/libmillstream_soapy.a" \
    -Wl,-z,nodelete -Wl,-z,defs -Wl,--exclude-libs,ALL $(pkg-config --libs SoapySDR) -lpthread -ldl -lm
echo "$module"
