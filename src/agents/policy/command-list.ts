import { suggest } from "../../base/error-text.ts";
import type { AgentPolicy, AllowedCommand } from "../define/agent-profile.ts";
import { isSubcommandOfGit, subcommandsOfGit } from "./forms/git-form.ts";
import { interpreterOf, isLauncher, knownProgram } from "./forms/programs.ts";
import { parseCommand } from "./parse-command.ts";

/**
 * A parsed entry of a command list. A `name` allows the known forms of a program or a subcommand; a `line`
 * allows exactly that line; a `prefix` allows more arguments; `unsafe` allows every line that begins with it.
 */
export interface ListEntry {
  readonly kind: "name" | "line" | "prefix" | "unsafe";
  readonly words: readonly string[];
  readonly written: string;
}

/** Parses an entry; returns the reason if it is invalid. */
function readEntry(entry: AllowedCommand): ListEntry | string {
  const written = (typeof entry === "string" ? entry : entry.command).trim();
  const open = /\s\*$/.test(written);
  const parsed = parseCommand(open ? written.slice(0, -1).trimEnd() : written);
  if (!parsed.ok) return parsed.reason;
  const [command, second] = parsed.commands;
  if (command === undefined || second !== undefined) return "it is more than one command";
  const { words } = command;
  const unsafe = typeof entry !== "string" && entry.unsafe === true;
  return { kind: unsafe ? "unsafe" : open ? "prefix" : isName(words) ? "name" : "line", words, written };
}

/** Parsed lists: a list is parsed once and read for every command. Weak, so that entries are freed with their list. */
const readLists = new WeakMap<readonly AllowedCommand[], ReadList>();

interface ReadList {
  /** A copy of the list when it was parsed: a changed list is parsed again. */
  readonly written: readonly AllowedCommand[];
  readonly entries: readonly ListEntry[];
}

/** The valid entries of a policy's list. */
export function entriesOf(list: readonly AllowedCommand[]): readonly ListEntry[] {
  const cached = readLists.get(list);
  if (cached !== undefined && isSame(cached.written, list)) return cached.entries;
  const entries = list.map(readEntry).filter((entry) => typeof entry !== "string");
  // Copies, because an entry that is an object can be changed as well.
  const written = list.map((entry) => (typeof entry === "string" ? entry : { ...entry }));
  readLists.set(list, { written, entries });
  return entries;
}

function isSame(one: readonly AllowedCommand[], other: readonly AllowedCommand[]): boolean {
  return (
    one.length === other.length &&
    one.every((entry, index) => {
      const now = other[index];
      if (typeof entry === "string" || typeof now === "string" || now === undefined) return entry === now;
      return entry.command === now.command && entry.unsafe === now.unsafe;
    })
  );
}

/** Whether the words are the name of a known program, or of Git and a known subcommand. */
function isName([program = "", subcommand, ...more]: readonly string[]): boolean {
  if (more.length > 0) return false;
  if (subcommand !== undefined) return isGit(program) && isSubcommandOfGit(subcommand);
  return knownProgram(program) !== undefined || isLauncher(program);
}

export function isGit(program: string): boolean {
  return /^(\/(.*\/)?)?git$/.test(program);
}

/** Example lines for the message about an entry that names only an interpreter. */
const linesOf: Readonly<Record<string, string>> = {
  npm: "npm test",
  npx: "npx tsc --noEmit",
  node: "node --test",
  make: "make build",
  python: "python -m pytest",
};

/**
 * Describes invalid entries of a policy's list: those that cannot be parsed, and those that allow nothing.
 * Each message quotes its entry and suggests what to write.
 */
export function faultsOfCommandList(policy: AgentPolicy): readonly string[] {
  return (policy.allowedCommands ?? []).flatMap((entry) => {
    const fault = faultOfEntry(entry, policy);
    return fault === undefined ? [] : [fault];
  });
}

function faultOfEntry(entry: AllowedCommand, policy: AgentPolicy): string | undefined {
  const read = readEntry(entry);
  const written = typeof entry === "string" ? entry : entry.command;
  if (typeof read === "string") return `"${written}" allows nothing: ${read}`;
  if (read.kind === "unsafe" || read.kind === "line") return faultOfLine(read);
  const [program = "", subcommand] = read.words;
  const interpreter = interpreterOf(program);
  if (interpreter !== undefined && read.words.length === 1) {
    const line = linesOf[interpreter] ?? `${program} …`;
    return `"${written}" runs nothing, as its arguments can do anything: write the lines that may run ("${line}"), or { command: "${program}", unsafe: true }`;
  }
  const onlyWrites = isGit(program)
    ? subcommand !== undefined && subcommandsOfGit.onlyWriting.has(subcommand)
    : writers.has(program);
  return onlyWrites && policy.allowWrite !== true
    ? `"${written}" runs nothing without allowWrite, as it writes the workspace`
    : undefined;
}

/** The fault of a misspelled Git subcommand: the entry would only allow that line, which never works. */
function faultOfLine({ kind, words, written }: ListEntry): string | undefined {
  const [program = "", subcommand = "", ...more] = words;
  if (kind !== "line" || !isGit(program) || more.length > 0) return undefined;
  const suggestion = suggest(subcommand, subcommandsOfGit.all);
  return suggestion === undefined
    ? undefined
    : `"${written}" is not a subcommand that kit knows; did you mean git ${suggestion}?`;
}

const writers: ReadonlySet<string> = new Set([
  "chmod",
  "cp",
  "ln",
  "mkdir",
  "mv",
  "rm",
  "rmdir",
  "tee",
  "touch",
]);
