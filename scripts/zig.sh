# Zig's C compiler from PyPI, under target/tools: it has the headers and libraries of every target. A script sources this file
# in the project's folder, and calls need_zig before it uses `$zig -m ziglang`.
zig_version=0.13.0
zig=$PWD/target/tools/zig/bin/python

# need_zig: whether the compiler is there now; says why not.
need_zig() {
  [ "$("$zig" -m ziglang version 2>/dev/null)" = "$zig_version" ] && return
  rm -rf target/tools/zig
  mkdir -p target/tools
  python3 -m venv target/tools/zig
  "$zig" -m pip install --quiet --disable-pip-version-check "ziglang==$zig_version" && return
  echo "the compiler of Zig cannot be had from PyPI: check the network" >&2
  return 1
}
