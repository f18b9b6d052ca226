import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { AgentRuntime, Operation } from "../agent-runtime.ts";
import { checkRules } from "../log/left-out-rules.ts";
import { leftOutNote } from "../log/session-state.ts";
import type { ProjectInstructions, Repository } from "../project-context.ts";

/**
 * Adds the rules that a prompt leaves out to its operation, and returns the entries with which its session begins. Throws
 * `invalid_request` for an unknown rule, and in a session that has begun with a rule: its history may contain it.
 */
export async function beginWithout(
  operation: Operation,
  asked: readonly string[],
  {
    repository,
    instructions,
    clock,
  }: Pick<AgentRuntime, "clock"> & {
    readonly repository: Repository | undefined;
    readonly instructions: ProjectInstructions;
  },
): Promise<readonly SessionEntry[]> {
  const { state, live, rulesLeftOut } = operation;
  const isNew = state.position === 0;
  if (!isNew && asked.every((name) => rulesLeftOut.has(name))) return [];
  const known = [
    ...((await repository?.rules()) ?? []),
    ...instructions.parts.map(({ id, path }) => ({ id, file: path })),
  ];
  checkRules(asked, known, "omit_rules");
  if (!isNew)
    throw new KitError({
      code: "invalid_request",
      message: "A session leaves out rules from its first turn on, and this one has begun with them.",
      hint: "Begin a new session, or fork a turn of this one without them.",
    });
  checkRules(live.profile.omitRules ?? [], known, "omitRules");
  if (asked.length === 0) return [];
  operation.rulesLeftOut = new Set([...rulesLeftOut, ...asked]);
  return [{ version: 1, type: "note", name: leftOutNote, value: asked, timestamp: isoTime(clock.now()) }];
}
