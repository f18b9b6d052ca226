import { KitError } from "../../base/kit-error.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { CommandAccess, ExecResult, Sandbox } from "../../sandboxes/contract.ts";
import type { AgentPolicy } from "../define/agent-profile.ts";
import { type AllowedRun, type CommandDecision, checkCommand } from "../policy/check-command.ts";
import type { PathChange } from "../policy/protected-paths.ts";
import type { CommandContext, PreparedCommand } from "./command-context.ts";
import { prepareKnownForm } from "./prepare-known-form.ts";

export interface CommandRun {
  readonly command: string;
  readonly sandbox: Sandbox;
  readonly policy: AgentPolicy;
  /** The folder of the agent's project on this machine. */
  readonly projectRoot?: string | undefined;
  /** Whether the process has loaded a file: then it is protected. */
  readonly isLoaded?: PathChange["isLoaded"] | undefined;
  /** Secrets granted to this call. */
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly emit: (body: EventBody) => void;
  readonly cwd?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly toolCallId?: string | undefined;
  /** Paths of the workspace that the command cannot change. */
  readonly readOnlyPaths?: readonly string[] | undefined;
  /** The rule for all other paths, for a command that a model wrote. */
  readonly guard?: CommandAccess["guard"];
  /** Called when a command that may write starts; returns the callback for its end. */
  readonly begin?: (() => () => void) | undefined;
}

const defaultCommandTimeoutMs = 120_000;

/** Bytes that one command may pipe to the next. */
const maxPipedBytes = 32 * 1024 * 1024;

/**
 * Runs a command line under a policy. Throws `forbidden`, with the reason, if the policy denies it, and
 * `unavailable` if the sandbox runs no commands. A failing command is a result, not an error.
 */
export async function runCommand(run: CommandRun): Promise<ExecResult> {
  const decision = checkCommand(run.command, run.policy, await isIsolated(run.sandbox));
  if (!decision.allowed) {
    throw new KitError({ code: "forbidden", message: `The command was not run: ${decision.reason}.` });
  }
  if (!run.sandbox.capabilities.exec) {
    throw new KitError({ code: "unavailable", message: `The ${run.sandbox.name} sandbox runs no commands.` });
  }
  // Check the whole line before any part of it runs.
  const prepared = "shellLine" in decision ? [] : await prepareAll(decision.commands, run);
  const started = performance.now();
  const call = run.toolCallId === undefined ? {} : { tool_call_id: run.toolCallId };
  run.emit({ type: "command_start", command: run.command, ...call });
  const end = (await mayWrite(run, decision)) ? run.begin?.() : undefined;
  let result: ExecResult | undefined;
  try {
    result =
      "shellLine" in decision
        ? await run.sandbox.exec({ ...limitsOf(run), command: decision.shellLine })
        : await runLiteral(decision.commands, prepared, run);
    return result;
  } finally {
    end?.();
    run.emit({
      type: "command_end",
      command: run.command,
      exit_code: result?.exit_code ?? null,
      duration_ms: Math.round(performance.now() - started),
      ...call,
    });
  }
}

/** Only isolation prevents a command from writing, unless it is a known reading form. */
async function mayWrite(
  { sandbox, policy }: CommandRun,
  decision: Extract<CommandDecision, { readonly allowed: true }>,
): Promise<boolean> {
  const only = "shellLine" in decision ? undefined : decision.commands;
  if (only?.every(({ known }) => known !== undefined && known.writes !== true) === true) return false;
  if (policy.allowWrite === true) return true;
  const { wall = "none" } = (await sandbox.isolation?.()) ?? {};
  return wall === "none" || wall === "remote";
}

function limitsOf(run: CommandRun): Omit<Parameters<Sandbox["exec"]>[0], "command"> {
  return {
    env: run.env,
    signal: run.signal,
    timeoutMs: run.timeoutMs ?? defaultCommandTimeoutMs,
    access: {
      write: run.policy.allowWrite === true,
      network: run.policy.allowNetwork ?? [],
      readOnlyPaths: run.readOnlyPaths,
      guard: run.guard,
    },
    cwd: run.cwd,
  };
}

/** Whether isolation confines all commands to the workspace. */
async function isIsolated({ isolation }: Sandbox): Promise<boolean> {
  return isolation !== undefined && (await isolation()).wall !== "none";
}

/** A known form gets only the access it needs. */
function accessOf({ words, known }: AllowedRun, run: CommandRun): CommandAccess | undefined {
  if (known === undefined) return undefined;
  const { policy, readOnlyPaths: kept } = run;
  return {
    write: known.writes === true && policy.allowWrite === true,
    network: known.connects === true ? (policy.allowNetwork ?? []) : [],
    readOnlyPaths: kept,
    guard: run.guard,
    makesRepository: words[0] === "git" && words.includes("clone"),
  };
}

async function prepareAll(
  commands: readonly AllowedRun[],
  run: CommandRun,
): Promise<readonly PreparedCommand[]> {
  const prepared: PreparedCommand[] = [];
  for (const command of commands) prepared.push(await prepareKnownForm(command, contextOf(run)));
  return prepared;
}

function contextOf({ sandbox, cwd, policy, projectRoot, isLoaded, signal }: CommandRun): CommandContext {
  return { sandbox, policy, projectRoot, isLoaded, signal, cwd };
}

/** Runs allowed commands one after the other, joined by `&&`, `||`, `;` and `|`, each without a shell. */
async function runLiteral(
  commands: readonly AllowedRun[],
  prepared: readonly PreparedCommand[],
  run: CommandRun,
): Promise<ExecResult> {
  let total: ExecResult | undefined;
  let skipped = false;
  for (let index = 0; index < commands.length; index += 1) {
    const command = commands[index];
    if (command === undefined) break;
    const failed = total !== undefined && total.exit_code !== 0;
    // A skipped pipeline is skipped as a whole.
    skipped =
      command.join === "pipe"
        ? skipped
        : (command.join === "and" && failed) || (command.join === "or" && !failed);
    if (skipped) continue;
    if (total?.timed_out === true || run.signal.aborted) break;
    const piped = command.join === "pipe" && total !== undefined;
    const feeds = commands[index + 1]?.join === "pipe";
    // An earlier command may have changed the target of a path.
    const { words, env } =
      (total === undefined ? prepared[index] : undefined) ??
      (await prepareKnownForm(command, contextOf(run)));
    const result = await run.sandbox.exec({
      ...limitsOf(run),
      env: { ...run.env, ...env },
      access: accessOf(command, run) ?? limitsOf(run).access,
      command: words,
      ...(feeds ? { maxOutputBytes: maxPipedBytes } : {}),
      ...(piped ? { stdin: total?.stdout ?? "" } : {}),
    });
    if (feeds && result.dropped_bytes > 0) {
      throw new KitError({
        code: "payload_too_large",
        message: `"${command.words[0]}" wrote more than can be piped; the commands after it were not run.`,
      });
    }
    total = total === undefined ? result : joinResults(total, result, piped);
  }
  if (total === undefined)
    throw new KitError({ code: "invalid_request", message: "There is no command to run." });
  return total;
}

function joinResults(before: ExecResult, after: ExecResult, piped: boolean): ExecResult {
  return {
    ...after,
    stdout: piped ? after.stdout : before.stdout + after.stdout,
    stderr: before.stderr + after.stderr,
    dropped_bytes: before.dropped_bytes + after.dropped_bytes,
    duration_ms: before.duration_ms + after.duration_ms,
  };
}
