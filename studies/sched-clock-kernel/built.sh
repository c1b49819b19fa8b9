#!/usr/bin/env bash
# The generic clock and the timers' structure as they were before the patches of 2015 and 2016, in a 6.1 kernel for 32-bit Arm:
# from its sources to an order that is built, booted and compared. What the order of 2016 would need is predicted.
# Usage: studies/sched-clock-kernel/built.sh [FOLDER]; FOLDER is target/sched-clock-built unless given. JOBS says how many
# compilers run at once.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${1:-target/sched-clock-built}"
here=studies/sched-clock-kernel
mkdir -p "$out"
cargo build --quiet --release -p lineup -p lineup-plugin
source=$(scripts/kernel-source 6.1)
# The guest's busybox comes with Debian's kernel for Arm.
scripts/kernel-fetch armmp >/dev/null
tree="$out/linux"
rm -rf "$tree"
cp -a "$source" "$tree"
for before in studies/clockevents-kernel/before-2016.patch "$here/before-2015.patch"; do
  patch -s -d "$tree" -p1 --no-backup-if-mismatch -i "$PWD/$before"
done
target/release/lineup study --kernel-source "$tree" --config "$here/arm.config" \
  --make ARCH=arm --make CROSS_COMPILE=arm-linux-gnueabihf- --busybox target/kernels/armmp/bin/busybox \
  --region sched_clock --region clockevents_adjust_all_freqs --region clockevents_program_event \
  --workload busy --cmdline nohz=off --least-share 0.5 --keep task_struct --keep rq --keep vdso_data \
  --timeout 1500 --jobs "${JOBS:-$(nproc)}" --out "$out/study" | tee "$out/study.txt"
target/release/lineup advise "$out/study/before/calls.rec" --source "$tree/include" --no-clang \
  --order "$here/patch-2016.orders" --full >"$out/patch-2016.txt"
echo "sched-clock: the report is $out/study/report.html; what the order of 2016 would need is in $out/patch-2016.txt"
