import { readFileSync } from "node:fs";
import { ownModule } from "../../base/own-package.ts";
import type { KeptFunction, KeptImport } from "../process/messages.ts";
import type { ProgramReading } from "./read-program.ts";

/**
 * The beginning of every program. It lies beside the module of the process, in the sources and in `dist/`.
 */
const prelude = readFileSync(new URL("prelude.py", ownModule("python/child/main")), "utf8");

/** Where a line of a program comes from: the code of the run, or a function of an earlier one. */
export interface LineOrigin {
  readonly file: "main.py" | "earlier.py";
  readonly line: number;
  /** The line as it was written. */
  readonly source: string;
}

export interface ComposedProgram {
  readonly text: string;
  /** The first line after what puts the kept functions, imports and variables back. */
  readonly codeLine: number;
  /** The origin of a line, counted from 1; undefined for lines of kit's own. */
  originOf(line: number): LineOrigin | undefined;
}

export interface ProgramParts {
  readonly code: string;
  /** The code as it was written, which tracebacks show; its lines are those of `code`. */
  readonly written: string;
  readonly reading: ProgramReading;
  readonly functions: readonly KeptFunction[];
  readonly imports: readonly KeptImport[];
  /** Variables of earlier runs. */
  readonly variables: readonly string[];
  readonly returns: "value" | "repr";
  /** Names of fields that its dataclasses have, and of the functions of the host. */
  readonly fields: readonly string[];
  readonly hosts: readonly string[];
  /** Names that the program is started with. */
  readonly inputs: ReadonlySet<string>;
  /** Names of the run's own inputs; each replaces an earlier function, import or variable of that name. */
  readonly given: ReadonlySet<string>;
  /** Names whose values are kept at the end. */
  readonly names: readonly string[];
}

/** The name under which a program finds the tables of its variables. */
export const tablesInput = "__kit_tables__";

/** The name of an instance of a dataclass: Python has no other name for the type of them all. */
export const dataclassInput = "__kit_dataclass__";

/**
 * Lays the program of one run out: kit's prelude, what is kept of earlier runs, the code, and last a call
 * that gives its result and takes its variables.
 */
export function composeProgram(parts: ProgramParts): ComposedProgram {
  const writer = createLineWriter();
  writer.own(prelude);
  // Before the code can give these names to something else.
  writer.own(`__kit_known__ = (${JSON.stringify(parts.fields)}, [${parts.hosts.join(", ")}])`);
  // To Monty, a function can only speak of variables that are set somewhere above it; here, they all are.
  const mentioned = new Set([
    ...parts.functions.flatMap(({ mentions }) => mentions),
    ...parts.reading.mentioned,
  ]);
  const declared = parts.names.filter((name) => mentioned.has(name) && !parts.inputs.has(name));
  if (declared.length > 0) writer.own(`if False:\n    ${declared.join(" = ")} = None`);
  const replaced = [...parts.imports, ...parts.functions].filter(({ name }) => parts.given.has(name));
  replaced.forEach(({ name }, index) => {
    writer.own(`__kit_given_${index}__ = ${name}`);
  });
  for (const { source } of parts.imports) writer.own(source);
  for (const { name, source } of parts.functions) {
    writer.write(source, { file: "earlier.py", line: 1, lines: source.split("\n") });
    writer.own(defineLine(name));
  }
  replaced.forEach(({ name }, index) => {
    writer.own(`${name} = __kit_given_${index}__`);
  });
  if (parts.variables.length > 0) {
    writer.own(`${tablesInput} = __kit_restore__(${tablesInput})`);
    for (const name of parts.variables) writer.own(`${name} = ${tablesInput}["${name}"]`);
    // The values that the program lets go of are free again.
    writer.own(`${tablesInput} = None`);
  }
  const codeLine = writer.line;
  writeCode(writer, parts);
  const pairs = parts.names.map((name) => `("${name}", lambda: ${name})`).join(", ");
  const asText = parts.returns === "repr" ? "True" : "False";
  writer.own(`__kit_finish__(__kit_result__, [${pairs}], ${asText}, __kit_known__)`);
  return { ...writer.finish(), codeLine };
}

/** The code with its last expression caught, and each function that can stay made known after it. */
function writeCode(writer: LineWriter, { code, written, reading }: ProgramParts): void {
  const lines = written.split("\n");
  let from = 0;
  let line = 1;
  const write = (text: string): void => writer.write(text, { file: "main.py", line, lines });
  const upTo = (end: number): void => {
    const text = code.slice(from, end);
    if (text !== "") write(text.endsWith("\n") ? text.slice(0, -1) : text);
    line += text.split("\n").length - 1;
    from = end;
  };
  for (const { name, end } of reading.functions) {
    upTo(end);
    writer.own(defineLine(name));
  }
  if (reading.result !== undefined && reading.result >= from) {
    const start = code.lastIndexOf("\n", reading.result - 1) + 1;
    upTo(start);
    const before = code.slice(start, reading.result);
    // The backslash joins the lines, so that the expression keeps its columns for the traceback.
    write(`${before}__kit_result__ = \\`);
    write(" ".repeat(before.length) + code.slice(reading.result));
    return;
  }
  upTo(code.length);
}

function defineLine(name: string): string {
  return `__kit_define__("${name}", ${name})`;
}

/** A stretch of lines: the file it is from, the number of its first line there, and the lines of the file. */
interface Stretch {
  readonly file: LineOrigin["file"];
  readonly line: number;
  readonly lines: readonly string[];
}

interface LineWriter {
  write(text: string, stretch: Stretch): void;
  own(text: string): void;
  /** The number of the line that is written next. */
  readonly line: number;
  finish(): Omit<ComposedProgram, "codeLine">;
}

function createLineWriter(): LineWriter {
  const texts: string[] = [];
  const spans: { readonly first: number; readonly count: number; readonly stretch: Stretch }[] = [];
  let next = 1;
  const add = (text: string): number => {
    const count = text.split("\n").length;
    texts.push(text);
    next += count;
    return count;
  };
  return {
    write(text, stretch) {
      const first = next;
      spans.push({ first, count: add(text), stretch });
    },
    own: add,
    get line() {
      return next;
    },
    finish: () => ({
      text: `${texts.join("\n")}\n`,
      originOf(line) {
        const span = spans.find(({ first, count }) => line >= first && line < first + count);
        if (span === undefined) return undefined;
        const { file, lines, line: start } = span.stretch;
        const own = start + line - span.first;
        return { file, line: own, source: lines[own - 1] ?? "" };
      },
    }),
  };
}
