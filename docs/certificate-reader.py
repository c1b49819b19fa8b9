#!/usr/bin/env python3
"""Checks the certificate of a small C program built by GCC, written from docs/certificate.md alone.

    certificate-reader.py CERTIFICATE

It reads the record grammar, compares hashes, takes the layouts from readelf, compares the dumps up to the map and
looks at how each obligation is discharged. It compares no initial data and finds no obligation itself.
Exit: 0 all discharged, 1 some are open, 2 something is wrong.
"""
import gzip, hashlib, os, re, subprocess, sys, tempfile

ABOUT = {"compiler", "flags", "source", "object", "effects", "time", "note", "not-covered"}


class Wrong(Exception):
    pass


def fields(line):
    """Words, and texts in quotes with their escapes."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|([^ "]+)', line)
    return [word or re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text) for text, word in found]


def read(path):
    lines = open(path, encoding="utf-8").read().split("\n")
    if lines[0] != "lineup-certificate 1" or lines[-2:] != ["end", ""]:
        raise Wrong("no whole certificate")
    units, types, obligations, states = [], {}, 0, []
    record = None
    for line in lines[1:-2]:
        f = fields(line)
        if f[0] in ABOUT:
            pass
        elif f[0] == "unit" and f[3] == "before":
            at = f.index("after")
            units.append((f[1], f[2], f[4:at], f[at + 1:]))
        elif f[0] == "type" and f[2] == "bytes" and len(f) == 5:
            record = types[f[1]] = {"bytes": (int(f[3]), int(f[4])), "members": {}}
        elif f[0] == "member" and f[2] == "bits" and f[4] == "at" and len(f) == 7:
            record["members"][f[1]] = (int(f[3]), int(f[5]), int(f[6]))
        elif f[0] == "counts" and len(f) == 9:
            pass
        elif f[0] == "obligation" and int(f[1]) == obligations == len(states) and len(f) == 13:
            obligations += 1
        elif f[0] == "open" and int(f[1]) == len(states) < obligations:
            states.append("open")
        elif f[0] == "discharged" and int(f[1]) == len(states) < obligations and f[2] in ("rule", "audit", "word"):
            states.append(f[2])
        else:
            raise Wrong("not a record: " + line)
    if len(states) != obligations:
        raise Wrong("an obligation without a state")
    return units, types, states


def form(folder, name, hashes, number):
    with gzip.open(os.path.join(folder, name + ".gz")) as file:
        data = file.read()
    if hashlib.sha256(data).hexdigest() != hashes[number]:
        raise Wrong("another file than the certificate names: " + name)
    return data


def layouts(data):
    """Sizes and members of structs, from readelf."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        text = subprocess.run(["readelf", "--debug-dump=info", file.name], capture_output=True, text=True).stdout
    found, record, member, tag = {}, None, None, ""
    for line in text.split("\n"):
        entry = re.match(r" <(\d+)><\w+>: Abbrev Number: \d+(?: \((\w+)\))?", line)
        value = re.search(r"DW_AT_(\w+)\s*: (?:\(.*\): )?(.*?)\s*$", line)
        if entry:
            tag = entry[2]
            if tag == "DW_TAG_structure_type":
                record = {"members": {}}
            elif tag == "DW_TAG_member":
                member = None
        elif value and record is not None and tag == "DW_TAG_structure_type":
            if value[1] == "name":
                found[value[2]] = record
            elif value[1] == "byte_size":
                record["bytes"] = int(value[2], 0)
        elif value and record is not None and tag == "DW_TAG_member":
            if value[1] == "name":
                member = value[2]
                record["members"].setdefault(member, 0)
            elif value[1] in ("data_member_location", "data_bit_offset") and member:
                record["members"][member] = int(value[2], 0) * (8 if value[1] == "data_member_location" else 1)
    return found


def check_map(types, old, new):
    for name in set(old) & set(new):
        if old[name] == new[name]:
            continue
        said = types.get(name)
        is_right = said and all(
            facts[name].get("bytes") == said["bytes"][side]
            and facts[name]["members"] == {member: at[1 + side] for member, at in said["members"].items()}
            for side, facts in enumerate((old, new)))
        if not is_right:
            raise Wrong("the map is wrong for " + name)


def explained(types, before, after):
    """Offsets, ends, sizes, differences of two of them, whole objects further, in bytes or in bits, or negative."""
    signed = lambda value: value - 2 ** 64 if value >= 2 ** 63 else value
    before, after = signed(before), signed(after)
    for record in types.values():
        size = record["bytes"]
        places = [(0, 0), size] + [(at[1] // 8, at[2] // 8) for at in record["members"].values()]
        places += [((at[0] + at[1]) // 8, (at[0] + at[2]) // 8) for at in record["members"].values()]
        for one in places:
            for other in places:
                rest = (before - (one[0] - other[0]), after - (one[1] - other[1]))
                if rest == (0, 0) or size[0] and rest[0] % size[0] == 0 and rest[1] == rest[0] // size[0] * size[1]:
                    return True
                if (before, after) == ((one[0] - other[0]) * 8, (one[1] - other[1]) * 8):
                    return True
    return False


WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_$][\w$]*(?:\.\d+)*|-?\d[\w.]*|->|[^\s\w]')


def words(line):
    line = re.sub(r"\[[^\]\[\"]*:\d+:\d+(?: discrim \d+)?\]", "", line)
    return WORD.findall(line)


def check_dump(types, old, new):
    lines = [[words(line) for line in text.split("\n") if not words(line)[:1] in (["#"], [])] for text in (old, new)]
    if len(lines[0]) != len(lines[1]):
        raise Wrong("another number of statements")
    forth, back = {}, {}
    for one, other in zip(*lines):
        if len(one) != len(other):
            raise Wrong("{} | {}".format(" ".join(one), " ".join(other)))
        for a, b in zip(one, other):
            numbered = re.fullmatch(r"(.*?)[.\d_]*", a)[1] == re.fullmatch(r"(.*?)[.\d_]*", b)[1]
            if "." in a and "." in b and a[0].isalpha() and numbered:
                if forth.setdefault(a, b) != b or back.setdefault(b, a) != a:
                    raise Wrong("names that do not correspond: {} {}".format(a, b))
            elif a != b:
                numbers = [re.fullmatch(r"(-?\d+)B?", word) for word in (a, b)]
                if not all(numbers) or not explained(types, int(numbers[0][1]), int(numbers[1][1])):
                    raise Wrong("{} | {}".format(" ".join(one), " ".join(other)))


def main(path):
    units, types, states = read(path)
    folder = os.path.join(os.path.dirname(path) or ".", "certificate.forms")
    for kind, name, before, after in units:
        if kind != "gimple":
            raise Wrong("this reader knows GCC's dumps alone")
        sides = [(os.path.join(folder, side), hashes) for side, hashes in (("before", before), ("after", after))]
        dumps = [form(side, name + ".gimple", hashes, 0).decode("utf-8", "replace") for side, hashes in sides]
        objects = [form(side, name + ".o", hashes, 1) for side, hashes in sides]
        check_map(types, *map(layouts, objects))
        check_dump(types, *dumps)
    return 1 if "open" in states else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except (Wrong, OSError, ValueError, IndexError, KeyError, TypeError) as error:
        print("certificate-reader: {}".format(error), file=sys.stderr)
        sys.exit(2)
