#!/usr/bin/env bash
# The structure as it was before the patch of 2016, in a 6.12 kernel: from its sources to an order that was built, booted and
# compared. Usage: studies/clockevents-kernel/built.sh [FOLDER]; FOLDER is target/clockevents-built unless given. JOBS says
# how many compilers run at once.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${1:-target/clockevents-built}"
mkdir -p "$out"
cargo build --quiet --release -p lineup -p lineup-plugin
source=$(scripts/kernel-source 6.12)
tree="$out/linux"
rm -rf "$tree"
cp -a "$source" "$tree"
patch -s -d "$tree" -p1 -i "$PWD/studies/clockevents-kernel/before-2016.patch"
target/release/lineup study --kernel-source "$tree" --config studies/kernel-source/6.12.config \
  --region clockevents_adjust_all_freqs --region clockevents_program_event --workload busy --cmdline nohz=off \
  --least-share 0.5 --keep task_struct --keep rq --keep vdso_data --jobs "${JOBS:-$(nproc)}" --out "$out/study" |
  tee "$out/study.txt"
