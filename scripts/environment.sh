# Environments of Python with packages from PyPI, under target/python. A script sources this file in the project's folder;
# without Python it ends 77 and says so.
folder=target/python
# One version, so that it makes the same wheel of the same code.
maturin='maturin==1.16.0'

# Debian's Python before others, so that every machine tests with the same one.
python=
for one in /usr/bin/python3 python3; do
  if "$one" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$one; break; fi
done
[ -n "$python" ] || { echo "skipped: no Python 3.11 or newer (Debian package python3)"; exit 77; }

# environment NAME PACKAGE...: makes or completes an environment; fails quietly without network, with the reason in the
# last line of $folder/log.
environment() {
  local name=$folder/$1; shift
  if [ ! -x "$name/bin/python" ]; then
    mkdir -p "$folder"
    "$python" -m venv "$name" >"$folder/log" 2>&1 || { rm -rf "$name"; return 1; }
  fi
  [ "$(cat "$name/packages" 2>/dev/null)" = "$*" ] && return
  "$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >"$folder/log" 2>&1 || return 1
  echo "$*" >"$name/packages"
}
