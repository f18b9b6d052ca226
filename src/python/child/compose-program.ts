import { readFileSync } from "node:fs";
import { ownModule } from "../../base/own-package.ts";
import type { KeptFunction, KeptImport } from "../process/messages.ts";
import type { ProgramReading } from "./read-program.ts";

/**
 * The beginning of every program. The file is next to the process's module, in the sources and in `dist/`.
 */
const prelude = readFileSync(new URL("prelude.py", ownModule("python/child/main")), "utf8");

/** The origin of a program's line: the code of the run, or a function of an earlier run. */
export interface LineOrigin {
  readonly file: "main.py" | "earlier.py";
  readonly line: number;
  /** The original line. */
  readonly source: string;
}

export interface ComposedProgram {
  readonly text: string;
  /** The first line after the code that restores functions, imports and variables. */
  readonly codeLine: number;
  /** The origin of a line, counted from 1; `undefined` for lines that kit added. */
  originOf(line: number): LineOrigin | undefined;
}

export interface ProgramParts {
  readonly code: string;
  /** The original code, which tracebacks show; it has the same lines as `code`. */
  readonly written: string;
  readonly reading: ProgramReading;
  readonly functions: readonly KeptFunction[];
  readonly imports: readonly KeptImport[];
  /** Variables of earlier runs. */
  readonly variables: readonly string[];
  readonly returns: "value" | "repr";
  /** Names of the fields of its dataclasses, and of the host functions. */
  readonly fields: readonly string[];
  readonly hosts: readonly string[];
  /** Names of the program's inputs. */
  readonly inputs: ReadonlySet<string>;
  /** Names of the run's own inputs; each replaces an earlier function, import or variable of that name. */
  readonly given: ReadonlySet<string>;
  /** Names whose values are saved at the end. */
  readonly names: readonly string[];
}

/** The input name of the tables of variables. */
export const tablesInput = "__kit_tables__";

/** The name of a sample dataclass instance, from which the prelude gets the common type of all instances. */
export const dataclassInput = "__kit_dataclass__";

/**
 * Composes the program of one run: kit's prelude, the saved state of earlier runs, the code, and finally a call that returns
 * its result and saves its variables.
 */
export function composeProgram(parts: ProgramParts): ComposedProgram {
  const writer = createLineWriter();
  writer.own(prelude);
  // Read these names before the code can rebind them.
  writer.own(`__kit_known__ = (${JSON.stringify(parts.fields)}, [${parts.hosts.join(", ")}])`);
  // Monty lets a function use only variables that are set somewhere above it, so set all of them here.
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
    // Delete the tables, so that values that the program drops can be freed.
    writer.own(`${tablesInput} = None`);
  }
  const codeLine = writer.line;
  writeCode(writer, parts);
  const pairs = parts.names.map((name) => `("${name}", lambda: ${name})`).join(", ");
  const asText = parts.returns === "repr" ? "True" : "False";
  writer.own(`__kit_finish__(__kit_result__, [${pairs}], ${asText}, __kit_known__)`);
  return { ...writer.finish(), codeLine };
}

/** The code, with its last expression assigned to the result, and a registration after each function that can be saved. */
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
    // The backslash joins the lines, so that the expression keeps its columns in tracebacks.
    write(`${before}__kit_result__ = \\`);
    write(" ".repeat(before.length) + code.slice(reading.result));
    return;
  }
  upTo(code.length);
}

function defineLine(name: string): string {
  return `__kit_define__("${name}", ${name})`;
}

/** A range of lines: its file, the number of its first line there, and the lines of the file. */
interface Stretch {
  readonly file: LineOrigin["file"];
  readonly line: number;
  readonly lines: readonly string[];
}

interface LineWriter {
  write(text: string, stretch: Stretch): void;
  own(text: string): void;
  /** The number of the next line. */
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
