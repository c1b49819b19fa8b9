# SQLite's shell with a script of mixed statements, timed with one of other numbers and size.

fetch() {
  if [ ! -e shell.c ]; then
    source_of sqlite3
    (cd tree && ./configure --disable-shared >/dev/null && make -s sqlite3.c shell.c >/dev/null)
    cp tree/{sqlite3.c,sqlite3.h,shell.c} .
  fi
  python3 "$root/scripts/optimisers/sqlite.py" 1 6000 >train.sql
  python3 "$root/scripts/optimisers/sqlite.py" 77 14000 >test.sql
}

build() { # NAME FLAGS-OF-THE-COMPILER...
  compile "$1" "$out/sqlite3.c $out/shell.c" '-lm -ldl' -DSQLITE_THREADSAFE=0 "${@:2}"
}

trained=(:memory:) trained_input=train.sql
timed=(:memory:) timed_input=test.sql
