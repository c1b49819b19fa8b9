# redis-server that loads a log of mixed commands, the last of which ends it: one process, and a socket that nobody connects to. The log that
# is timed is of other keys and values, and longer. The last but one writes a digest of all data to the server's log.

fetch() {
  source_of redis
  local kind
  for kind in train test; do mkdir -p "$kind/appendonlydir"; done
  python3 "$root/scripts/optimisers/redis.py" 1 60000 train/appendonlydir
  python3 "$root/scripts/optimisers/redis.py" 77 400000 test/appendonlydir
}

build() { # NAME FLAGS-OF-THE-COMPILER...
  fresh_tree "$1"
  local flags="${plain[*]} ${*:2}"
  make -s -C "$1.tree/src" -j2 MALLOC=libc OPTIMIZATION= CFLAGS="$flags" LDFLAGS="${linked[*]} ${*:2}" redis-server >"$1.build.txt" 2>&1
  cp "$1.tree/src/redis-server" "$1"
}

loads=(--port 0 --unixsocket socket --appendonly yes --save '' --dir)
trained=("${loads[@]}" train)
timed=("${loads[@]}" test)

# Each line begins with the process and the time.
says() { "$1" "${timed[@]}" | grep -o 'digest .*'; }
