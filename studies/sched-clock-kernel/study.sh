#!/usr/bin/env bash
# Lines that a call of sched_clock() touches: x86-64, and the generic one on 32-bit and 64-bit Arm.
# Usage: studies/sched-clock-kernel/study.sh [FOLDER]; FOLDER is target/sched-clock-kernel unless given.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${1:-target/sched-clock-kernel}"
mkdir -p "$out"
cargo build --quiet --release -p lineup -p lineup-plugin
lineup=target/release/lineup
for name in cloud armmp arm64; do
  kernel=$(scripts/kernel-fetch "$name")
  guest=()
  [ "$name" = cloud ] || guest=(--busybox "$(dirname "$(dirname "$kernel")")/bin/busybox")
  echo "sched-clock-kernel: $name"
  "$lineup" record --kernel "$kernel" "${guest[@]}" --region sched_clock --workload wakeup --calls 1000 \
    --out "$out/$name.rec" >"$out/$name.txt"
  for line in 64 32; do
    "$lineup" explain "$out/$name.rec" --line-size $line >"$out/$name-$line.txt"
  done
done
echo "sched-clock-kernel: tables are in $out"
