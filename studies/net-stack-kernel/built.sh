#!/usr/bin/env bash
# What TCP over the loopback needs of tcp_sock, net_device and netns_ipv4 in a 6.1 kernel: as they are, in the groups of 6.12,
# and in Lineup's. All three kernels are built, booted, recorded and compared.
# Usage: studies/net-stack-kernel/built.sh [FOLDER]; FOLDER is target/net-stack unless given. JOBS says how many compilers
# run at once, and further options of both studies may stand in OPTIONS.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${1:-target/net-stack}"
here=studies/net-stack-kernel
mkdir -p "$out"
out=$(cd "$out" && pwd)
cargo build --quiet --release -p lineup -p lineup-plugin
tree=$(scripts/kernel-source 6.1)
gcc -O2 -static -o "$out/sockets" "$here/sockets.c"
read -ra more <<<"${OPTIONS:-}"
# Both studies build in one folder: the second compiles only what its order changes. A study of which nothing passes exits
# with 1, and the other is still of interest.
status=0
for order in 6.12 groups; do
  target/release/lineup study --kernel-source "$tree" --config studies/kernel-source/6.1.config \
    --kernel-build "$out/build" --jobs "${JOBS:-$(nproc)}" --order "$here/small-$order.orders" \
    --lift tcp_sock --lift net_device --lift netns_ipv4 \
    --region tcp_sendmsg --region __tcp_transmit_skb --region tcp_v4_rcv --region tcp_rcv_established \
    --region tcp_ack --region tcp_recvmsg --region __netif_receive_skb \
    --workload "ifconfig lo up; $out/sockets 256 12 1024" --calls 400 --warmup 1024 --timeout 1200 \
    --out "$out/$order" "${more[@]}" | tee "$out/$order.txt" || status=1
done

# Lines of 64 bytes and misses of the first level for data, mean of a call. Without network namespaces netns_ipv4 lies in
# the variable init_net.
lines='.regions[] | [.name, (
  [.map[] | select(.type_name == "tcp_sock") | .needed_per_call], [.map[] | select(.type_name == "net_device") | .needed_per_call],
  [.map[] | select(any(.parts[]; .name | startswith("init_net.ipv4."))) | .needed_per_call] | add // 0 | . * 100 | round / 100),
  (.lines[] | select(.line_bytes == 64) | .data.mean)] | @tsv'
misses='.guest.costs[] | [.region, (.means[] | select(.name == "modelled L1D misses") |
  .before, .after | . * 100 | round / 100)] | @tsv'
for kernel in 6.12/before 6.12/after groups/before groups/after; do
  [ -e "$out/$kernel/calls.rec" ] || continue
  echo "$kernel: lines of tcp_sock, net_device, netns_ipv4, all data"
  target/release/lineup explain "$out/$kernel/calls.rec" --json 2>/dev/null | jq -r "$lines"
done
for order in 6.12 groups; do
  echo "$order: L1D misses before and after"
  jq -r "$misses" "$out/$order/report.json"
done
echo "net-study: the reports are $out/6.12/report.html and $out/groups/report.html"
exit "$status"
