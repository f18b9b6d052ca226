import type { AgentPolicy } from "../agent-profile.ts";
import { dangerousOption } from "./dangerous-option.ts";
import { launchedProgram } from "./launchers.ts";
import { type LiteralCommand, parseCommand } from "./parse-command.ts";

/** What may run: literal commands without a shell, or a line for the shell as it is. */
export type CommandDecision =
  | { readonly allowed: true; readonly commands: readonly LiteralCommand[] }
  | { readonly allowed: true; readonly shellLine: string }
  | { readonly allowed: false; readonly reason: string };

const shells = new Set(["sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox", "csh", "tcsh", "pwsh"]);

/**
 * Decides whether a command line may run under a policy. Deny by default: without `allowShell`
 * nothing runs; a line that is not made of literal words runs only under `allowCompoundCommands`
 * without a list, which hands it to the shell.
 *
 * An entry of `allowedCommands` is a program (`git`) or a program with its first arguments
 * (`npm test`). It matches word by word, byte for byte: `git` is neither `./git` nor `/usr/bin/git`.
 */
export function checkCommand(line: string, policy: AgentPolicy): CommandDecision {
  if (policy.allowShell !== true) return deny("commands are not allowed for this agent (allowShell)");
  const list = (policy.allowedCommands ?? []).map((entry) => entry.trim().split(/\s+/));
  const parsed = parseCommand(line);
  if (!parsed.ok) {
    if (policy.allowCompoundCommands === true && list.length === 0) return { allowed: true, shellLine: line };
    return deny(parsed.reason);
  }
  if (parsed.commands.length > 1 && policy.allowCompoundCommands !== true) {
    return deny("it is more than one command; run them one by one");
  }
  for (const command of parsed.commands) {
    const reason =
      list.length === 0 ? checkUnlisted(command.words, policy) : checkListed(command.words, list);
    if (reason !== undefined) return deny(reason);
  }
  return { allowed: true, commands: parsed.commands };
}

function checkUnlisted(words: readonly string[], policy: AgentPolicy): string | undefined {
  if (policy.allowCompoundCommands === true) return undefined;
  const program = baseName(words[0] ?? "");
  const hasScript = words.some((word, index) => index > 0 && /^-[a-z]*c/.test(word));
  // `sh -c` is a compound command in disguise, also behind a launcher.
  if (shells.has(program) && hasScript)
    return `"${program} -c" runs a script, and compound commands are not allowed`;
  const launched = launchedProgram(words);
  return launched === undefined || launched.length === 0 ? undefined : checkUnlisted(launched, policy);
}

function checkListed(words: readonly string[], list: readonly (readonly string[])[]): string | undefined {
  const entry = list.find((candidate) => candidate.every((word, index) => words[index] === word));
  if (entry === undefined) {
    return `"${words[0]}" is not on the list of allowed commands: ${list.map((item) => item.join(" ")).join(", ")}`;
  }
  const launched = launchedProgram(words);
  if (launched !== undefined) {
    return launched.length === 0
      ? `"${words[0]}" would run a program that cannot be told`
      : checkListed(launched, list);
  }
  const option = dangerousOption(words);
  return option === undefined
    ? undefined
    : `"${option}" lets ${words[0]} run another program or write a file`;
}

function baseName(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1);
}

function deny(reason: string): CommandDecision {
  return { allowed: false, reason };
}
