#!/usr/bin/env bash
# Advice for the timer, wake-up and TCP paths of Debian's 6.1 and 6.12 kernels, against their own sources.
# Usage: studies/kernel-advice/study.sh [FOLDER]; FOLDER is target/kernel-advice unless given.
# For each kernel it leaves the recording, the report by the text of the sources, the advice with units read with clang as
# JSON, the patch, and what pahole says of objects that were compiled with it.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${1:-target/kernel-advice}"
mkdir -p "$out"
cargo build --quiet --release -p lineup -p lineup-plugin
lineup=target/release/lineup
wanted=(--least-share 0.5 --most-moved 3)
# Types that the units hold, or that most units name: README.md tells what was tried.
kept=(--keep sock --keep net_device --keep task_struct --keep rq)

# Seconds and the most memory that a command took, on a line in FILE.
measured() { # FILE COMMAND...
  local file=$1
  shift
  command time -f "%e s elapsed, %U s + %S s of processor time, %M KiB" -a -o "$file" "$@"
}

advice() { # SERIES IMAGE
  local series=$1 image=$2 version tree
  local name="$out/$series" regions=()
  for region in timer wakeup net-rx tcp; do regions+=(--region "$region"); done
  version=$("$lineup" kernel "$image" | sed -n 's/.* Debian \([0-9][^ ]*\) .*/\1/p' | head -n 1)
  tree=$(scripts/kernel-tree "$series" "$version")
  [ -e "$name.rec" ] || {
    echo "kernel-advice: recording $series"
    "$lineup" record --kernel "$image" --cpus 2 --workload net "${regions[@]}" --timeout 1200 --out "$name.rec" >"$name.record.txt"
  }
  rm -f "$name.times"
  echo "kernel-advice: $series by the text of its sources"
  measured "$name.times" "$lineup" advise "$name.rec" --source "$tree" "${wanted[@]}" --no-clang --full --patch "$name.text.patch" >"$name.text.txt"
  echo "kernel-advice: $series, units read with clang"
  measured "$name.times" "$lineup" advise "$name.rec" --source "$tree" "${wanted[@]}" "${kept[@]}" --json --patch "$name.patch" >"$name.json"
  echo "kernel-advice: $series: $(grep -c '^+++ ' "$name.patch" || true) files in $name.patch"
  studies/kernel-advice/check "$tree" "$name.patch" "$name.json" | tee "$name.check.txt"
}

advice 6.1 "$(scripts/kernel-fetch cloud)"
advice 6.12 "$(scripts/kernel-fetch cloud-6.12)"
echo "kernel-advice: reports and patches are in $out"
