#!/usr/bin/env bash
# A study of placement of each program of this folder, as rows of a table. It takes up to ten minutes a program.
# Usage: studies/placement/table.sh [FOLDER] [PROGRAM...]; FOLDER for the reports is target/placement unless given.
# MAX_TIME: seconds of timed runs at most, for each program's rounds and for each confirmation; 60 unless given.
# LINEUP: the command; target/release/lineup, which is built, unless given.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${1:-target/placement}"
[ $# -gt 0 ] && shift
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(tree quad lists hash fib mesh tour)
if [ -z "${LINEUP:-}" ]; then
  cargo build --quiet --release -p lineup --bin lineup
  LINEUP=target/release/lineup
fi
make --silent -C studies/placement
mkdir -p "$out"
echo "load when it began: $(cut -d' ' -f1 /proc/loadavg)"
echo
echo "| program | by the model | bound | chosen in paired runs | time, interval | verdict |"
echo "|---|---|---|---|---|---|"
for program in "${programs[@]}"; do
  command="studies/placement/$program"
  "$LINEUP" find --json --no-clock -- "$command" >"$out/$program.find.json" 2>"$out/$program.find.txt"
  "$LINEUP" study --placement --json --max-time "${MAX_TIME:-60}" --overwrite --out "$out/$program" -- "$command" \
    >"$out/$program.json" 2>"$out/$program.txt"
  model=$(jq -r '
    [.placements.trials[]? | select(.can_be_made)][0]
    | if . then "\(.kind | gsub("_"; " ")) | \((-1000 * .gain | round) / 10) %" else "no small objects | " end
  ' "$out/$program.find.json")
  jq -r --arg program "$program" --arg model "$model" '
    def percent: (1000 * (. - 1) | round) / 10;
    (.confirmed // {}) as $confirmed
    | ($confirmed.inputs // [])[0].elapsed as $time
    | (if $time then "\($time.ratio | percent) % [\($time.interval[0] | percent), \($time.interval[1] | percent)]"
       else "" end) as $figures
    | "| \($program) | \($model) | \($confirmed.name // "none") | \($figures) | \(.verdict | split("\n")[0]) |"
  ' "$out/$program.json"
done
