#!/bin/sh
# Runs eight tasks in a real control group of low and of usual weight by turns, measures idle time from
# /proc/stat and what the group's tasks ran and waited from their /proc/PID/task/TID/schedstat, and shows the
# model's prediction for the same CPUs beside it. `sh real.sh [BLOCKS [SECONDS]]`. Needs root. What ran outside
# the group is shown: if it is much, the machine was not free and the run says little.
set -eu
cd "$(dirname "$0")"
LINEUP=${LINEUP:-../../target/release/lineup}
BLOCKS=${1:-6}
SECONDS_EACH=${2:-10}
TASKS=8
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# CPU ticks so far: all, and idle.
machine() {
    awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; print all, $5 + $6 }' /proc/stat
}

# Nanoseconds that the tasks in the control group of process $1 ran and waited so far.
group() {
    for folder in /sys/fs/cgroup/cpu/lineup-"$1"-* /sys/fs/cgroup/lineup-"$1"-*; do
        [ -d "$folder" ] || continue
        cat "$folder/tasks" "$folder/cgroup.threads" 2>/dev/null | while read -r task; do
            cat "/proc/$task/schedstat" 2>/dev/null || true
        done
    done | awk '{ ran += $1; waited += $2 } END { printf "%.0f %.0f\n", ran, waited }'
}

# One run at these shares: idle per cent, the group's CPU time per cent, other CPU time per cent, and the
# mean number of the group's tasks that waited.
run() {
    "$LINEUP" load --group "$1:$TASKS" --time "$((SECONDS_EACH + 2))s" --seed "$2" >/dev/null 2>&1 &
    load=$!
    sleep 1
    before="$(machine) $(group "$load") $(date +%s%N)"
    sleep "$SECONDS_EACH"
    after="$(machine) $(group "$load") $(date +%s%N)"
    wait "$load"
    echo "$before $after" | awk -v cpus="$(nproc)" '{
        span = $10 - $5; idle = 100 * ($7 - $2) / ($6 - $1); ours = 100 * ($8 - $3) / (span * cpus)
        printf "%.3f %.2f %.2f %.2f\n", idle, ours, 100 - idle - ours, ($9 - $4) / span }'
}

show() {
    awk -v block="$1" -v shares="$2" '{ printf "%6s %7d %9.3f %9.2f %9.2f %9.2f\n", block, shares, $1, $2, $3, $4 }'
}

echo "$(nproc) CPUs, kernel $(uname -r), $TASKS tasks, $SECONDS_EACH s a run"
printf '%6s %7s %9s %9s %9s %9s\n' block shares 'idle %' 'group %' 'other %' waiting
block=1
while [ "$block" -le "$BLOCKS" ]; do
    # The order changes from block to block, so that drift falls on both alike.
    if [ $((block % 2)) -eq 1 ]; then
        low=$(run 2 "$block"); usual=$(run 1024 "$block")
    else
        usual=$(run 1024 "$block"); low=$(run 2 "$block")
    fi
    echo "$low" | show "$block" 2
    echo "$usual" | show "$block" 1024
    echo "$low $usual" >>"$results"
    block=$((block + 1))
done
# The paired difference with its 95 % interval by Student's t, and whether that excludes zero.
awk '{ d = $1 - $5; n++; sum += d; squares += d * d; others += ($3 + $7) / 2 } END {
    split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 " \
        "2.120 2.110 2.101 2.093 2.086 2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042", t)
    mean = sum / n
    printf "idle at 2 less idle at 1024: %+.3f points", mean
    if (n < 2) { print ", one pair: no interval"; exit }
    # Beyond thirty degrees of freedom the quantile for thirty is a little wide, never narrow.
    half = t[n - 1 > 30 ? 30 : n - 1] * sqrt((squares - n * mean * mean) / (n - 1) / n)
    effect = mean - half > 0 || mean + half < 0 ? "effect" : "no detectable effect"
    printf " [%+.3f, %+.3f] (95 %%, %d pairs): %s\n", mean - half, mean + half, n, effect
    if (others / n > 5) printf "others took %.0f %% of the CPUs: the machine was not free, and this says little\n", others / n
}' "$results"

echo
echo "The model, the same CPUs and tasks, nothing else running:"
"$LINEUP" sched --group "low:shares=2,tasks=$TASKS,busy=~100ms,sleep=~100ms" --resolution 10 \
    --seeds 20 --time 60s --set low:shares=1024 | grep -E -A1 'R =|^idle|^missed|fairness'
