#!/usr/bin/env python3
"""Asks every view of a store in DataFusion (lineup-fleet), DuckDB and Spark, and holds the answers against each other.

usage: peers.py LINEUP_FLEET STORE [ENGINE…]     engines: datafusion duckdb spark, and wheel: DataFusion as pip has it,
                                                 and HOST:PORT: a cluster of Ballista (docs/fleet.md)

Numbers count as equal when they differ by less than a part in a thousand million: engines add up in other orders.
Prints seconds by the clock, seconds of all processors and the most memory that each answer took.
"""

import csv
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MANUAL = os.path.join(HERE, "../../docs/fleet.md")
VIEWS = os.path.join(HERE, "../src/views.rs")
TOLERANCE = 1e-9
THREADS = 3
MEMORY_MIB = 2048


def tables():
    """Columns of every table with their types, as the manual has them."""
    parts = re.split(r"\n### (\w+)\n", open(MANUAL).read())
    found = {}
    for name, text in zip(parts[1::2], parts[2::2]):
        text = text.split("\n## ")[0]
        found[name] = re.findall(r"^\| `(\w+)` \| (VARCHAR|BIGINT|DOUBLE|BOOLEAN) \|", text, re.M)
    return {name: columns for name, columns in found.items() if columns}


def views():
    """Names of the views, in their order, with their SQL."""
    names = re.findall(r'^    "(\w+)",$', open(VIEWS).read(), re.M)
    return [(name, open(os.path.join(HERE, f"../views/{name}.sql")).read()) for name in names]


def counted(table):
    if table == "runs":
        return "SELECT * FROM stored_runs"
    return f"SELECT t.* FROM stored_runs c JOIN stored_{table} t ON t.run = c.run"


def ask_lineup(store, view, out, *more):
    with open(out, "w") as file:
        command = [sys.argv[1], "query", f"SELECT * FROM {view}", "--store", store, "--format", "csv", *more]
        subprocess.run(command, stdout=file, check=True, env={**os.environ, "TOKIO_WORKER_THREADS": str(THREADS)})


def ask_datafusion(store, view, out):
    ask_lineup(store, view, out, "--memory", str(MEMORY_MIB))


def ask_cluster(scheduler):
    """Times and memory are those of the command, and not of the cluster's programs."""
    return lambda store, view, out: ask_lineup(store, view, out, "--cluster", scheduler, "--wait", "3600")


def ask_duckdb(store, view, out):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}; SET memory_limit = '{MEMORY_MIB}MiB'")
    for table, columns in tables().items():
        if os.listdir(f"{store}/{table}"):
            sql = f"SELECT * FROM read_parquet('{store}/{table}/*.parquet')"
        else:
            sql = "SELECT " + ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns) + " WHERE FALSE"
        connection.execute(f"CREATE VIEW stored_{table} AS {sql}")
    for table in tables():
        connection.execute(f"CREATE VIEW {table} AS {counted(table)}")
    for name, sql in views():
        connection.execute(f"CREATE VIEW {name} AS {sql}")
    connection.execute(f"COPY (SELECT * FROM {view}) TO '{out}' (FORMAT csv, HEADER)")


def ask_wheel(store, view, out):
    import pyarrow
    import pyarrow.csv
    from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

    kinds = {"VARCHAR": pyarrow.string(), "BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64(), "BOOLEAN": pyarrow.bool_()}
    config = SessionConfig().with_target_partitions(THREADS)
    config = config.set("datafusion.execution.collect_statistics", "false")
    runtime = RuntimeEnvBuilder().with_disk_manager_os().with_greedy_memory_pool(MEMORY_MIB << 20)
    context = SessionContext(config, runtime)
    for table, columns in tables().items():
        schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns])
        context.register_parquet(f"stored_{table}", f"{store}/{table}/", schema=schema)
    for table in tables():
        context.sql(f"CREATE VIEW {table} AS {counted(table)}")
    for name, sql in views():
        context.sql(f"CREATE VIEW {name} AS {sql}")
    pyarrow.csv.write_csv(context.sql(f"SELECT * FROM {view}").to_arrow_table(), out)


