import { suggest } from "../../../base/error-text.ts";

/**
 * How a command uses a path: `read` follows links, `file` does so and must not be a folder, `entry` reads a link itself;
 * `write` changes one file, `tree` everything below a folder, `remove` deletes the name. A `place` is the target of a copy or move: it counts as a
 * tree, unless it is an existing folder; then another mention names the file inside it.
 */
export type PathUse = "read" | "file" | "entry" | "write" | "tree" | "remove" | "place";

/** A path as the command writes it: relative to its working folder, or absolute. */
export interface PathMention {
  readonly path: string;
  readonly use: PathUse;
  /** The source of a copy or, if its use is `remove`, of a move. */
  readonly from?: PathMention;
}

/** The effects of a known form. A form that neither writes the workspace nor connects to other machines only reads. */
export interface KnownForm {
  readonly writes?: true;
  readonly connects?: true;
  readonly git?: GitCall;
  /** The paths in its words. The caller checks them: the policy itself reads no files. */
  readonly paths: readonly PathMention[];
  /** The arguments to run instead of the written ones: with options that keep files of secrets out. */
  readonly args?: readonly string[];
}

/** The parsed parts of a Git command. */
export interface GitCall {
  readonly subcommand: string;
  /** The folder after `-C`. */
  readonly folder?: string;
  /** The index among Git's arguments at which options of the subcommand can be inserted. */
  readonly optionsAt: number;
}

/** Matches arguments with a known form; returns the reason if they have none: the refused word, and an alternative. */
export type Form = (args: readonly string[]) => KnownForm | string;

/** The options and operands of a command, separated as its program does. */
export interface ParsedArguments {
  readonly options: readonly { readonly name: string; readonly value?: string }[];
  readonly operands: readonly string[];
  readonly paths: readonly PathMention[];
  /** The index of the `--` that ends the options, which is no value of one; the number of all words without it. */
  readonly endAt: number;
}

/**
 * The kind of a value or operand: a path with its use, a text, a number, a Git revision or path. A
 * `message` is a text that may begin with a dash.
 */
export type Kind = PathUse | "text" | "message" | "number" | "revision";

export interface FormSpec {
  readonly writes?: true;
  readonly connects?: true;
  /**
   * The known options, separated by spaces: `-n` has no value, `-k=text` needs one (`-k2`, `-k 2`), `--color[=]`
   * accepts one after `=`, `--sort=name|size` needs one of these, `-#` is a dash and a number.
   */
  readonly options?: string;
  /** Default `text`. */
  readonly operands?:
    | Kind
    | ((operands: readonly string[], options: ParsedArguments["options"]) => readonly PathMention[] | string);
  readonly min?: number;
  /** Default: any number. */
  readonly max?: number;
  /** For programs that treat every word after the first operand as an operand. */
  readonly optionsFirst?: true;
  /** A further check; returns the reason of a failure. */
  readonly check?: (parsed: ParsedArguments) => string | undefined;
  /** Options that keep files of secrets out of what it reads below folders. */
  readonly hides?: (parsed: ParsedArguments) => readonly string[];
}

/** Shell patterns of the names of files with secrets, in any letter case. */
export const secretPatterns: readonly string[] = [
  ".[eE][nN][vV]",
  ".[eE][nN][vV][rR][cC]",
  ".[eE][nN][vV].*",
];

