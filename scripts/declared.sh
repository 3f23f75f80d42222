#!/usr/bin/env bash
# Runs a command with a PATH that holds only what scripts/programs.txt declares for a make target, beside Rust and what each
# Debian has: scripts/declared.sh TARGET COMMAND...   A call of anything else fails, also where it is installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${1:?declared.sh: name a make target, such as test}
shift
"$here/need.sh" "$target"
command -v dpkg-query >/dev/null || { echo "declared: no Debian: the PATH stays as it is" >&2; exec "$@"; }

folder=$(mktemp -d)
# Tests drop their rights, and go on calling programs.
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
link() { [ -z "$2" ] || ln -sf "$2" "$folder/$1"; }

# What each Debian has: packages that are essential or required, and what they need.
mapfile -t base < <(dpkg-query -W -f='${Essential} ${Priority} ${db:Status-Status} ${Package}\n' |
  awk '$3 == "installed" && ($1 == "yes" || $2 == "required") { print $4 }')
while read -r file; do link "${file##*/}" "$file"; done < <(
  dpkg-query -L "${base[@]}" | grep -E '^(/usr)?/s?bin/[^/]+$')
# Names that Debian's alternatives give, such as awk.
for file in /etc/alternatives/*; do
  real=$(readlink -f "$file") && [ -e "$folder/${real##*/}" ] && link "${file##*/}" "$real"
done
# Rust, found as the caller finds it.
for name in cargo rustc rustdoc rustfmt rustup cargo-fmt cargo-clippy clippy-driver cargo-miri cargo-deny cargo-machete; do
  link "$name" "$(command -v "$name" || true)"
done
# Rows of this target; Debian's own program, not one that lies before it in the PATH.
while read -r name; do
  link "$name" "$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v "$name" || true)"
done < <(awk -v want="$target" '!/^#/ && $1 != "-" { for (i = 3; i <= NF; i++) { t = $i; sub(/[?~]$/, "", t); if (t == want) print $1 } }' \
  "$here/programs.txt")
PATH=$folder "$@"
