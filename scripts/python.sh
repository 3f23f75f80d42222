#!/usr/bin/env bash
# The Python package (python/): scripts/python.sh wheel|test
#
#   wheel   builds the wheel into target/wheels, and installs it into an environment of its own to try it
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

case $what in
wheel)
  environment tools 'maturin>=1.9,<2' || skip "maturin cannot be had from PyPI: $(tail -n 1 $folder/log)"
  rm -f target/wheels/*.whl
  "$folder/tools/bin/python" -m maturin build --release --locked --manifest-path python/Cargo.toml --out target/wheels "$@"
  for wheel in target/wheels/*.whl; do
    echo "$wheel: $(stat -c %s "$wheel") bytes"
    # A clean environment: the wheel and numpy, which it asks for, and nothing else.
    rm -rf "$folder/clean"
    "$python" -m venv "$folder/clean"
    "$folder/clean/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
    "$folder/clean/bin/python" python/tests/first_samples.py
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
  cp target/debug/lib_millstream.so $folder/site/millstream/_millstream.abi3.so
  PYTHONPATH=$PWD/$folder/site "$run" -m pytest -p no:cacheprovider python/tests "$@"
  ;;
*) echo "python.sh: say wheel or test" >&2; exit 2 ;;
esac