/** Creates a form from its options and operands. The option table is parsed on first use. */
export function form(spec: FormSpec): Form {
  let table: OptionTable | undefined;
  return (args) => {
    table ??= readTable(spec.options ?? "");
    const parsed = readArguments(args, table, spec);
    if (typeof parsed === "string") return parsed;
    const { min = 0, max = Number.POSITIVE_INFINITY, operands: kind = "text" } = spec;
    if (parsed.operands.length < min)
      return `it needs ${min === 1 ? "an operand" : `${min} operands`} beside its options`;
    const extra = parsed.operands[max];
    if (extra !== undefined) return `"${extra}" is one operand too many; ${most(max)}`;
    const operandPaths =
      typeof kind === "function"
        ? kind(parsed.operands, parsed.options)
        : parsed.operands.flatMap((operand) => mentionOf(operand, kind));
    if (typeof operandPaths === "string") return operandPaths;
    const reason = spec.check?.(parsed);
    if (reason !== undefined) return reason;
    const paths = [...parsed.paths, ...operandPaths];
    const hiding = spec.hides?.(parsed) ?? [];
    return {
      paths,
      ...(spec.writes && { writes: true }),
      ...(spec.connects && { connects: true }),
      // After all other options, because the last one decides.
      ...(hiding.length > 0 && {
        args: [...args.slice(0, parsed.endAt), ...hiding, ...args.slice(parsed.endAt)],
      }),
    };
  };
}

function most(max: number): string {
  return max === 0 ? "it takes options only" : `at most ${max} ${max === 1 ? "is" : "are"} known`;
}

/** The path in a value, as a list; empty for standard input, the null device and kinds without a path. */
export function mentionOf(value: string, kind: Kind): readonly PathMention[] {
  if (kind === "text" || kind === "message" || kind === "number") return [];
  if (value === "-" || value === "/dev/null") return [];
  // Git treats a word that is not a revision as a path: `git diff` compares any two files.
  return [{ path: value, use: kind === "revision" ? "read" : kind }];
}

interface OptionRule {
  readonly value: "none" | "needed" | "possible";
  readonly kind: Kind;
  /** The known values; default: any. */
  readonly choices?: readonly string[];
}

interface OptionTable {
  readonly rules: ReadonlyMap<string, OptionRule>;
  readonly digits: boolean;
}

const kinds: ReadonlySet<string> = new Set<Kind>([
  "read",
  "entry",
  "write",
  "tree",
  "remove",
  "text",
  "message",
  "number",
  "revision",
]);

function readTable(options: string): OptionTable {
  const rules = new Map<string, OptionRule>();
  for (const token of options.split(/\s+/)) {
    const [, name = "", optional, value] = /^(--?[^=[]+)(\[)?(?:=([^\]]*)\]?)?$/.exec(token) ?? [];
    if (name === "") continue;
    const isKind = value !== undefined && kinds.has(value);
    rules.set(name, {
      value: value === undefined ? "none" : optional === undefined ? "needed" : "possible",
      kind: isKind ? (value as Kind) : "text",
      ...(isKind || value === undefined || value === "" ? {} : { choices: value.split("|") }),
    });
  }
  return { rules, digits: rules.delete("-#") };
}

/**
 * Separates options from operands as getopt does: options after operands, values joined or as the next word, and
 * `--`. A value as the next word must not begin with a dash: a version of the program whose option has no value
 * would read it as an option.
 */
