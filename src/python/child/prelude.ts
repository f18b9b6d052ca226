/**
 * What every program begins with, in Python: functions that take the variables apart into a flat table and
 * put them together again, so that shared objects stay shared, cycles stay cycles, and no value is written
 * down twice. Built-ins are parameters: whatever the program calls `list`, these know the real one. All of
 * them are siblings, because Monty's closures reach one level up only.
 *
 * A table holds one entry for each object:
 *
 *     ["v", scalar] ["f", float] ["function", number] ["native", value] ["path", text] ["pattern", text, flags]
 *     ["list" | "tuple" | "set" | "frozenset", items] ["dict", keys, values]
 *
 * Items are scalars `["v", […]]`, floats `["f", […]]`, or positions in the table `["n", […]]`. Floats are apart
 * because 2.0 comes back from JavaScript as 2.
 */
export const prelude: string = `
def __kit_tools__(
    type=type, id=id, len=len, list=list, dict=dict, set=set, frozenset=frozenset, tuple=tuple, float=float,
    int=int, bool=bool, str=str, bytes=bytes, repr=repr, map=map, zip=zip, enumerate=enumerate,
    NameError=NameError,
):
    plain = {type(None), bool, int, str, bytes}
    floats = {float}
    sequences = {list: 'list', tuple: 'tuple', set: 'set', frozenset: 'frozenset'}
    function = type(lambda: 0)
    natives = {
        "<class 'dataclass'>", "<class 'datetime.datetime'>", "<class 'datetime.date'>",
        "<class 'datetime.timedelta'>", "<class 'datetime.timezone'>",
    }
    defined = []
    table = []
    seen = {}
    fresh = []
    work = []
    problems = []

    def define(number, made):
        defined.append((number, made))

    def items(values):
        kinds = set(map(type, values))
        if kinds.issubset(plain):
            return ('v', values)
        if kinds == floats:
            return ('f', values)
        places = []
        for value in values:
            places.append(node(value))
        return ('n', places)

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
            return seen[key]
        seen[key] = at
        fresh.append(key)
        if kind is dict:
            table.append(('dict', list(value.keys()), list(value.values())))
            work.append(at)
        elif kind is list or kind is tuple:
            table.append((sequences[kind], value))
            work.append(at)
        elif kind in sequences:
            table.append((sequences[kind], list(value)))
            work.append(at)
        else:
            table.append(other(value, kind))
        return at

    def other(value, kind):
        if kind is function:
            for number, made in defined:
                if made is value:
                    return ('function', number)
            problems.append('host function' if repr(value).endswith(' external>') else 'function')
            return ('v', None)
        name = str(kind)
        if name in natives:
            return ('native', value)
        if name == "<class 'PosixPath'>":
            return ('path', str(value))
        if name == "<class 're.Pattern'>":
            return ('pattern', value.pattern, value.flags)
        problems.append(name)
        return ('v', None)

    def save(pairs):
        roots = []
        lost = []
        for name, read in pairs:
            try:
                value = read()
            except NameError:
                continue
            first = len(table)
            root = node(value)
            while work:
                at = work.pop()
                entry = table[at]
                if entry[0] == 'dict':
                    table[at] = ('dict', items(entry[1]), items(entry[2]))
                else:
                    table[at] = (entry[0], items(entry[1]))
            if problems:
                lost.append((name, problems[0]))
                while len(table) > first:
                    table.pop()
                for key in fresh:
                    seen.pop(key)
            else:
                roots.append((name, root))
            problems.clear()
            fresh.clear()
        return (roots, table, lost)

    def parts(part, made):
        if part[0] == 'v':
            return part[1]
        if part[0] == 'f':
            return list(map(float, part[1]))
        return [made[at] for at in part[1]]

    def restore(entries, to_path, to_pattern):
        made = [None] * len(entries)
        known = dict(defined)
        waiting = set()
        for at, entry in enumerate(entries):
            kind = entry[0]
            if kind == 'v' or kind == 'native':
                made[at] = entry[1]
            elif kind == 'f':
                made[at] = float(entry[1])
            elif kind == 'list':
                made[at] = [] if entry[1][0] == 'n' else parts(entry[1], made)
            elif kind == 'dict':
                made[at] = {}
            elif kind == 'set':
                made[at] = set()
            elif kind == 'function':
                made[at] = known[entry[1]]
            elif kind == 'path':
                made[at] = to_path(entry[1])
            elif kind == 'pattern':
                made[at] = to_pattern(entry[1], entry[2])
            else:
                waiting.add(at)
        settle(entries, made, waiting)
        for at, entry in enumerate(entries):
            kind = entry[0]
            if kind == 'list':
                if entry[1][0] == 'n':
                    made[at].extend(parts(entry[1], made))
            elif kind == 'dict':
                made[at].update(zip(parts(entry[1], made), parts(entry[2], made)))
            elif kind == 'set':
                made[at].update(parts(entry[1], made))
        return made

    def settle(entries, made, waiting):
        for start in list(waiting):
            stack = [start]
            while stack:
                at = stack[-1]
                part = entries[at][1]
                needed = []
                if at in waiting and part[0] == 'n':
                    needed = [inner for inner in part[1] if inner in waiting]
                if needed:
                    stack.extend(needed)
                    continue
                stack.pop()
                if at in waiting:
                    waiting.remove(at)
                    values = parts(part, made)
                    made[at] = tuple(values) if entries[at][0] == 'tuple' else frozenset(values)

    def finish(result, pairs, as_text):
        if as_text:
            result = repr(result)[:20000]
        return (result, save(pairs))

    return define, restore, finish

__kit_define__, __kit_restore__, __kit_finish__ = __kit_tools__()
__kit_result__ = None
`.trimStart();
