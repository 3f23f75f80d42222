#!/usr/bin/env bash
# The Python package (python/): scripts/python.sh wheel [x86_64|aarch64...], scripts/python.sh test
#
#   wheel   builds a wheel for each machine into target/wheels, and runs a program with it: the example of the README, or
#           a flowgraph under emulation; WHEEL_BILL names a bill of materials that goes into them
#   test    builds the module as the tests of the workspace do, and runs python/tests
#
# Both use an environment under target/python, with packages from PyPI. Where that cannot be had, `test` uses Debian's numpy
# and pytest, and without these it ends 77, says why, and nothing was tested.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?python.sh: say wheel or test}
shift

skip() { echo "skipped: $what of the Python package: $*"; exit 77; }

. scripts/environment.sh
. scripts/zig.sh
wheel_max=15000000

case $what in
wheel)
  environment tools "$maturin" || skip "maturin cannot be had from PyPI: $(tail -n 1 $folder/log)"
  need_zig || skip "no compiler that links with an old glibc"
  [ $# -gt 0 ] || set -- x86_64 aarch64
  # For a glibc as old as that of Debian 10 and RHEL 8; maturin refuses a wheel that needs more.
  export CARGO_ZIGBUILD_PYTHON_PATH=$zig
  bill=()
  [ -z "${WHEEL_BILL:-}" ] || bill=(--sbom-include "$WHEEL_BILL")
  for machine; do
    target=$machine-unknown-linux-gnu
    rm -f target/wheels/*"_$machine.whl"
    scripts/cross.sh "$target" "$folder/tools/bin/python" -m maturin build --release --locked --zig --target "$target" \
      --compatibility manylinux_2_28 --auditwheel check "${bill[@]}" --manifest-path python/Cargo.toml --out target/wheels
    wheel=$(echo target/wheels/*-abi3-manylinux_2_28_"$machine".whl)
    bytes=$(stat -c %s "$wheel")
    rm -rf "$folder/unpacked"
    "$python" -m zipfile -e "$wheel" "$folder/unpacked"
    glibc=$(readelf --version-info "$folder"/unpacked/millstream/*.so | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    echo "$wheel: $bytes bytes, needs $glibc"
    [ "$bytes" -le "$wheel_max" ] || { echo "python.sh: the wheel has more than $wheel_max bytes" >&2; exit 1; }
    if [ "$machine" = "$(uname -m)" ]; then
      # A clean environment: the wheel and numpy, which it asks for, and nothing else.
      rm -rf "$folder/clean"
      "$python" -m venv "$folder/clean"
      "$folder/clean/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
      "$folder/clean/bin/python" python/tests/first_samples.py
    elif [ "$machine" = aarch64 ]; then
      scripts/python-arm64.sh "$wheel" python/tests/first_graph.py || [ $? -eq 77 ]
    else
      echo "skipped: ${wheel##*/} was not run: this machine is no $machine"
    fi
  done
  ;;
test)
  run=$python
  if environment test 'numpy>=1.23' 'pytest>=7' 'mypy>=1.8' 'sigmf>=1.2' 'matplotlib>=3.6'; then
    run=$folder/test/bin/python
  elif "$python" -c 'import numpy, pytest' 2>/dev/null; then
    echo "no packages from PyPI ($(tail -n 1 $folder/log)): the tests use numpy and pytest of Debian, and those that need more are skipped"
  else
    skip "numpy and pytest come neither from PyPI ($(tail -n 1 $folder/log)) nor from Debian (python3-numpy, python3-pytest)"
  fi
  [ -n "${MILLSTREAM_BUILT:-}" ] || cargo build --quiet -p millstream-python
  rm -rf $folder/site
  mkdir -p $folder/site
  cp -r python/package/millstream $folder/site/
  cp "$(scripts/target.sh)/debug/lib_millstream.so" $folder/site/millstream/_millstream.abi3.so
  PYTHONPATH=$PWD/$folder/site "$run" -m pytest -p no:cacheprovider python/tests "$@"
  ;;
*) echo "python.sh: say wheel or test" >&2; exit 2 ;;
esac
