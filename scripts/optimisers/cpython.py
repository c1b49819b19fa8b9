"""Work for an interpreter: SEED ROUNDS PART... Prints a sum of each part."""

import bisect
import collections
import csv
import dataclasses
import datetime
import difflib
import functools
import heapq
import io
import itertools
import json
import math
import pickle
import random
import re
import string
import sys
import textwrap
import tokenize

draw = random.Random(int(sys.argv[1]))


def word(most=12):
    return "".join(draw.choice(string.ascii_lowercase) for _ in range(draw.randint(2, most)))


def part_json():
    things = [{"name": word(), "at": draw.random(), "tags": [word() for _ in range(6)], "of": {"n": i}} for i in range(1500)]
    text = json.dumps(things, indent=1)
    return len(text) + sum(one["of"]["n"] for one in json.loads(text)) + len(json.dumps(json.loads(text), sort_keys=True))


def part_text():
    words = [word() for _ in range(6000)]
    text = " ".join(words)
    found = re.findall(r"\b([aeiou]\w+?)([tnr])\b", text)
    changed = re.sub(r"(\w)(\w+)", lambda match: match.group(2) + match.group(1), text)
    counted = collections.Counter(changed)
    return len(found) + len(textwrap.fill(changed, 60)) + counted["e"] + len(text.title().swapcase().split("A"))


class Shape:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def area(self):
        return self.a * self.b

    def grown(self, by):
        return type(self)(self.a + by, self.b + by)


class Triangle(Shape):
    def area(self):
        return super().area() / 2

    @property
    def is_flat(self):
        return self.a > 3 * self.b


def part_classes():
    shapes = [draw.choice([Shape, Triangle])(draw.randint(1, 9), draw.randint(1, 9)) for _ in range(3000)]
    total = 0
    for by in range(12):
        shapes = [shape.grown(by % 3) for shape in shapes]
        for shape in shapes:
            try:
                total += shape.area() + shape.is_flat
            except AttributeError:
                total += 1
    return total


def part_sorting():
    numbers = [draw.random() for _ in range(20000)]
    heap = []
    for number in numbers[:8000]:
        heapq.heappush(heap, (round(number, 3), number))
    order = sorted(numbers, key=lambda number: (int(number * 100), -number))
    groups = {key: len(list(group)) for key, group in itertools.groupby(order, key=lambda number: int(number * 10))}
    kept = []
    for number in numbers[:3000]:
        bisect.insort(kept, number)
    return sum(groups.values()) + heapq.heappop(heap)[0] + kept[40]


@functools.lru_cache(maxsize=None)
def ways(amount, coins):
    if amount == 0:
        return 1
    if amount < 0 or not coins:
        return 0
    return ways(amount - coins[0], coins) + ways(amount, coins[1:])


def part_numbers():
    ways.cache_clear()
    above, below = 0, 1
    for _ in range(150):
        of = draw.randint(1, 50)
        above, below = above * of + below, below * of
    primes = [n for n in range(2, 3000) if all(n % d for d in range(2, int(n**0.5) + 1))]
    return ways(180, (50, 20, 10, 5, 2, 1)) + above // math.gcd(above, below) % 1000 + len(primes) + len(str(7 ** draw.randint(2000, 2500)))


@dataclasses.dataclass(order=True)
class Record:
    when: datetime.date
    name: str
    value: float = 0.0


def part_records():
    first = datetime.date(2001, 2, 3)
    records = [Record(first + datetime.timedelta(days=draw.randint(0, 9000)), word(), draw.random()) for _ in range(2500)]
    file = io.StringIO()
    csv.writer(file).writerows((one.when.isoformat(), one.name, f"{one.value:.4f}") for one in sorted(records))
    read = list(csv.reader(io.StringIO(file.getvalue())))
    copy = pickle.loads(pickle.dumps(records))
    return len(read) + len(copy) + sorted(one.value for one in copy)[len(copy) // 2]


def part_trees():
    with open(difflib.__file__, encoding="utf-8") as file:
        source = file.readlines()[: 300 + draw.randint(0, 50)]
    changed = [line for line in source if draw.random() > 0.1]
    blocks = difflib.SequenceMatcher(None, source, changed, autojunk=False).get_matching_blocks()
    with open(textwrap.__file__, "rb") as file:
        kinds = collections.Counter(token.type for token in tokenize.tokenize(file.readline))
    return len(blocks) + sum(kinds.values())


parts = [globals()[f"part_{name}"] for name in sys.argv[3:]]
for _ in range(int(sys.argv[2])):
    print([part() for part in parts])
