#!/usr/bin/env bash
# A kernel's timer path from its sources to a patch: both variants built, booted, recorded and compared.
# Usage: studies/kernel-source/study.sh [SERIES] [FOLDER]; SERIES is 6.12 or 6.1, FOLDER target/kernel-source/SERIES unless
# given. JOBS says how many compilers run at once, and further options of the study may stand in OPTIONS.
set -euo pipefail
cd "$(dirname "$0")/../.."
series="${1:-6.12}"
out="${2:-target/kernel-source/$series}"
mkdir -p "$(dirname "$out")"
cargo build --quiet --release -p lineup -p lineup-plugin
tree=$(scripts/kernel-source "$series")
tick=tick_nohz_handler
[ "$series" = 6.1 ] && tick=tick_sched_timer
# The types of most units are left alone: a change of one of them compiles nearly all anew, and has all units read.
read -ra more <<<"${OPTIONS:-}"
target/release/lineup study --kernel-source "$tree" --config "studies/kernel-source/$series.config" \
  --region update_process_times --region "$tick" --region hrtimer_interrupt --workload busy --cmdline nohz=off \
  --most-moved 3 --least-share 0.5 --keep task_struct --keep rq --keep sock --keep net_device --keep vdso_data \
  --jobs "${JOBS:-$(nproc)}" --out "$out" "${more[@]}" | tee "$out.txt"
echo "kernel-source: the report is $out/report.html"
