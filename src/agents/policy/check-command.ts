import type { AgentPolicy } from "../define/agent-profile.ts";
import { entriesOf, isGit, type ListEntry } from "./command-list.ts";
import type { KnownForm } from "./forms/form.ts";
import { interpreterOf, isLauncher, knownProgram, launchedCommand } from "./forms/programs.ts";
import { type LiteralCommand, parseCommand } from "./parse-command.ts";

/** A command that may run. `known` is set if it runs as a known form: its paths are checked later. */
export interface AllowedRun extends LiteralCommand {
  readonly known?: KnownForm;
  /** Index of the program in `words` if launchers precede it. */
  readonly programAt?: number;
}

/** The decision about a line: literal commands without a shell, an unchanged line for the shell, or a denial. */
export type CommandDecision =
  | { readonly allowed: true; readonly commands: readonly AllowedRun[] }
  | { readonly allowed: true; readonly shellLine: string }
  | { readonly allowed: false; readonly reason: string };

/**
 * Decides whether a command line may run under a policy. Deny by default: without `allowShell`
 * nothing runs; a line with other than literal words runs only if the policy has `allowCompoundCommands`
 * and no list, and then the shell runs it.
 *
 * With a list, a command must be a known form of a program that an entry names, or must match an entry as
 * written. Without a list, any simple command runs if the operating system isolates it (`isolated`); otherwise only
 * known forms run. Programs match byte for byte: `git` is neither `./git` nor `/usr/bin/git`.
 */
export function checkCommand(line: string, policy: AgentPolicy, isolated = false): CommandDecision {
  if (policy.allowShell !== true) return deny("commands are not allowed for this agent (allowShell)");
  const list = policy.allowedCommands ?? [];
  const parsed = parseCommand(line);
  if (!parsed.ok) {
    if (policy.allowCompoundCommands === true && list.length === 0) return { allowed: true, shellLine: line };
    return deny(parsed.reason);
  }
  if (parsed.commands.length > 1 && policy.allowCompoundCommands !== true) {
    return deny("it is more than one command; run them one by one");
  }
  const entries = entriesOf(list);
  const commands: AllowedRun[] = [];
  for (const command of parsed.commands) {
    const run =
      list.length > 0
        ? checkListed(command.words, { entries, policy })
        : checkUnlisted(command.words, { policy, isolated: isolated });
    if (typeof run === "string") return deny(run);
    commands.push({ ...command, ...run });
  }
  return { allowed: true, commands };
}

type Run = Pick<AllowedRun, "known" | "programAt">;

/** Launchers allowed before a command. */
const maxLaunchers = 4;

function tooManyLaunchers(program: string): string {
  return `"${program}" stands behind too many others that launch`;
}

/** Without a list: allows anything except shell scripts if commands are isolated, otherwise only known forms. */
function checkUnlisted(
  words: readonly string[],
  {
    policy,
    isolated,
    depth = 0,
  }: { readonly policy: AgentPolicy; readonly isolated: boolean; readonly depth?: number },
): Run | string {
  if (policy.allowCompoundCommands === true) return {};
  if (isolated) {
    const shell = shellIn(words);
    return shell === undefined
      ? {}
      : `"${shell}" runs a script, and compound commands are not allowed (allowCompoundCommands, or name the line in allowedCommands)`;
  }
  const [program = ""] = words;
  const otherwise =
    "no wall stands around commands here: install bubblewrap, or name the command in allowedCommands";
  const launched = launchedCommand(words);
  if (typeof launched === "string") return `${program}: ${launched}`;
  if (launched !== undefined) {
    if (depth >= maxLaunchers) return tooManyLaunchers(program);
    const run = checkUnlisted(launched, { policy, isolated, depth: depth + 1 });
    return typeof run === "string" ? run : behindLauncher(run, words.length - launched.length);
  }
  const form = program.includes("/") ? undefined : knownProgram(program);
  if (form === undefined) return `kit does not know what "${program}" does, and ${otherwise}`;
  const parsed = form(words.slice(1));
  if (typeof parsed === "string") return `${refusal(program, parsed)} (${otherwise})`;
  if (parsed.connects === true)
    return `"${nameOf(program, parsed)}" connects to other machines; ${otherwise}`;
  return lacksWrite(program, parsed, policy) ?? { known: parsed };
}