function readArguments(
  args: readonly string[],
  table: OptionTable,
  spec: FormSpec,
): ParsedArguments | string {
  const options: { name: string; value?: string }[] = [];
  const operands: string[] = [];
  const paths: PathMention[] = [];
  let endAt = args.length;
  /** Adds an option with its value; returns the reason if the value is not known. */
  const addOption = (name: string, rule: OptionRule, value?: string): string | undefined => {
    options.push(value === undefined ? { name } : { name, value });
    if (value === undefined) return undefined;
    if (rule.choices !== undefined && !rule.choices.includes(value))
      return `"${value}" is not a value of ${name} that kit knows; known: ${rule.choices.join(", ")}`;
    if (rule.kind === "number" && !/^[+-]?\d+(\.\d+)?[A-Za-z]{0,3}$/.test(value))
      return `"${value}" is not a number for ${name}`;
    paths.push(...mentionOf(value, rule.kind));
    return undefined;
  };
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at] ?? "";
    if (word === "--") {
      operands.push(...args.slice(at + 1));
      endAt = at;
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      operands.push(word);
      continue;
    }
    if (spec.optionsFirst === true && operands.length > 0)
      return `"${word}" stands behind an operand; write options first`;
    if (table.digits && /^-\d+$/.test(word)) continue;
    const next = args[at + 1];
    /** Returns the fault of the next word as the value of an option. */
    const faultOfNext = (name: string, { kind }: OptionRule): string | undefined =>
      next === undefined
        ? `"${name}" needs a value`
        : kind !== "message" && next.startsWith("-") && !/^-\d*$/.test(next)
          ? `"${next}" cannot be the value of ${name}; join the two (${name.startsWith("--") ? `${name}=…` : `${name}…`})`
          : undefined;
    if (word.startsWith("--")) {
      const equals = word.indexOf("=");
      const name = equals === -1 ? word : word.slice(0, equals);
      const rule = table.rules.get(name);
      if (rule === undefined) return faultOfUnknown(word, name, table);
      let value = equals === -1 ? undefined : word.slice(equals + 1);
      if (rule.value === "none" && value !== undefined) return `"${word}": ${name} takes no value`;
      if (rule.value === "needed" && value === undefined) {
        const reason = faultOfNext(name, rule);
        if (reason !== undefined) return reason;
        value = next ?? "";
        at += 1;
      }
      const reason = addOption(name, rule, value);
      if (reason !== undefined) return reason;
      continue;
    }
    for (let index = 1; index < word.length; index += 1) {
      const name = `-${word[index]}`;
      const rule = table.rules.get(name);
      if (rule === undefined) return faultOfUnknown(word, name, table);
      const rest = word.slice(index + 1);
      let value = rule.value === "none" || (rule.value === "possible" && rest === "") ? undefined : rest;
      if (value === "") {
        const reason = faultOfNext(name, rule);
        if (reason !== undefined) return reason;
        value = next ?? "";
        at += 1;
      }
      const reason = addOption(name, rule, value);
      if (reason !== undefined) return reason;
      if (value !== undefined) break;
    }
  }
  return { options, operands, paths, endAt };
}

/** Known words that a refusal lists. */
const maxListed = 12;

function faultOfUnknown(word: string, name: string, { rules }: OptionTable): string {
  const names = [...rules.keys()];
  const what = word === name || word.startsWith(`${name}=`) ? `"${word}"` : `"${name}" of "${word}"`;
  return `${what} is not an option that kit knows${knownWords(name, names)}`;
}

/** Lists the known words for a refusal: the most similar one, and the first of all. */
export function knownWords(word: string, known: readonly string[]): string {
  if (known.length === 0) return "; it takes none";
  const suggestion = word.length > 2 ? suggest(word, known) : undefined;
  const more = known.length > maxListed ? ` and ${known.length - maxListed} more` : "";
  return `${suggestion === undefined ? "" : `; did you mean ${suggestion}?`}${suggestion === undefined ? "; " : " "}known: ${known.slice(0, maxListed).join(" ")}${more}`;
}

/** The paths of a copy or move: it reads or removes the sources and writes the last operand, or files of their names in that folder. */
export function copiesTo(
  operands: readonly string[],
  source: "read" | "remove",
): readonly PathMention[] | string {
  const target = operands.at(-1);
  if (target === undefined || operands.length < 2) return "it needs what to take and where to put it";
  return operands.slice(0, -1).flatMap((path): readonly PathMention[] => {
    const name = path.replace(/\/+$/, "").split("/").at(-1) ?? "";
    const inTarget =
      name === "" || name === "." || name === ".." ? target : `${target.replace(/\/+$/, "")}/${name}`;
    const from = { path, use: source };
    return [
      from,
      { path: target, use: "place", from },
      // Copying a folder also writes everything below it.
      { path: inTarget, use: "tree", from },
    ];
  });
}
