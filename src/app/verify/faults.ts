/** A fault to put into a file: the file's text with it. */
export interface Fault {
  readonly path: string;
  /** 1-based; the first line of several. */
  readonly line: number;
  readonly how: string;
  readonly text: string;
}

/** A change of one line. */
interface Edit {
  readonly at: number;
  readonly line: string;
  readonly how: string;
}

/** A version of a file before and after a change; `before` is empty for a new file. */
export interface ChangedText {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

const codeFile =
  /\.(?:[cm]?[jt]sx?|py|go|rs|java|kts?|rb|php|cs|swift|scala|c|cc|cpp|h|hpp|m|ex|exs|dart|vue|svelte)$/i;

/** Whether kit can put faults into a file: programs, by the ends of their names. */
export function isCode(path: string): boolean {
  return codeFile.test(path);
}

const swaps: readonly (readonly [from: string, to: string])[] = [
  [" === ", " !== "],
  [" !== ", " === "],
  [" == ", " != "],
  [" != ", " == "],
  [" >= ", " < "],
  [" <= ", " > "],
  [" < ", " >= "],
  [" > ", " <= "],
  [" && ", " || "],
  [" || ", " && "],
  [" and ", " or "],
  [" or ", " and "],
  [" + ", " - "],
  [" - ", " + "],
  [" * ", " + "],
  [" / ", " * "],
  [" % ", " * "],
];

/** Lines that are no code: comments, imports, and lines of brackets alone. */
const noCode =
  /^(?:\/\/|\/?\*|#(?!\[)|import\b|from\b.+\bimport\b|export \* |package\b|using\b|[{}()[\];,]+$)/;

function editsOf(line: string, at: number, isPython: boolean): readonly Edit[] {
  const code = line.trim();
  const edits: Edit[] = [];
  const put = (how: string, changed: string): void => {
    if (changed !== line) edits.push({ at, line: changed, how });
  };
  if (/^return\b/.test(code))
    put("returns nothing", line.replace(/return\b.*$/, isPython ? "return None" : "return undefined;"));
  if (/=>\s*[^{\s(]/.test(code) && !/=>\s*\S.*[{([]\s*$/.test(code))
    put(
      "returns nothing",
      line.replace(/=>\s*[^{\s].*$/, (rest) => `=> undefined${/[)\]]*[;,]?\s*$/.exec(rest)?.[0] ?? ""}`),
    );
  const swap = swaps.find(([from]) => code.includes(from));
  if (swap !== undefined) put(`"${swap[0].trim()}" is "${swap[1].trim()}"`, line.replace(swap[0], swap[1]));
  put("true is false", line.replace(/\btrue\b/, "false").replace(/\bTrue\b/, "False"));
  put("false is true", line.replace(/\bfalse\b/, "true").replace(/\bFalse\b/, "True"));
  const number = /(?<![\w.#"'`$-])\d+(?![\w.])/.exec(line);
  if (number !== null)
    put(
      "a number is one more",
      `${line.slice(0, number.index)}${Number(number[0]) + 1}${line.slice(number.index + number[0].length)}`,
    );
  put("the line is missing", isPython ? line.replace(/\S.*$/, "pass") : "");
  return edits;
}

function changedEdits({ path, before, after }: ChangedText): {
  readonly lines: readonly string[];
  readonly edits: readonly Edit[];
} {
  const old = new Set(before.split("\n").map((line) => line.trim()));
  const lines = after.split("\n");
  const isPython = path.endsWith(".py");
  const edits = lines.flatMap((line, at) => {
    const code = line.trim();
    return code === "" || old.has(code) || noCode.test(code) ? [] : editsOf(line, at, isPython);
  });
  return { lines, edits };
}

/**
 * Small faults in the lines that a change added, in any language: operators, numbers, results, missing lines. The method is that of
 * universalmutator (Groce et al., ICSE 2018), which needs no parser. At most `most` of each file's share, spread evenly over the
 * lines; then, for tests that only few lines concern, faults of one kind in all lines of a file at once.
 */
export function faultsOf(changed: readonly ChangedText[], most: number): readonly Fault[] {
  const singles: Fault[] = [];
  const together: Fault[] = [];
  for (const file of changed) {
    const { lines, edits } = changedEdits(file);
    const toFault = (some: readonly Edit[]): Fault => {
      const text = [...lines];
      for (const { at, line } of some) text[at] = line;
      const [first] = some;
      const how = some.length === 1 ? (first?.how ?? "") : `${first?.how ?? ""}, in ${some.length} lines`;
      return { path: file.path, line: (first?.at ?? 0) + 1, how, text: text.join("\n") };
    };
    singles.push(...edits.map((edit) => toFault([edit])));
    for (const some of Map.groupBy(edits, ({ how }) => how.replace(/".*/, "operator")).values()) {
      const oncePerLine = [...new Map(some.map((edit) => [edit.at, edit])).values()];
      if (oncePerLine.length > 1 && !oncePerLine[0]?.how.startsWith("the line"))
        together.push(toFault(oncePerLine));
    }
  }
  const step = Math.max(1, singles.length / most);
  const chosen = Array.from(
    { length: Math.min(most, singles.length) },
    (_, at) => singles[Math.floor(at * step)],
  ).filter((fault) => fault !== undefined);
  return [...chosen, ...together.slice(0, most)];
}

/**
 * The same program with other spaces in the changed lines: a test that runs the code cannot tell, one that reads its text can. Lines
 * with quotes, slashes, comments and patterns are left out, and so are the spaces at the beginning of a line.
 */
export function respaced({ before, after }: ChangedText): string {
  const old = new Set(before.split("\n").map((line) => line.trim()));
  return after
    .split("\n")
    .map((line) =>
      old.has(line.trim()) || /["'`/#\\<]/.test(line) ? line : line.replace(/(?<=\S) (?=\S)/g, "  "),
    )
    .join("\n");
}
