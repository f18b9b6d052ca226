/** The operator between a simple command and the one before it. */
export type CommandJoin = "first" | "and" | "or" | "then" | "pipe";

/** One simple command of literal words. */
export interface LiteralCommand {
  readonly join: CommandJoin;
  readonly words: readonly string[];
}

export type ParsedCommand =
  | { readonly ok: true; readonly commands: readonly LiteralCommand[] }
  | { readonly ok: false; readonly reason: string };

/** Longest command line, in UTF-16 units: far above what a person or a model writes. */
const maxCommandLength = 65_536;

// C0 except tab and newline, DEL, C1: no command needs them, and every shell treats them differently.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the parser refuses these
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;

// Words that a shell reads as grammar in the place of a command.
const reservedWords = new Set([
  "!",
  "{",
  "}",
  "[[",
  "]]",
  "case",
  "coproc",
  "do",
  "done",
  "elif",
  "else",
  "esac",
  "fi",
  "for",
  "function",
  "if",
  "in",
  "select",
  "then",
  "time",
  "until",
  "while",
]);

const operators: ReadonlyMap<string, CommandJoin> = new Map([
  ["&&", "and"],
  ["||", "or"],
  ["|", "pipe"],
  [";", "then"],
  ["\n", "then"],
]);

/**
 * Parses a command line of literal words as POSIX sh does (XCU 2.2, 2.3), and refuses everything else:
 * expansions, substitutions, redirects, assignments, groups, globs in the place of a program, reserved
 * words. One pass; what is ambiguous is refused.
 */
export function parseCommand(line: string): ParsedCommand {
  if (line.length > maxCommandLength) return refuse(`the line is longer than ${maxCommandLength} characters`);
  if (controlCharacters.test(line)) return refuse("it has control characters");
  const commands: LiteralCommand[] = [];
  let words: Word[] = [];
  let join: CommandJoin = "first";
  let at = 0;
  const text = line.endsWith("\n") ? line.slice(0, -1) : line;
  while (at < text.length) {
    const character = text[at] ?? "";
    if (character === " " || character === "\t") {
      at += 1;
      continue;
    }
    if (character === "\\" && text[at + 1] === "\n") {
      at += 2;
      continue;
    }
    if (character === "#") return refuse("it has a comment");
    const operator = operatorAt(text, at);
    if (operator !== undefined) {
      const next = operators.get(operator);
      if (next === undefined) return refuse(`"${operator}" is not allowed`);
      const problem = finish(commands, words, join);
      if (problem !== undefined) return refuse(problem);
      words = [];
      join = next;
      at += operator.length;
      continue;
    }
    const word = readWord(text, at);
    if (typeof word === "string") return refuse(word);
    words.push(word);
    at = word.end;
  }
  const problem = finish(commands, words, join);
  return problem === undefined ? { ok: true, commands } : refuse(problem);
}

interface Word {
  readonly value: string;
  /** Whether the word has quotes or backslashes: a quoted word is never grammar. */
  readonly quoted: boolean;
  readonly globs: boolean;
  readonly end: number;
}

function finish(commands: LiteralCommand[], words: readonly Word[], join: CommandJoin): string | undefined {
  const program = words[0];
  if (program === undefined)
    return commands.length === 0 && join === "first"
      ? "it is empty"
      : "a command is missing beside an operator";
  if (program.value === "") return "the program's name is empty";
  if (program.globs || program.value.includes("{")) return "the program's name is a pattern";
  if (!program.quoted && reservedWords.has(program.value))
    return `"${program.value}" is a word of the shell's grammar`;
  if (/^[A-Za-z_][A-Za-z0-9_]*(\[[^\]]*\])?\+?=/.test(program.value))
    return "it sets a variable before the command";
  commands.push({ join, words: words.map((word) => word.value) });
  return undefined;
}

function operatorAt(text: string, at: number): string | undefined {
  const two = text.slice(at, at + 2);
  if (two === "&&" || two === "||") return two;
  if (["|&", ";;", "&>", ">>", "<<", ">|", "<>", "<&", ">&", ";&"].includes(two)) return two;
  const one = text[at] ?? "";
  return ";|&<>()\n".includes(one) ? one : undefined;
}

/** Parses one word from `at`; returns the reason if it cannot. */
function readWord(text: string, from: number): Word | string {
  let value = "";
  let quoted = false;
  let globs = false;
  let at = from;
  while (at < text.length) {
    const character = text[at] ?? "";
    if (character === " " || character === "\t" || operatorAt(text, at) !== undefined) break;
    switch (character) {
      case "'": {
        const close = text.indexOf("'", at + 1);
        if (close === -1) return "a quote is not closed";
        value += text.slice(at + 1, close);
        quoted = true;
        at = close + 1;
        break;
      }
      case '"': {
        const part = readDoubleQuoted(text, at + 1);
        if (typeof part === "string") return part;
        value += part.value;
        quoted = true;
        at = part.end;
        break;
      }
      case "\\": {
        const next = text[at + 1];
        if (next === undefined) return "it ends in a backslash";
        if (next !== "\n") value += next;
        quoted = true;
        at += 2;
        break;
      }
      case "$":
      case "`":
        return "it has a substitution or an expansion; quote the text in single quotes if it is data";
      case "~":
        if (at === from) return "it starts a word with ~; name the folder";
        value += character;
        at += 1;
        break;
      default: {
        if ("*?[".includes(character)) globs = true;
        value += character;
        at += 1;
      }
    }
  }
  // Redirects of a numbered descriptor: `2>file`.
  if (!quoted && /^\d+$/.test(value) && (text[at] === ">" || text[at] === "<"))
    return "it redirects input or output";
  return { value, quoted, globs, end: at };
}

function readDoubleQuoted(
  text: string,
  from: number,
): { readonly value: string; readonly end: number } | string {
  let value = "";
  let at = from;
  while (at < text.length) {
    const character = text[at] ?? "";
    if (character === '"') return { value, end: at + 1 };
    if (character === "$" || character === "`") {
      // A dollar sign before a space, a quote or the end is literal.
      if (character === "$" && (text[at + 1] === undefined || ' \t\n"'.includes(text[at + 1] ?? ""))) {
        value += character;
        at += 1;
        continue;
      }
      return "it has a substitution or an expansion inside double quotes; use single quotes";
    }
    if (character === "\\") {
      const next = text[at + 1] ?? "";
      if (next === "\n") at += 2;
      else if ('$`"\\'.includes(next) && next !== "") {
        value += next;
        at += 2;
      } else {
        value += character;
        at += 1;
      }
      continue;
    }
    value += character;
    at += 1;
  }
  return "a quote is not closed";
}

function refuse(reason: string): ParsedCommand {
  return { ok: false, reason };
}