/** With a list: allows a line that an entry allows in full, or a known form of a program that an entry names. */
function checkListed(
  words: readonly string[],
  list: { readonly entries: readonly ListEntry[]; readonly policy: AgentPolicy; readonly depth?: number },
): Run | string {
  const { entries, policy, depth = 0 } = list;
  const begins = (entry: ListEntry): boolean => entry.words.every((word, index) => words[index] === word);
  const matching = entries.filter(begins);
  if (
    matching.some(
      ({ kind, words: { length } }) => kind === "unsafe" || (kind === "line" && length === words.length),
    )
  )
    return {};
  const [program = ""] = words;
  const programEntries = entries.filter((entry) => entry.words[0] === program);
  if (programEntries.length === 0) return notListed(program, entries);
  // A known program runs only in its known forms, even if an entry allows any arguments.
  const form = knownProgram(program);
  const isOwnLanguage = interpreterOf(program) !== undefined;
  // A launcher with a star still launches only what the list allows.
  const isAlone = ({ words: { length } }: ListEntry): boolean => length === 1;
  if (form === undefined || isOwnLanguage) {
    const bound = isOwnLanguage || isLauncher(program);
    const open = matching.find((entry) => entry.kind === "prefix" && !(bound && isAlone(entry)));
    if (open !== undefined) return faultOfArguments(words, open) ?? {};
  }
  const byName = programEntries.filter(
    (entry) => entry.kind === "name" || (entry.kind === "prefix" && isAlone(entry)),
  );
  const launched = launchedCommand(words);
  if (launched !== undefined) {
    if (byName.length === 0) return moreThanWritten(words, programEntries);
    if (typeof launched === "string") return `${program}: ${launched}`;
    if (depth >= maxLaunchers) return tooManyLaunchers(program);
    const run = checkListed(launched, { ...list, depth: depth + 1 });
    return typeof run === "string" ? run : behindLauncher(run, words.length - launched.length);
  }
  const covering = [...byName, ...matching.filter(({ kind }) => kind === "prefix")];
  if (form === undefined || covering.length === 0) return moreThanWritten(words, programEntries);
  const parsed = form(words.slice(1));
  if (typeof parsed === "string") return refusal(program, parsed);
  const covers = covering.some(
    ({ kind, words: [, subcommand] }) =>
      kind === "prefix" ||
      subcommand === parsed.git?.subcommand ||
      (subcommand === undefined && (!isGit(program) || onlyReads(parsed))),
  );
  if (!covers) {
    const name = nameOf(program, parsed);
    return `"${name}" is not on the list of allowed commands: ${writtenOf(entries)}${onlyReads(parsed) ? "" : `; "${program}" stands for what only reads, so "${name}" has to be named`}`;
  }
  return lacksWrite(program, parsed, policy) ?? { known: parsed };
}

function onlyReads({ writes, connects }: KnownForm): boolean {
  return writes !== true && connects !== true;
}

function behindLauncher(run: Run, words: number): Run {
  return run.known === undefined ? run : { ...run, programAt: (run.programAt ?? 0) + words };
}

function lacksWrite(program: string, known: KnownForm, policy: AgentPolicy): string | undefined {
  return known.writes === true && policy.allowWrite !== true
    ? `"${nameOf(program, known)}" writes the workspace, and this agent may not (allowWrite)`
    : undefined;
}

function nameOf(program: string, { git }: KnownForm): string {
  return git === undefined ? program : `${program} ${git.subcommand}`;
}

function refusal(program: string, reason: string): string {
  return isGit(program) && reason.startsWith("git ") ? reason : `${program}: ${reason}`;
}

function notListed(program: string, entries: readonly ListEntry[]): string {
  return `"${program}" is not on the list of allowed commands: ${writtenOf(entries)}`;
}

function writtenOf(entries: readonly ListEntry[]): string {
  return entries.map(({ written }) => written).join(", ");
}

