#!/usr/bin/env python3
"""Writes a store of COUNT generated recordings, 5,000 rows of members each, for scripts/peers.py.

usage: generate.py STORE COUNT

Files are laid out as `lineup fleet add` lays them out, but written by Arrow's own writer, which is faster at making
numbers up. All counts are whole numbers and all lines multiples of an eighth, so that sums do not depend on their order.
"""

import multiprocessing
import os
import sys

import numpy
import pyarrow
import pyarrow.parquet

from peers import tables

WORKERS = 3
PARTS = 100
SCHEMAS = {}
KINDS = {"VARCHAR": pyarrow.string(), "BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64(), "BOOLEAN": pyarrow.bool_()}


def schemas():
    if not SCHEMAS:
        for table, columns in tables().items():
            SCHEMAS[table] = pyarrow.schema([(name, KINDS[kind]) for name, kind in columns])
    return SCHEMAS


def names(prefix, numbers):
    """A column of names that end with these numbers."""
    distinct, places = numpy.unique(numbers, return_inverse=True)
    words = pyarrow.array([f"{prefix}{number}" for number in distinct])
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(places), words).cast(pyarrow.string())


def put(store, table, run, rows, **columns):
    """Writes a table's file; what is one value is the same in each row, what is missing is empty."""
    def column(field):
        value = run if field.name == "run" else columns.get(field.name)
        if isinstance(value, pyarrow.Array):
            return value
        if isinstance(value, numpy.ndarray):
            return pyarrow.array(value, type=field.type)
        return pyarrow.nulls(rows, field.type) if value is None else pyarrow.array([value], field.type).take(ZEROS[:rows])

    schema = schemas()[table]
    made = pyarrow.Table.from_arrays([column(field) for field in schema], schema=schema)
    pyarrow.parquet.write_table(made, f"{store}/{table}/{run}.parquet", compression="zstd")


ZEROS = pyarrow.array(numpy.zeros(5000, dtype="int64"))
J = numpy.arange(5000)
MEMBER = {"region": names("region", J // 2500 * 10 + J % 10), "owner": names("type", J % 100),
          "member": names("member", J // 100 % 25), "offset_bytes": J // 100 % 25 * 8}
REGION = numpy.arange(20)
PATTERN = numpy.arange(40)
LAYOUT = numpy.arange(250)


def write_members(store, run, i):
    accesses = (i * 31 + J * 17) % 1000
    modelled = {"l1_misses": J % 50 * 1.0, "stall_cycles": J % 50 * 12.0} if i % 10 == 0 else {}
    sampled = {"sampled_weight": J % 300, "hitm": J % 3} if i % 10 == 1 else {}
    put(store, "members", run, 5000, **MEMBER, **{"class": "member"}, size_bytes=8, accesses=accesses * 1.0,
        loads=accesses // 2, stores=accesses - accesses // 2, **modelled, **sampled)


def write(store, i):
    run, service, commit = f"{i:064x}", f"service{i % 40}", i // 40 % 50
    build = f"{service}-{commit}"
    write_members(store, run, i)
    put(store, "regions", run, 20, region=names("region", REGION), weight=1.0, calls=1000, calls_made=100000 + i,
        calls_per_second=(100 + i % 900 + REGION) * 1.0, instructions_per_call=500.0,
        data_lines_64=(REGION * 13 + commit * commit * 3 + i % 7) % 160 / 8.0,
        code_lines_64=(REGION * 5 + commit) % 80 / 8.0)
    put(store, "patterns", run, 40, region=names("region", PATTERN % 20), type_name=names("type", PATTERN % 10),
        build_id=build, pattern=PATTERN // 2, calls=1000, occurrences=1000 - i % 500, base_in_line=0,
        offset_bytes=PATTERN % 25 * 8, size_bytes=8, loads=1000 - i % 500, stores=0)
    turned = numpy.where(LAYOUT // 25 % 3 == 0, commit // 5, 0)
    put(store, "layouts", run, 250, build_id=build, type_name=names("type", LAYOUT // 25), kind="struct",
        type_size_bytes=200, type_align_bytes=8, first_is_held=False, member_index=LAYOUT % 25,
        member=names("member", LAYOUT % 25), member_type="long", offset_bits=(LAYOUT % 25 + turned) % 25 * 64,
        size_bytes=8, align_bytes=8)
    put(store, "shared_lines", run, 2, address=f"{i * 64:#x}", parts=names("type0.member", numpy.arange(2)), readers=2,
        writers=1, true_handovers=i % 90, false_handovers=i % 70)
    if i < 2:
        k = numpy.arange(12)
        put(store, "guards", run, 12, group_index=k // 4, type_name=names("type", k // 4 * 3), line_bytes=64,
            data_model="LP64", member=names("member", k % 4), is_apart=False)
    if i % 100 == 0:
        put(store, "verdicts", run, 1, subject=f"study of {service}", quantity="time", before=1000.0, after=900.0,
            ratio=0.9, ratio_low=0.85, ratio_high=0.95, verdict="changed")
    put(store, "runs", run, 1, source="recording", service=service, host=f"host{i % 500}", build_id=build,
        commit_id=f"commit{commit}", commit_time_s=1700000000 + commit * 3600, recorded_at_s=1700000000 + i,
        program=f"/srv/{service}", machine="x86_64", data_model="LP64", file=f"calls-{i}.rec")


def write_part(part):
    store, first, last = part
    pyarrow.set_cpu_count(1)
    for i in range(first, last):
        write(store, i)
    return last - first


def main():
    store, count = sys.argv[1], int(sys.argv[2])
    for table in schemas():
        os.makedirs(f"{store}/{table}", exist_ok=True)
    with open(f"{store}/lineup-fleet", "w") as marker:
        marker.write("lineup.fleet/1\n")
    step = max(1, count // PARTS)
    parts = [(store, first, min(first + step, count)) for first in range(0, count, step)]
    done = 0
    with multiprocessing.Pool(WORKERS) as pool:
        for written in pool.imap_unordered(write_part, parts):
            done += written
            print(f"{done} of {count} recordings", file=sys.stderr)


if __name__ == "__main__":
    main()
