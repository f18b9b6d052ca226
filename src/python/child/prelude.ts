/**
 * What every program begins with, in Python: functions that take the variables apart into flat tables and
 * put them together again, so that shared objects stay shared, cycles stay cycles, and no value is written
 * down twice. Built-ins are parameters: whatever the program calls `list`, these know the real one. All of
 * them are siblings, because Monty's closures reach one level up only.
 *
 * A group is what variables that share objects come to: `[roots, ranges, entries]` as JSON. Roots are names
 * with the place of their value; places count over all groups, and the ranges `[first, count]` say which are in
 * this one. An entry is one object:
 *
 *     ["v", value]                                   null, a number, a text; a list or dict of nothing but those
 *     ["f", float] ["native", place] ["function", name] ["path", text] ["pattern", text, flags]
 *     ["list" | "tuple" | "set" | "frozenset", items] ["dict", keys, values]
 *
 * Items are scalars `["v", […]]`, floats `["f", […]]`, places `["n", […]]`, or scalars and `[place]`s mixed `["m", […]]`.
 * Large floats are apart because Monty writes 1e300 without a point. What JSON does not have goes beside the
 * text, as values of Monty's. Speed is why plain lists and dicts go through JSON whole.
 */
export const prelude: string = `
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
    starts = []
    joined = []
    beside = []
    used = []
    seen = {}
    work = []
    problems = []

    def define(name, made):
        defined[name] = made

    def group_of(root):
        while joined[root] != root:
            root = joined[root]
        return root

    def join(at):
        here = len(joined) - 1
        if at < starts[here]:
            low = 0
            high = here
            while high - low > 1:
                middle = (low + high) // 2
                if starts[middle] <= at:
                    low = middle
                else:
                    high = middle
            joined[group_of(here)] = group_of(low)

    def node(value):
        kind = type(value)
        at = len(table)
        if kind in plain:
            table.append(('v', value))
            return at
        if kind is float:
            table.append(('f', value))
            return at
        key = id(value)
        if key in seen:
            join(seen[key])
            return seen[key]
        seen[key] = at
        if kind is dict or kind in sequences:
            table.append(value)
            work.append(at)
        else:
            table.append(other(value, kind))
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
        roots = []
        lost = []
        for name, value in variables:
            first = len(table)
            joined.append(len(joined))
            beside.append([])
            used.append(set())
            starts.append(first)
            root = node(value)
            while work:
                at = work.pop()
                table[at] = entry_of(table[at])
            if problems:
                lost.append((name, problems[0]))
                while len(table) > first:
                    table.pop()
                for key in list(seen.keys()):
                    if seen[key] >= first:
                        seen.pop(key)
                beside[-1].clear()
                used[-1].clear()
                problems.clear()
                roots.append(None)
            else:
                roots.append((name, root))
        starts.append(len(table))
        groups = {}
        for number, root in enumerate(roots):
            if root is not None:
                group = group_of(number)
                if group not in groups:
                    groups[group] = []
                groups[group].append(number)
        written = []
        for numbers in groups.values():
            names = [roots[number][0] for number in numbers]
            try:
                written.append((names, gather(numbers, roots)))
            except ValueError:
                for name in names:
                    lost.append((name, 'huge number'))
        return (list(kept), written, lost)

    def gather(numbers, roots):
        ranges = []
        entries = []
        values = []
        names = set()
        for number in numbers:
            first = starts[number]
            last = starts[number + 1]
            ranges.append((first, last - first))
            entries.extend(table[first:last])
            values.extend(beside[number])
            names.update(used[number])
        text = dumps(([roots[number] for number in numbers], ranges, entries))
        return (text, values, list(names))

    def parts(part, made):
        kind, values = part
        if kind == 'v':
            return values
        if kind == 'n':
            return [made[at] for at in values]
        if kind == 'f':
            return list(map(float, values))
        return [made[value[0]] if type(value) is list else value for value in values]

    def restore(groups):
        variables = {}
        for text, values in groups:
            roots, ranges, entries = loads(text)
            made = dict(values)
            places = []
            for first, count in ranges:
                if count > len(entries):
                    raise ValueError('a range is larger than its table')
                places.extend(range(first, first + count))
            build(places, entries, made)
            for name, at in roots:
                variables[name] = made[at]
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
`.trimStart();
