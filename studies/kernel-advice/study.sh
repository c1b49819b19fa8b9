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
wanted=(--least-share 0.5)

# Seconds and the most memory that a command took, on a line in FILE.
measured() { # FILE COMMAND...
  local file=$1
  shift
  command time -f "%e s elapsed, %U s + %S s of processor time, %M KiB" -a -o "$file" "$@"
}

# Records functions of a kernel under a workload, unless that was done.
recorded() { # NAME IMAGE WORKLOAD REGION...
  local file=$1 image=$2 workload=$3 regions=() region
  shift 3
  [ -e "$file.rec" ] && return
  for region; do regions+=(--region "$region"); done
  echo "kernel-advice: recording ${file##*/} under $workload"
  "$lineup" record --kernel "$image" --cpus 2 --workload "$workload" "${regions[@]}" --timeout 1200 --out "$file.rec" \
    >"$file.record.txt"
}

# Records the paths of a kernel, and works out orders by the text of its sources.
begin() { # SERIES IMAGE
  local image=$2 version
  name="$out/$1"
  version=$("$lineup" kernel "$image" | sed -n 's/.* Debian \([0-9][^ ]*\) .*/\1/p' | head -n 1)
  tree=$(scripts/kernel-tree "$1" "$version")
  recorded "$name" "$image" net timer wakeup net-rx tcp
  rm -f "$name.times" "$name.not-built.patch"
  echo "kernel-advice: $1 by the text of its sources"
  measured "$name.times" "$lineup" advise "$name.rec" --source "$tree" "${wanted[@]}" --most-moved 3 --no-clang --full \
    --patch "$name.text.not-built.patch" >"$name.text.txt"
}

# A series of patches with these options, checked, and added to the kernel's.
series() { # WHAT RECORDING OPTION...
  local own="$name.$1" recording=$2
  shift 2
  echo "kernel-advice: units read with clang for ${own##*/}"
  measured "$name.times" "$lineup" advise "$recording" --source "$tree" "${wanted[@]}" "$@" --json --patch "$own.not-built.patch" >"$own.json"
  studies/kernel-advice/check "$tree" "$own.not-built.patch" "$own.json" | tee "$own.check.txt"
  cat "$own.not-built.patch" >>"$name.not-built.patch"
}

# What is kept, the units hold, or most units name it: README.md tells what was tried.
begin 6.1 "$(scripts/kernel-fetch cloud)"
series paths "$name.rec" --most-moved 3 --keep sock --keep net_device --keep task_struct --keep rq
series wakeup "$name.rec" --most-moved 1 --keep sock --keep net_device --keep task_struct --keep rtable --keep tick_sched
begin 6.12 "$(scripts/kernel-fetch cloud-6.12)"
series paths "$name.rec" --most-moved 3 --keep net_device --keep task_struct --keep rq --constraints studies/kernel-advice/6.12.toml
# What wakes a task, and what runs it then.
recorded "$name.woken" "$(scripts/kernel-fetch cloud-6.12)" wakeup try_to_wake_up ttwu_do_activate enqueue_task_fair \
  pick_next_task_fair select_task_rq_fair update_load_avg __schedule dequeue_entities
series wakeup "$name.woken.rec" --most-moved 1 --keep sock --keep net_device --keep rtable --keep rq \
  --constraints studies/kernel-advice/6.12.toml
echo "kernel-advice: reports and patches are in $out"
