#!/bin/sh
# Prints cargo's folder of build results: target, unless CARGO_TARGET_DIR or the user's configuration of cargo names another.
# Scripts find in it what cargo has built. What they make themselves, such as packages, stays in target.
set -eu
cd "$(dirname "$0")/.."
${CARGO:-cargo} metadata --no-deps --offline --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
