#!/usr/bin/env bash
# What the SDK costs to compile, against what its users build anyway.
#   bash tests/cost/compile.sh [RUNS]
# Builds from nothing, alternating, and compares the CPU time (user and system) of the best run of each, so that other
# work on the machine does not decide. Fails if the SDK costs more than axum and reqwest, both
# with their default features, plus 15 %. Takes some
# minutes; CI counts the crates instead and leaves this to whoever adds a dependency.
set -euo pipefail
cd "$(dirname "$0")/../.."

runs=${1:-2}
limit=1.15
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A workspace of its own for each, with our versions: what the lock file names and the package does not use is dropped.
package() { # name, dependencies
  mkdir -p "$work/$1/src"
  printf '[package]\nname = "%s"\nversion = "0.0.0"\nedition = "2024"\n\n[workspace]\n\n[dependencies]\n%s\n' "$1" "$2" >"$work/$1/Cargo.toml"
  echo >"$work/$1/src/lib.rs"
  cp Cargo.lock "$work/$1/Cargo.lock"
  cargo fetch -q --manifest-path "$work/$1/Cargo.toml"
}

# Prints CPU seconds.
build() { # name
  rm -rf "$work/target"
  local TIMEFORMAT='%U %S'
  { time CARGO_TARGET_DIR="$work/target" CARGO_INCREMENTAL=0 \
      cargo build -q --offline --manifest-path "$work/$1/Cargo.toml" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }; } 2>&1 |
    tail -n 1 | awk '{ print $1 + $2 }'
}

declare -A best
measure() { # name
  local seconds
  seconds=$(build "$1")
  [ -n "$seconds" ] || { echo "\`$1\` cannot be built" >&2; exit 1; }
  if [ -z "${best[$1]:-}" ] || awk "BEGIN { exit !($seconds < ${best[$1]}) }"; then best[$1]=$seconds; fi
}

# `tls` is what our default features have; `plain` leaves out the C library of TLS, which is half of either.
sdk="path = \"$PWD/soul-client\""
package sdk-tls "soul-client = { $sdk }"
package both-tls 'axum = "0.8"
reqwest = { version = "0.13", default-features = false, features = ["rustls"] }'
package both-usual 'axum = "0.8"
reqwest = "0.13"'
package sdk-plain "soul-client = { $sdk, default-features = false, features = [\"macros\", \"http\"] }"
package both-plain 'axum = "0.8"
reqwest = { version = "0.13", default-features = false }'

names=(sdk-tls both-tls both-usual sdk-plain both-plain)
for _ in $(seq "$runs"); do
  for name in "${names[@]}"; do measure "$name"; done
done

over=0
compare() { # what, SDK, baseline; its status says whether the SDK costs more than it may
  awk -v what="$1" -v ours="${best[$2]}" -v theirs="${best[$3]}" -v limit=$limit 'BEGIN {
    printf "%-56s %6.1f s  %6.1f s  %5.2f\n", what, ours, theirs, ours / theirs; exit ours > limit * theirs }'
}
printf '%-56s %8s  %8s  %5s\n' "CPU time of a build from nothing (dev, best of $runs)" SDK baseline ratio
compare "against axum, reqwest with its default features" sdk-tls both-usual || over=1
# Of interest only: what a user saves who needs less of reqwest or no TLS, there is no target for it.
compare "against axum, reqwest with rustls alone" sdk-tls both-tls || true
compare "without TLS: against axum, reqwest" sdk-plain both-plain || true
[ $over = 0 ] || { echo "more than $limit: see \`cargo build --timings\`"; exit 1; }
