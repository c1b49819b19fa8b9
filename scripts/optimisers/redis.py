"""Writes an append-only file of mixed commands for redis-server: SEED COMMANDS FOLDER."""

import random
import sys

seed, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
draw = random.Random(seed)

# Reads what the commands left, in an order of its own, so that servers of other layouts say the same.
DIGEST = """
local all = redis.call('KEYS', '*')
table.sort(all)
local sum = ''
for _, key in ipairs(all) do sum = redis.sha1hex(sum .. redis.call('TYPE', key).ok .. key .. (redis.call('OBJECT', 'ENCODING', key) or '')) end
for i = 0, 50 do
  sum = redis.sha1hex(sum .. (redis.call('GET', 's:' .. i) or '') .. redis.call('ZCARD', 'z:' .. i) .. redis.call('HLEN', 'h:' .. i))
  sum = redis.sha1hex(sum .. redis.call('LLEN', 'l:' .. i) .. redis.call('SCARD', 'e:' .. i))
end
redis.log(redis.LOG_WARNING, 'digest ' .. #all .. ' ' .. sum)
"""
SUM = "local n = 0; for i, v in ipairs(redis.call('LRANGE', KEYS[1], 0, 20)) do n = n + #v * i end; return redis.call('INCRBY', KEYS[2], n)"


def word():
    return "".join(draw.choice("abcdefghijklmnop") for _ in range(draw.randint(3, 24)))


def key(kind, most):
    return f"{kind}:{min(int(draw.expovariate(6.0 / most)), most)}"


def command():
    kind = draw.random()
    if kind < 0.20:
        return ["SET", key("s", 5000), word() * draw.randint(1, 8)]
    if kind < 0.32:
        return ["GET", key("s", 5000)]
    if kind < 0.38:
        return ["INCRBY", key("n", 800), str(draw.randint(1, 99))]
    if kind < 0.48:
        return ["HSET", key("h", 600), word(), word(), f"field:{draw.randint(0, 60)}", str(draw.randint(0, 9999))]
    if kind < 0.54:
        return ["HGETALL", key("h", 600)]
    if kind < 0.64:
        return ["ZADD", key("z", 300), str(draw.randint(0, 99999)), word()]
    if kind < 0.69:
        return ["ZRANGEBYSCORE", key("z", 300), str(draw.randint(0, 50000)), "+inf", "LIMIT", "0", "20"]
    if kind < 0.77:
        return [draw.choice(["LPUSH", "RPUSH"]), key("l", 400), word(), word()]
    if kind < 0.81:
        return ["LRANGE", key("l", 400), "0", "30"]
    if kind < 0.85:
        return ["LPOP", key("l", 400)]
    if kind < 0.91:
        return ["SADD", key("e", 400), str(draw.randint(0, 100000)), word()]
    if kind < 0.94:
        return ["SINTER", key("e", 400), key("e", 400)]
    if kind < 0.96:
        return ["APPEND", key("s", 5000), word()]
    if kind < 0.98:
        return ["XADD", key("x", 50), f"{next_id()}-1", "name", word(), "value", str(draw.randint(0, 999))]
    if kind < 0.99:
        return ["DEL", key("s", 5000), key("z", 300)]
    return ["EVAL", SUM, "2", key("l", 400), key("n", 800)]


last = 0


def next_id():
    global last
    last += 1
    return last


def encoded(words):
    parts = [f"*{len(words)}\r\n"]
    for one in words:
        parts.append(f"${len(one.encode())}\r\n{one}\r\n")
    return "".join(parts)


with open(f"{folder}/appendonly.aof.1.incr.aof", "w", newline="") as file:
    file.write(encoded(["SELECT", "0"]))
    for _ in range(count):
        file.write(encoded(command()))
    file.write(encoded(["EVAL", DIGEST, "0"]))
    file.write(encoded(["SHUTDOWN", "NOSAVE", "NOW"]))
with open(f"{folder}/appendonly.aof.manifest", "w", newline="") as file:
    file.write("file appendonly.aof.1.incr.aof seq 1 type i\n")
