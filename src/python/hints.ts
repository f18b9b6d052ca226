import type { PythonExceptionInfo } from "./python-error.ts";

/**
 * Hints for code that can replace what Monty 0.0.18 lacks, by the exception that it raises.
 * `src/python/cpython` has a program for each, so that a newer Monty shows which of them it no longer needs.
 */
const hints: readonly (readonly [exception: RegExp, hint: string])[] = [
  [
    /^TypeError: unsupported operand type\(s\) for [-+*/|&^%]+=?: .*'bool'/,
    "A bool is not a number here: write sum(1 for x in a if x > 2), or int(x > 2).",
  ],
  [
    /^TypeError: '[<>]=?' not supported between instances of '(list|dict|set)'/,
    "Lists have no order here: sort and compare tuples, as in sorted(rows, key=tuple) or max(tuple(r) for r in rows).",
  ],
  [
    /^AttributeError: 'str' object has no attribute 'format(_map)?'/,
    'Write an f-string: f"{name}: {n:.2f}".',
  ],
  [
    /^TypeError: unsupported operand type\(s\) for %: '(str|bytes)'/,
    'Write an f-string: f"{name}: {n:.2f}".',
  ],
  [/^NameError: name 'format' is not defined/, 'Write an f-string: f"{n:.2f}".'],
  [
    /thousands separator\) is not yet supported/,
    'Write a function that groups digits: def grouped(n): s = str(n); return s if len(s) < 4 else grouped(int(s[:-3])) + "," + s[-3:]',
  ],
  [
    /^TypeError: list indices must be integers or slices, not slice/,
    "Slices cannot be assigned here: write a = a[:1] + [9] + a[3:].",
  ],
  [/^TypeError: can only concatenate list/, "Write a.extend(b), or a + list(b)."],
  [
    /^AttributeError: 'type' object has no attribute '(\w+)'/,
    "Methods of a type are not values here: write a lambda, as in key=lambda s: s.lower().",
  ],
  [
    /^TypeError: int expected at most 1 argument/,
    'int() takes no base here: int(c, 16) is "0123456789abcdef".index(c.lower()) for one digit, and n * 16 + digit for the next.',
  ],
  [/^TypeError: unsupported operand type\(s\) for \|=?: 'dict'/, "Write {**a, **b}, or a.update(b)."],
  [
    /^TypeError: 'iterator' object is not iterable/,
    "An iterator is for next() alone here: loop over the list itself, from a[1:] on.",
  ],
  [
    /^TypeError: 'list' object is not an iterator/,
    "A generator expression is a list here: write next(iter(a)).",
  ],
  [/^TypeError: Value after \* must be an iterable/, "Write *list(range(3))."],
  [
    /^TypeError: callable replacement is not yet supported/,
    "Loop over re.finditer(pattern, text) and join the parts.",
  ],
  [
    /^TypeError: JSONEncoder.*'default'/,
    "Make lists, dicts, numbers and texts of the value before json.dumps().",
  ],
  [/^TypeError: print\(\) 'file' argument/, "print() writes to the output alone."],
  [
    /^RuntimeError: invalid (return|input) type/,
    "Fields of a dataclass hold data: no built-ins and no types.",
  ],
  [/^TypeError: an exception takes one text/, 'Write ValueError(str(value)), or ValueError(f"…").'],
  [
    /^AttributeError: module 'sys' has no attribute 'exit'/,
    "Let the code run to its end: what ends it with an exception keeps no variables.",
  ],
  [/^SystemExit\b/, "It ends the run as a failure, and no variable is kept: let the code run to its end."],
  [
    /^SyntaxError: invalid unpacking target/,
    "Only names can be unpacked to: write x = a[0]; a[0] = a[2]; a[2] = x.",
  ],
  [
    /^AttributeError: module 'math' has no attribute '(prod|fsum|hypot|dist)'/,
    "Write it with a loop, sum() or math.sqrt().",
  ],
  [/^NotImplementedError: .*'del' statement/, "Write d.pop(key), a.pop(index), or name = None."],
  [/^NotImplementedError: .*class definitions/, "Write functions, with dicts or tuples for data."],
  [/^NotImplementedError: .*yield expressions/, "Collect the values in a list and return it."],
  [/^NotImplementedError: .*match statements/, "Write if and elif."],
  [/^NotImplementedError: .*complex constants/, "Write the two parts as a tuple."],
  [
    /^NotImplementedError: OS function '(datetime|date)\./,
    "There is no clock here: take the time as an input.",
  ],
  [
    /^ModuleNotFoundError: No module named '(collections|itertools|functools|operator)/,
    "Write it with dicts, lists and loops: counts[k] = counts.get(k, 0) + 1; groups.setdefault(k, []).append(v).",
  ],
  [
    /^ModuleNotFoundError: /,
    "There are asyncio, datetime, json, math, pathlib, re, sys and typing, and no other modules.",
  ],
  [
    /^NameError: name '(eval|exec|compile|open|input|globals|locals|vars)'/,
    "There is no such function here.",
  ],
  [
    /^NameError: name '(issubclass|callable|ascii|bytearray|complex|memoryview)'/,
    "There is no such built-in here; type(x).__name__ says what a value is.",
  ],
  [
    /^AttributeError: 'str' object has no attribute '(maketrans|translate)'/,
    'Write "".join(table.get(c, c) for c in text).',
  ],
  [
    /^AttributeError: .* has no attribute '__\w+__'/,
    "Attributes with underscores are not there; type(x).__name__ says what a value is.",
  ],
  [/^IndexError: no such group/, "start(), end() and span() take a group by its number."],
  [
    /^TypeError: unsupported operand type\(s\) for \/: 'timedelta'/,
    "Write a.total_seconds() / b.total_seconds().",
  ],
  [/^TypeError: cannot convert 'list' object to bytes/, "Make bytes of a text, with encode()."],
  [
    /^NotImplementedError: OS function 'Open'/,
    "There are no files here: take what they hold as an input, or from a function.",
  ],
  [/^ImportError: cannot import name/, "Of a module, only a part is there; write it with what there is."],
  // The rest, and slips of the pen with it.
  [
    /^AttributeError: (module '\w+'|'(str|int|float|bool|list|dict|set|frozenset|tuple|bytes|range|function|type|date|datetime\.datetime|timedelta|timezone|re\.\w+)' object) has no attribute/,
    "Only a part of Python's methods is there: write it with loops, slices, operators and f-strings.",
  ],
];

const unknownName = /^NameError: name '(\w+)' is not defined/;

/** The hint for code that can replace what raised an exception; undefined where kit knows nothing better. */
export function hintFor({ type, message }: PythonExceptionInfo, code: string): string | undefined {
  const line = `${type}: ${message.slice(0, 2_000)}`;
  const hint = hints.find(([exception]) => exception.test(line))?.[1];
  const name = unknownName.exec(line)?.[1];
  if (hint !== undefined || name === undefined) return hint;
  // A name that the code has, with functions inside of functions, is most often one of two functions further out.
  const isNested = /\n[ \t]+(async )?def |\blambda\b/.test(code) && code.split(name).length > 2;
  return isNested
    ? `A function sees its own names, those of the function around it and those of the module: give it ${name} as a parameter.`
    : undefined;
}
