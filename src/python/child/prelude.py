# Every program begins with this: functions that take each variable apart into a table, and put it together again.
# Objects that variables share stay shared, cycles stay cycles, and no value is written twice. Monty runs it, so it
# keeps to Monty's Python:
# - built-ins are parameters, because the program may give their names to something else;
# - all functions are siblings, because Monty's closures reach one level up only;
# - plain lists and dicts go through JSON whole, for speed; large floats do not, because Monty writes 1e300 without
#   a point.
#
# The table of a variable is `[root, first, entries]` as JSON. Places number the entries of all variables of a run;
# `first` is the place of the table's first entry, `root` that of the value. A place of another variable is an object
# that both share. An entry is one of
#
#     ["v", value]                 null, a number, a text; a list or dict of nothing but those
#     ["f", float] ["native", place] ["function", name] ["path", text] ["pattern", text, flags]
#     ["list" | "tuple" | "set" | "frozenset", items] ["dict", keys, values]
#
# and items are scalars `["v", [...]]`, floats `["f", [...]]`, places `["n", [...]]`, or scalars and `[place]` mixed
# `["m", [...]]`. Values that JSON does not have ("native") go beside the table, as they are.
from json import dumps as __kit_dumps__, loads as __kit_loads__
import json as __kit_json__
from datetime import date as __kit_date__, datetime as __kit_datetime__
from datetime import timedelta as __kit_timedelta__, timezone as __kit_timezone__
from pathlib import Path as __kit_path__
from re import Pattern as __kit_regex__, compile as __kit_compile__
def __kit_tools__(
    type=type, id=id, len=len, list=list, dict=dict, set=set, frozenset=frozenset, tuple=tuple, float=float,
    int=int, bool=bool, str=str, repr=repr, map=map, zip=zip, enumerate=enumerate, range=range,
    NameError=NameError, ValueError=ValueError, hasattr=hasattr, getattr=getattr, bytes=bytes,
    dumps=__kit_dumps__, loads=__kit_loads__, date=__kit_date__, datetime=__kit_datetime__,
    timedelta=__kit_timedelta__, timezone=__kit_timezone__, to_path=__kit_path__, regex=__kit_regex__,
    to_pattern=__kit_compile__, dataclass=type(__kit_dataclass__), module=type(__kit_json__),
):
    plain = {type(None), bool, int, str}
    text = {str}
    scalars = {type(None), bool, int, str, float}
    floats = {float}
    sequences = {list: 'list', tuple: 'tuple', set: 'set', frozenset: 'frozenset'}
    function = type(lambda: 0)
    natives = {bytes, datetime, date, timedelta, timezone}
    fields = []
    hosts = []
    defined = {}
    kept = set()
    table = []
    owners = []
    beside = []
    used = []
    shares = []
    seen = {}
    work = []
    problems = []

    def define(name, made):
        defined[name] = made

    def add(entry):
        table.append(entry)
        owners.append(len(shares) - 1)

    def node(value):
        kind = type(value)
        at = len(table)
        if kind in plain:
            add(('v', value))
            return at
        if kind is float:
            add(('f', value))
            return at
        key = id(value)
        if key in seen:
            owner = owners[seen[key]]
            if owner != len(shares) - 1:
                shares[-1].add(owner)
            return seen[key]
        seen[key] = at
        if kind is dict or kind in sequences:
            add(value)
            work.append(at)
        else:
            add(other(value, kind))
        return at

    def entry_of(value):
        kind = type(value)
        if kind is dict:
            keys = list(value.keys())
            values = list(value.values())
            kinds = set(map(type, values))
            if set(map(type, keys)).issubset(text):
                return ('v', value) if kinds.issubset(plain) else ('dict', ('v', keys), items(values, kinds))
            return ('dict', items(keys, set(map(type, keys))), items(values, kinds))
        values = value if kind is list or kind is tuple else list(value)
        kinds = set(map(type, values))
        if kind is list and kinds.issubset(plain):
            return ('v', value)
        return (sequences[kind], items(values, kinds))

    def items(values, kinds):
        if kinds.issubset(plain):
            return ('v', values)
        if kinds == floats:
            return ('f', values)
        places = []
        if kinds.isdisjoint(scalars):
            for value in values:
                places.append(node(value))
            return ('n', places)
        for value in values:
            kind = type(value)
            if kind in plain or (kind is float and -1e15 < value < 1e15):
                places.append(value)
            else:
                places.append((node(value),))
        return ('m', places)

    def other(value, kind):
        if kind is function:
            for name in kept:
                if defined[name] is value:
                    used[-1].add(name)
                    return ('function', name)
            for host in hosts:
                if host is value:
                    problems.append('host function')
            problems.append('function')
            return ('v', None)
        problem = inner_problem(value) if kind is dataclass else None
        if kind in natives or (kind is dataclass and problem is None):
            beside[-1].append((len(table), value))
            return ('native', len(table))
        if kind is to_path:
            return ('path', str(value))
        if kind is regex:
            return ('pattern', value.pattern, value.flags)
        if kind is module:
            problem = 'module'
        problems.append(str(kind) if problem is None else problem)
        return ('v', None)

    # A dataclass leaves Python as it stands, and what its fields hold with it: only data comes back as it was.
    def inner_problem(value):
        around = set()
        done = set()
        stack = [(value, False)]
        while stack:
            item, leaving = stack.pop()
            key = id(item)
            if leaving:
                around.discard(key)
                done.add(key)
                continue
            kind = type(item)
            if kind in scalars or kind in natives or key in done:
                continue
            if key in around:
                return 'dataclass cycle'
            inner = []
            if kind is dict:
                inner.extend(item.keys())
                inner.extend(item.values())
            elif kind in sequences:
                inner.extend(item)
            elif kind is dataclass:
                for name in fields:
                    if hasattr(item, name):
                        inner.append(getattr(item, name))
            else:
                return 'dataclass of ' + str(kind)
            around.add(key)
            stack.append((item, True))
            for part in inner:
                stack.append((part, False))
        return None

    def save(pairs):
        variables = []
        for name, read in pairs:
            try:
                value = read()
            except NameError:
                continue
            if name in defined and defined[name] is value:
                kept.add(name)
            else:
                variables.append((name, value))
        written = []
        lost = []
        for name, value in variables:
            first = len(table)
            beside.append([])
            used.append(set())
            shares.append(set())
            root = node(value)
            while work:
                at = work.pop()
                table[at] = entry_of(table[at])
            text = None
            if not problems:
                try:
                    text = dumps((root, first, table[first:]))
                except ValueError:
                    problems.append('huge number')
            if problems:
                lost.append((name, problems[0]))
                problems.clear()
                while len(table) > first:
                    table.pop()
                    owners.pop()
                for key in list(seen.keys()):
                    if seen[key] >= first:
                        seen.pop(key)
            else:
                others = [variables[owner][0] for owner in shares[-1]]
                written.append((name, text, beside[-1], list(used[-1]), others))
        return (list(kept), written, lost)

    def parts(part, made):
        kind, values = part
        if kind == 'v':
            return values
        if kind == 'n':
            return [made[at] for at in values]
        if kind == 'f':
            return list(map(float, values))
        return [made[value[0]] if type(value) is list else value for value in values]

    def restore(batches):
        variables = {}
        for batch in batches:
            made = {}
            places = []
            entries = []
            roots = []
            for name, text, values in batch:
                root, first, own = loads(text)
                made.update(dict(values))
                places.extend(range(first, first + len(own)))
                entries.extend(own)
                roots.append((name, root))
            build(places, entries, made)
            for name, root in roots:
                variables[name] = made[root]
        return variables

    def build(places, entries, made):
        waiting = {}
        unfilled = []
        for at, entry in zip(places, entries):
            kind = entry[0]
            if kind == 'v':
                made[at] = entry[1]
            elif kind == 'dict':
                made[at] = {}
                unfilled.append((made[at], entry))
            elif kind == 'list':
                made[at] = []
                unfilled.append((made[at], entry))
            elif kind == 'set':
                made[at] = set()
                unfilled.append((made[at], entry))
            elif kind == 'f':
                made[at] = float(entry[1])
            elif kind == 'function':
                made[at] = defined[entry[1]]
            elif kind == 'path':
                made[at] = to_path(entry[1])
            elif kind == 'pattern':
                made[at] = to_pattern(entry[1], entry[2])
            elif kind != 'native':
                waiting[at] = entry
        settle(made, waiting)
        for value, entry in unfilled:
            kind = entry[0]
            if kind == 'list':
                value.extend(parts(entry[1], made))
            elif kind == 'dict':
                value.update(zip(parts(entry[1], made), parts(entry[2], made)))
            else:
                value.update(parts(entry[1], made))

    def settle(made, waiting):
        begun = set()
        for start in list(waiting):
            stack = [start]
            while stack:
                at = stack[-1]
                if at not in waiting:
                    stack.pop()
                    continue
                kind, part = waiting[at]
                needed = []
                if part[0] == 'n':
                    needed = [inner for inner in part[1] if inner in waiting]
                elif part[0] == 'm':
                    needed = [inner[0] for inner in part[1] if type(inner) is list and inner[0] in waiting]
                if needed:
                    if at in begun:
                        raise ValueError('a tuple holds itself')
                    begun.add(at)
                    stack.extend(needed)
                    continue
                stack.pop()
                waiting.pop(at)
                values = parts(part, made)
                made[at] = tuple(values) if kind == 'tuple' else frozenset(values)

    def finish(result, pairs, as_text, known):
        fields.extend(known[0])
        hosts.extend(known[1])
        if as_text:
            result = repr(result)[:20000]
        return (result, save(pairs))

    return define, restore, finish

__kit_define__, __kit_restore__, __kit_finish__ = __kit_tools__()
__kit_result__ = None
