import type { Readable, Writable } from "node:stream";
import { styleText } from "node:util";
import { toSafeJson, truncate, wrap } from "../text/safe-text.ts";

/** A stream of the process, or anything that behaves like one. */
export type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export type Style = Parameters<typeof styleText>[0];

/** Where a command prints: answers on stdout, remarks and progress on stderr. */
export interface Output {
  /** Whether a person reads stdout: then align and shorten. Otherwise print every value whole, separated by tabs. */
  readonly isTerminal: boolean;
  /** Whether a person reads stderr. */
  readonly hasNoteTerminal: boolean;
  /** Columns of that terminal; infinite where there is none. */
  readonly width: number;
  /** Colours for stdout; NO_COLOR and FORCE_COLOR override the terminal. */
  style(style: Style, text: string): string;
  /** Prints the text as it is: pass a text from a file through `safeLine` or `safeLines` first. */
  write(text: string): void;
  line(text?: string): void;
  json(value: unknown): void;
  /** A remark on stderr, beside the answer. */
  note(text: string): void;
  noteStyle(style: Style, text: string): string;
  /** Shows progress on the last line of a terminal until the next call; "" clears it. */
  progress(text: string): void;
  /** Whether stdout could not be written, such as a file on a full disk; a note has said so. */
  readonly hasFailed: boolean;
}

/** Lines that GitHub's runner would take for commands, such as `::set-output name=…::`, other than the annotations that kit prints itself. */
const runnerCommands = /^([^\S\n]*:)(?=:(?!(?:error|warning|notice) ))|##(?=\[)/gm;

const clearLine = "\r\u001B[K";

/**
 * Writes to the two streams of the process. Continues silently when a reader like `head` closes its end, and with a note when
 * stdout cannot be written: a server does not end with the disk of its log.
 */
export function createOutput(stdout: OutputStream, stderr: OutputStream): Output {
  let hasFailed = false;
  const write = createWriter(stdout, (error) => {
    hasFailed = true;
    // Node writes "ENOSPC: no space left on device, write".
    const [, reason = error.message] = /^[A-Z]+: (.+), \w+$/.exec(error.message) ?? [];
    writeNote(`error: The rest of the output cannot be written: ${reason}.\n`);
  });
  // There is no place left to report an error of stderr.
  const writeNote = createWriter(stderr, () => undefined);
  let isShowingProgress = false;
  const progress = (text: string): void => {
    if (!stderr.isTTY || (text === "" && !isShowingProgress)) return;
    isShowingProgress = text !== "";
    // A progress line that wraps could not be cleared.
    const line = truncate(text, widthOf(stderr) - 1);
    writeNote(line === "" ? clearLine : `${clearLine}${styleText("dim", line, { stream: stderr })}`);
  };
  const withoutCommands = (text: string): string =>
    process.env.GITHUB_ACTIONS === undefined ? text : text.replace(runnerCommands, "$& ");
  const writeAnswer = (text: string): void => {
    progress("");
    write(text);
  };
  return {
    isTerminal: stdout.isTTY === true,
    hasNoteTerminal: stderr.isTTY === true,
    width: stdout.isTTY ? widthOf(stdout) : Number.POSITIVE_INFINITY,
    style: (style, text) => styleText(style, text, { stream: stdout }),
    write: writeAnswer,
    line: (text = "") => writeAnswer(`${withoutCommands(text)}\n`),
    json: (value) => writeAnswer(`${toSafeJson(value)}\n`),
    note: (text) => {
      progress("");
      // Without wrapping here, a terminal would break long lines inside words.
      const lines = stderr.isTTY ? text.split("\n").flatMap((line) => wrap(line, widthOf(stderr))) : [text];
      writeNote(`${withoutCommands(lines.join("\n"))}\n`);
    },
    noteStyle: (style, text) => styleText(style, text, { stream: stderr }),
    progress,
    get hasFailed() {
      return hasFailed;
    },
  };
}

/** A terminal that does not know its width says 0. */
function widthOf({ columns = 0 }: OutputStream): number {
  return columns > 0 ? columns : 80;
}

function createWriter(
  stream: OutputStream,
  onError: (error: NodeJS.ErrnoException) => void,
): (text: string) => void {
  let isOpen = true;
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (isOpen && error.code !== "EPIPE") onError(error);
    isOpen = false;
  });
  return (text) => {
    if (isOpen) stream.write(text);
  };
}

/** stdin of the process, or a stream that behaves like it. */
export type InputStream = Readable & { readonly isTTY?: boolean };

/** Whether kit can ask a person: both input and remarks are at a terminal. */
export function canAsk({ input, output }: { readonly input: InputStream; readonly output: Output }): boolean {
  return input.isTTY === true && output.hasNoteTerminal;
}