/** The reason if entries of the list start with the program, but none of them matches. */
function moreThanWritten(words: readonly string[], programEntries: readonly ListEntry[]): string {
  const line = programEntries.find((entry) => entry.words.every((word, index) => words[index] === word));
  const word = line === undefined ? words[1] : words[line.words.length];
  return `"${word ?? words[0]}" is more or other than the list of allowed commands says: it runs ${programEntries
    .map(({ written }) => `"${written}"`)
    .join(", ")} as written`;
}

/**
 * Checks the arguments that follow an entry that ends in ` *`; returns the fault. For an interpreter they must be
 * data for the script or target in the entry, never an option of the interpreter itself.
 */
function faultOfArguments(
  words: readonly string[],
  { words: entry, written }: ListEntry,
): string | undefined {
  const interpreter = interpreterOf(words[0] ?? "");
  if (interpreter === undefined) return undefined;
  const runsScripts = /^(npm|pnpm|yarn|yarnpkg|bun)$/.test(interpreter);
  // Words after an interpreter's script are arguments of the script.
  if (
    !runsScripts &&
    !/^g?make$|^[gbn]?m?awk$/.test(interpreter) &&
    entry.slice(1).some((word) => !word.startsWith("-"))
  )
    return undefined;
  for (const word of words.slice(entry.length)) {
    if (word === "--") return undefined;
    if (word.startsWith("-") || (/^g?make$/.test(interpreter) && word.includes("="))) {
      return `"${word}" is an option of ${interpreter} itself; "${written}" takes arguments${runsScripts ? ' behind "--"' : ""}`;
    }
  }
  return undefined;
}

function deny(reason: string): CommandDecision {
  return { allowed: false, reason };
}

const shells: ReadonlySet<string> = new Set(
  "sh bash dash zsh ksh fish ash csh tcsh rbash rzsh rksh mksh yash sash pwsh powershell busybox toybox".split(
    " ",
  ),
);

/** Programs that pass text to a shell, whatever their options. */
const scripting: ReadonlySet<string> = new Set(
  "watch script su runuser sg parallel expect screen tmux at batch crontab ssh entr xterm".split(" "),
);

/** Programs that run a command given in their arguments. */
const launchers: ReadonlySet<string> = new Set(
  "env nice nohup timeout time stdbuf setsid ionice chrt taskset prlimit setpriv setarch linux32 linux64 numactl xargs sudo doas chroot unshare nsenter flock strace ltrace perf valgrind gdb npx pnpx bunx find fd fdfind eatmydata fakeroot proot rlwrap unbuffer logsave systemd-run start-stop-daemon daemonize run-parts caffeinate arch".split(
    " ",
  ),
);

/**
 * The word that makes a simple command run a script: a shell under any of its names, or a program that passes text
 * to a shell, also after a launcher. `undefined` if there is none.
 */
function shellIn(words: readonly string[]): string | undefined {
  const [program = "", ...args] = words;
  if (isShell(program)) return program;
  if (!launchers.has(baseName(program))) return undefined;
  // Operands of find are not programs, except the command after -exec.
  if (/^(find|fd|fdfind)$/.test(baseName(program))) {
    const runs = args.flatMap((word, index) => {
      const joined = /^(-[xX]|--exec=|--exec-batch=)(.+)$/.exec(word)?.[2];
      return (
        joined ??
        (/^(-exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch)$/.test(word) ? (args[index + 1] ?? []) : [])
      );
    });
    const shell = runs.find(isShell);
    return shell ?? (runs.some((word) => launchers.has(baseName(word))) ? args.find(isShell) : undefined);
  }
  for (const word of args) {
    // `env -S 'bash -c x'`: env splits the text into words.
    const shell = word.split(/[\s=]+/).find((part) => isShell(part.replace(/^-[A-Za-z]*S/, "")));
    if (shell !== undefined) return shell;
    // `flock file -c 'x'`, `npx -c 'x'`: a shell runs the text.
    if (/^(-[a-z]*c|--command|--call)(=|$)/.test(word) && /^(flock|npx)$/.test(baseName(program)))
      return program;
  }
  return undefined;
}

function isShell(word: string): boolean {
  const name = baseName(word).replace(/\.exe$/i, "");
  return shells.has(name) || scripting.has(name) || shells.has(name.replace(/-?\d+(\.\d+)*$/, ""));
}

function baseName(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1);
}
