#!/bin/sh
# Repeats the 2011 load-weight experiment section by section. `sh study.sh [cost|idle|topologies|search|real]...`
# runs the sections named, without arguments all but `real`. LINEUP names the binary.
set -eu
cd "$(dirname "$0")"
LINEUP=${LINEUP:-../../target/release/lineup}
LOW=low:shares=2,tasks=50,busy=~100ms,sleep=~100ms

# What each form of the weighted delta costs, and the pipe ping-pong as the whole-system measure.
cost() {
    echo "== Cost of the weighted delta, by form, hint and layout"
    (cd ../.. && cargo bench -q -p lineup-sched --bench delta)
    echo
    echo "== 100,000 round trips through a pipe: on one CPU, and wherever the scheduler puts the ends"
    "$LINEUP" compare --pin none --primary round-trip \
        "$LINEUP load --ping-pong 100000 --ping-pong-cpu 0" "$LINEUP load --ping-pong 100000"
}

# The %idle table of a window of ten seconds, and the averages over twenty seeds of sixty.
idle() {
    echo "== %idle second by second, one seed"
    "$LINEUP" sched --scenario scenario.toml --resolution 0,10 --seeds 1 --time 10s --by-second | sed -n '/%idle/,$p'
    echo
    echo "== Twenty seeds, sixty seconds each, and why"
    "$LINEUP" sched --scenario scenario.toml --resolution 0,10 --seeds 20 --why
    echo "What no scheduler avoids: E[(16 - Bin(50, 1/2))+] / 16 = 0.033 % idle, where bursts and sleeps keep to a"
    echo "timetable of their own (clock=timetable):"
    "$LINEUP" sched --cpus 16 --domains 2,8,16 --group "$LOW,clock=timetable" --resolution 10 --seeds 40 |
        grep -E '^(idle|missed)'
}

# For which topologies and shares the effect is large.
topologies() {
    echo "== By topology and shares"
    "$LINEUP" sched --scenario scenario.toml --resolution 0,10 --seeds 10 \
        --sweep shares=2,4,8,16,32,64,1024 --sweep 'domains=2,8,16;2,16;4,16;8,16;16' --html sweep.html
}

# What the reference's 5.42 % without extra bits, and 0.06 % with ten, would take.
search() {
    echo "== Without each mechanism in turn"
    for smt in true false; do
        echo "-- threads share cores: $smt"
        "$LINEUP" sched --scenario scenario.toml --smt $smt --resolution 0,10 --seeds 10 --time 30s \
            --isolate floor,idle-pull,nohz,newly-idle,newly-idle-gate,active,wake-idle,cache-hot,history
    done
}

# The same on this machine: weighted groups, what /proc says, and the model for the same CPUs. Needs root.
real() {
    sh real.sh
}

[ $# -gt 0 ] || set -- cost idle topologies search
for section in "$@"; do
    "$section"
    echo
done
