# CPython with modules of the standard library that do other work in the script that is timed, of other numbers and size.
# Modules in C are linked into the program.

modules='*static*
_bisect _bisectmodule.c
_csv _csv.c
_datetime _datetimemodule.c
_heapq _heapqmodule.c
_json _json.c
_opcode _opcode.c
_pickle _pickle.c
_random _randommodule.c
_sha512 sha512module.c
_struct _struct.c
array arraymodule.c
binascii binascii.c
math mathmodule.c -lm
unicodedata unicodedata.c'

fetch() {
  source_of python3.11
  # Where the program finds its library, whatever folder it lies in.
  mkdir -p home/lib "$out/tree/Lib/lib-dynload"
  ln -sfn "$out/tree/Lib" home/lib/python3.11
  cp "$root/scripts/optimisers/cpython.py" .
}

build() { # NAME FLAGS-OF-THE-COMPILER...
  fresh_tree "$1"
  printf '%s\n' "$modules" >"$1.tree/Modules/Setup.local"
  (
    cd "$1.tree"
    ./configure --disable-shared --with-computed-gotos --without-ensurepip OPT='-DNDEBUG -Wall' \
      CFLAGS="${plain[*]} ${*:2}" LDFLAGS="${linked[*]} ${*:2}"
    make -s -j2 python
  ) >"$1.build.txt" 2>&1
  cp "$1.tree/python" "$1"
}

export PYTHONHOME=$out/home PYTHONHASHSEED=0
trained=(-S -s cpython.py 1 3 json text classes sorting)
timed=(-S -s cpython.py 77 5 json text classes sorting numbers records trees)
