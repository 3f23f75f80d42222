#!/usr/bin/env bash
# Compares the library's interface with that of an older commit: scripts/semver.sh [COMMIT]; the last release by default.
# Fails where a change breaks users and the version in Cargo.toml does not say so. Ends 77, and says why, where there is no
# release yet.
set -euo pipefail
cd "$(dirname "$0")/.."
baseline=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
if [ -z "$baseline" ] && grep -q '^## \[[0-9]' CHANGELOG.md; then
  echo "semver: CHANGELOG.md has a release, but there is no tag v* here: git fetch --tags, or name a commit" >&2
  exit 1
fi
[ -n "$baseline" ] || { echo "skipped: there is no release yet to compare with; name a commit: make semver BASELINE=COMMIT"; exit 77; }
git rev-parse --quiet --verify "$baseline^{commit}" >/dev/null ||
  { echo "semver: '$baseline' is no commit here; expected a commit or a tag, such as v0.1.0 (git fetch --tags)" >&2; exit 1; }
export PATH="$PWD/target/tools/bin:$PATH"
tool=cargo-semver-checks
if ! command -v "$tool" >/dev/null; then
  echo "semver: installing $tool from crates.io (some minutes)"
  cargo install --quiet --locked --root target/tools "$tool" --version 0.51.0 \
    --config 'profile.release.lto=false' --config 'profile.release.codegen-units=16' --config 'profile.release.opt-level=1'
fi
# The facade, and the crates that it shows: what it re-exports is documented in them. What they re-export themselves from
# crates that it does not show is not compared.
mapfile -t shown < <(sed -n 's/^ *pub use \(millstream_[a-z]*\).*/\1/p' crates/millstream/src/*.rs | tr _ - | sort -u)
echo "semver: millstream ${shown[*]} against $baseline"
# Default features: others need libraries of the machine.
cargo semver-checks --default-features --baseline-rev "$baseline" -p millstream "${shown[@]/#/-p}"
