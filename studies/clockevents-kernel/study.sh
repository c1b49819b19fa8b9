#!/usr/bin/env bash
# Records what programming the next timer event touches in a Debian kernel.
# Usage: studies/clockevents-kernel/study.sh [FOLDER]; FOLDER is target/clockevents-kernel unless given.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${1:-target/clockevents-kernel}"
mkdir -p "$out"
cargo build --quiet --release -p lineup -p lineup-plugin
lineup=target/release/lineup
kernel=$(scripts/kernel-fetch cloud)
arguments=(--kernel "$kernel" --region clockevents --region hrtimer_interrupt --calls 1000)
echo "clockevents-kernel: recording"
# With the usual tick, which stops while the guest idles: the device is programmed for every wake-up.
"$lineup" record "${arguments[@]}" --workload wakeup --stream --out "$out/clockevents.rec" >"$out/record.txt"
for line in 64 32; do
  "$lineup" explain "$out/clockevents.rec" --line-size $line --top 400 >"$out/explain-$line.txt"
done
# What the patch of 2016 would do on this path, carried over to the members of 6.1, and what Lineup proposes.
"$lineup" advise "$out/clockevents.rec" --what-if studies/clockevents-kernel/patch-2016.order >"$out/patch-2016.txt"
"$lineup" advise "$out/clockevents.rec" --what-if >"$out/proposed.txt"
"$lineup" advise "$out/clockevents.rec" --patch "$out/proposed.not-built.patch" >"$out/advice.txt"
"$lineup" explain "$out/clockevents.rec" --json >"$out/explain.json"
"$lineup" kernel "$kernel" >"$out/kernel.txt"
echo "clockevents-kernel: tables are in $out"
