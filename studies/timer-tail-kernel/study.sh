#!/usr/bin/env bash
# Records the timer interrupt of two Debian kernels, idle and busy, and what is done to the caches meanwhile.
# Usage: studies/timer-tail-kernel/study.sh [FOLDER]; FOLDER is target/timer-tail-kernel unless given.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${1:-target/timer-tail-kernel}"
mkdir -p "$out"
cargo build --quiet --release -p lineup -p lineup-plugin
lineup=target/release/lineup

# The tick goes on while the guest idles, or an idle guest would have none to show.
common=(--region hrtimer_interrupt --region irqs-off --calls 2000 --cmdline nohz=off)

record() { # NAME KERNEL WORKLOAD OPTION...
  local name=$1 kernel=$2 workload=$3
  shift 3
  echo "timer-tail-kernel: $name"
  "$lineup" record --kernel "$kernel" --workload "$workload" "${common[@]}" "$@" --out "$out/$name.rec" >"$out/$name.txt"
  "$lineup" explain "$out/$name.rec" --region hrtimer_interrupt >"$out/$name.lines.txt"
}

cloud=$(scripts/kernel-fetch cloud)
rt=$(scripts/kernel-fetch rt)
for workload in idle busy; do
  record "cloud-$workload" "$cloud" "$workload"
  record "rt-$workload" "$rt" "$workload"
done
# Two processors run in real time: QEMU 7.2 starts no second one under counted time, so runs differ.
record cloud-busy-two "$cloud" busy --cpus 2
record rt-busy-two "$rt" busy --cpus 2
# What the processors take from each other's caches, and under which lock.
echo "timer-tail-kernel: rt-two-lines"
"$lineup" record --kernel "$rt" --cpus 2 --workload busy --cmdline nohz=off --region hrtimer_interrupt --region kernel \
  --out "$out/rt-two-lines.rec" >"$out/rt-two-lines.txt"
"$lineup" trace report "$out/rt-two-lines.rec" --full --region hrtimer_interrupt >"$out/rt-two-lines.report.txt"
"$lineup" threads "$out/rt-two-lines.rec" --top 20 --html "$out/rt-two-lines.html" >"$out/rt-two-lines.threads.txt"
# The same in windows that follow each other, so that it is known who had a line before.
echo "timer-tail-kernel: rt-two-runs"
"$lineup" record --kernel "$rt" --cpus 2 --workload busy --cmdline nohz=off --region hrtimer_interrupt --region kernel \
  --in-runs --calls 640 --out "$out/rt-two-runs.rec" >"$out/rt-two-runs.txt"
"$lineup" threads "$out/rt-two-runs.rec" --wait-cycles 200 --html "$out/rt-two-runs.html" >"$out/rt-two-runs.threads.txt"
record interventions "$cloud" busy --intervene normal,invalidated,prefetched
record no-l2 "$cloud" busy --cache l1i=32K,8,64 --cache l1d=32K,8,64
record small-l1 "$cloud" busy --cache l1i=16K,4,32 --cache l1d=16K,4,32 --cache l2=1M,16,32

# The talk's figures as one page: histograms, scattergrams, new maxima, and the variants laid over each other.
for page in "cloud cloud-idle cloud-busy" "rt rt-idle rt-busy" "two-processors cloud-busy-two rt-busy-two" "interventions interventions" "second-level cloud-busy no-l2"; do
  read -r name recordings <<<"$page"
  files=()
  for recording in $recordings; do files+=("$out/$recording.rec"); done
  "$lineup" trace report "${files[@]}" --html "$out/$name.html" >"$out/$name.report.txt"
done
echo "timer-tail-kernel: pages and tables are in $out"