def ask_spark(store, view, out):
    from pyspark.sql import SparkSession
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructType

    kinds = {"VARCHAR": StringType, "BIGINT": LongType, "DOUBLE": DoubleType, "BOOLEAN": BooleanType}
    builder = SparkSession.builder.master(f"local[{THREADS}]").config("spark.driver.memory", f"{MEMORY_MIB}m")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "8")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for table, columns in tables().items():
        schema = StructType()
        for name, kind in columns:
            schema.add(name, kinds[kind]())
        spark.read.schema(schema).parquet(f"{store}/{table}").createOrReplaceTempView(f"stored_{table}")
    for table in tables():
        spark.sql(counted(table)).createOrReplaceTempView(table)
    for name, sql in views():
        spark.sql(sql).createOrReplaceTempView(name)
    answer = spark.sql(f"SELECT * FROM {view}")
    with open(out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(answer.columns)
        writer.writerows(answer.collect())
    virtual_machine = spark.sparkContext._gateway.proc.pid
    with open(f"/proc/{virtual_machine}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{virtual_machine}/status") as file:
        most = re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)
    spark.stop()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(most) // 1024


ENGINES = {"datafusion": ask_datafusion, "duckdb": ask_duckdb, "spark": ask_spark, "wheel": ask_wheel}
USUAL = ["datafusion", "duckdb", "spark"]


def measured(engine, store, view, out):
    """Runs in a process of its own; seconds by the clock, of processors, MiB at most (of one process)."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            # Of Spark's virtual machine, which is not waited for.
            ask = ask_cluster(engine) if ":" in engine else ENGINES[engine]
            seconds, memory = ask(store, view, out) or (0, 0)
            for who in [resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN]:
                usage = resource.getrusage(who)
                seconds += usage.ru_utime + usage.ru_stime
                memory = max(memory, usage.ru_maxrss // 1024)
            with open(out + ".json", "w") as file:
                json.dump([seconds, memory], file)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status != 0:
        return None
    seconds, memory = json.load(open(out + ".json"))
    return time.monotonic() - began, seconds, memory


def value(text):
    text = {"true": "True", "false": "False", "None": "", "NULL": ""}.get(text, text)
    try:
        return float(text)
    except ValueError:
        return text


def rows(path):
    with open(path, newline="") as file:
        head, *all_rows = csv.reader(file)
    read = [tuple(value(text) for text in row) for row in all_rows]
    # Numbers of few digits first, so that rounding does not change the order.
    order = lambda row: tuple((isinstance(one, str), f"{one:.6g}" if isinstance(one, float) else one) for one in row)
    return head, sorted(read, key=order)


def same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-12)
    return one == other


def equal(first, second):
    (head, one), (other_head, other) = rows(first), rows(second)
    if head != other_head or len(one) != len(other):
        return f"differ: {len(one)} rows of {head}, {len(other)} of {other_head}"
    for left, right in zip(one, other):
        if not all(same(a, b) for a, b in zip(left, right)):
            return f"differ: {left} and {right}"
    return "equal"


def main():
    store, engines = os.path.abspath(sys.argv[2]), sys.argv[3:] or USUAL
    failed = False
    print("view                rows      engine      seconds  processors  MiB   answer")
    with tempfile.TemporaryDirectory() as folder:
        for view, _ in views():
            first = None
            for engine in engines:
                out = f"{folder}/{view}.{engine}"
                took = measured(engine, store, view, out)
                if took is None:
                    failed = True
                    print(f"{view:18}  {'':8}  {engine:10}  gave no answer", flush=True)
                    continue
                verdict = equal(first, out) if first else "(compared with)"
                first = first or out
                failed |= verdict.startswith("differ")
                count = sum(1 for _ in open(out)) - 1
                clock, seconds, memory = took
                print(f"{view:18}  {count:8}  {engine:10}  {clock:7.1f}  {seconds:10.1f}  {memory:5}  {verdict}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
