# Lua 5.4.9, trained with the study's benchmark and timed with another script.

fetch() {
  make -s -C "$root/studies/lua" sources
  cp "$root/studies/lua/bench.lua" "$root/scripts/optimisers/lua.lua" "$out"
}

build() { # NAME FLAGS-OF-THE-COMPILER...
  local file sources=()
  for file in "$root"/studies/lua/lua-src/*.c; do
    case "$file" in */lua.c | */luac.c | */onelua.c | */ltests.c) ;; *) sources+=("$file") ;; esac
  done
  compile "$1" "${sources[*]} $root/studies/lua/src/main.c" -lm \
    "-I$root/studies/lua/lua-src" '-Dluai_makeseed(L)=0x5eed' "${@:2}"
}

trained=(bench.lua 4)
timed=(lua.lua 300000)
