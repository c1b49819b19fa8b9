#!/usr/bin/env bash
# The functions of the timer's path in one row of a kernel's image: built, booted and compared, and then both kernels once
# more with calls whose code was emptied from the caches or fetched before.
# Usage: studies/timer-tail-kernel/order.sh [SERIES] [FOLDER]; SERIES is 6.1 or 6.12, FOLDER target/timer-tail-kernel/order-SERIES
# unless given. JOBS says how many compilers run at once, and further options of the study may stand in OPTIONS.
set -euo pipefail
cd "$(dirname "$0")/../.."
series="${1:-6.1}"
out="${2:-target/timer-tail-kernel/order-$series}"
mkdir -p "$(dirname "$out")"
lineup="${LINEUP:-target/release/lineup}"
[ -n "${LINEUP:-}" ] || cargo build --quiet --release -p lineup -p lineup-plugin
tree=$(scripts/kernel-source "$series")
read -ra more <<<"${OPTIONS:-}"
"$lineup" study --kernel-source "$tree" --config "studies/kernel-source/$series.config" --code \
  --region hrtimer_interrupt --workload busy --cmdline nohz=off --jobs "${JOBS:-$(nproc)}" --out "$out" "${more[@]}" |
  tee "$out.txt"

record() { # VARIANT WORKLOAD OPTION...
  local variant=$1 workload=$2
  shift 2
  "$lineup" record --kernel "$out/$variant/bzImage" --debug "$out/$variant/vmlinux" --region hrtimer_interrupt \
    --workload "$workload" --cmdline nohz=off --out "$out/$variant-$workload.rec" "$@" >"$out/$variant-$workload.txt"
  "$lineup" trace report "$out/$variant-$workload.rec" --full >"$out/$variant-$workload.report.txt"
}

for variant in before after; do
  echo "timer-tail-kernel: $variant, busy calls, emptied and prefetched ones"
  record "$variant" busy --intervene normal,invalidated,prefetched
  echo "timer-tail-kernel: $variant, idle"
  record "$variant" idle
done
echo "timer-tail-kernel: the report is $out/report.html, figures of emptied and busy calls are in $out/*.report.txt"
