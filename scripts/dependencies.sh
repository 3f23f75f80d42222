#!/usr/bin/env bash
# What we depend on: licences, sources and bans by cargo-deny (deny.toml), dependencies that nothing uses by cargo-machete.
# Both are installed from crates.io into target/tools where they are missing.
set -euo pipefail
export CARGO_PROFILE_DEV_DEBUG=false
cd "$(dirname "$0")/.."
export PATH="$PWD/target/tools/bin:$PATH"
for tool in cargo-machete cargo-deny; do
  command -v "$tool" >/dev/null && continue
  echo "dependencies: installing $tool from crates.io"
  # Unoptimised: it runs for seconds and would compile for minutes.
  cargo install --quiet --locked --debug --no-default-features --root target/tools "$tool"
done
cargo machete --skip-target-dir
# Advisories need a database from the network: asked for where it can be had, never a reason to fail without one.
cargo deny --log-level error check licenses bans sources
