import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import type { ExecResult, Sandbox } from "../../sandboxes/contract.ts";
import type { Harness, LiveSession } from "../agent-runtime.ts";
import { compact } from "../compaction/compact.ts";
import { defaultCompaction } from "../compaction/compaction-settings.ts";
import { createEventStream } from "../events/event-stream.ts";

import { runPrompt } from "../operations/prompt.ts";
import type { PromptOptions, PromptResult } from "../operations/prompt-options.ts";
import { runShell, type ShellOptions } from "../operations/shell.ts";
import { runSkill, type SkillOptions } from "../operations/skill.ts";
import { runTask, type TaskOptions } from "../operations/task.ts";
import type { Skill } from "../skill.ts";

/** The events of one operation as they happen, and its result. Reading is optional. */
export interface SessionStream<Result> extends AsyncIterable<KitEvent> {
  readonly result: Promise<PromptResult<Result>>;
}

/**
 * A durable conversation. Operations run one at a time in the order asked; each call waits for those
 * before it. Every operation takes a `signal`, and `abort` stops the running one: the history then is
 * one that the next operation can go on from.
 */
export interface Session {
  readonly name: string;
  prompt<Result = undefined>(text: string, options?: PromptOptions<Result>): Promise<PromptResult<Result>>;
  stream<Result = undefined>(text: string, options?: PromptOptions<Result>): SessionStream<Result>;
  /** Runs a skill of the agent or the project by name, or a skill. */
  skill<Result = undefined>(
    skill: string | Skill,
    options?: SkillOptions<Result>,
  ): Promise<PromptResult<Result>>;
  /** Works on a text in a session of its own that shares the sandbox. */
  task<Result = undefined>(text: string, options?: TaskOptions<Result>): Promise<PromptResult<Result>>;
  /** Runs a command in the sandbox under the agent's policy; the history keeps it. */
  shell(command: string, options?: ShellOptions): Promise<ExecResult>;
  /** Shortens the history now. False when there was nothing to shorten. */
  compact(options?: { readonly focus?: string; readonly signal?: AbortSignal }): Promise<boolean>;
  /** Stops the running operation with all that it started, and waits for its end. */
  abort(): Promise<boolean>;
  /** The active history: after a compaction, its summary and what was kept. */
  history(): Promise<readonly Message[]>;
  /** The sandbox's files, for the caller's own code: no policy, no trace in the history. */
  fs(): Promise<Sandbox>;
}

export function createSession(harness: Harness, live: LiveSession): Session {
  const promptAs = <Result>(
    kind: "prompt" | "stream",
    call: { readonly text: string; readonly options: PromptOptions<Result>; readonly id?: string },
  ): Promise<PromptResult<Result>> =>
    live.operate(
      {
        kind,
        ...(call.id === undefined ? {} : { id: call.id }),
        ...(call.options.signal && { signal: call.options.signal }),
      },
      (operation) => runPrompt(harness, operation, { text: checkedText(call.text), options: call.options }),
    );
  return {
    name: live.key.session,
    prompt: (text, options) => promptAs("prompt", { text, options: options ?? {} }),
    stream(text, options) {
      const id = createId("op");
      const events = createEventStream(harness.events, id);
      const result = promptAs("stream", { text, options: options ?? {}, id }).finally(events.end);
      // Who reads the events only must not be punished for not awaiting the result.
      result.catch(() => undefined);
      return { result, [Symbol.asyncIterator]: events.iterate };
    },
    skill: (skill, options) => runSkill(harness, live, { skill, options: options ?? {} }),
    task: (text, options) => runTask(harness, live, { text: checkedText(text), options: options ?? {} }),
    shell: (command, options) => runShell(harness, live, { command, options: options ?? {} }),
    compact: (options) =>
      live.operate(
        { kind: "compact", ...(options?.signal && { signal: options.signal }) },
        async (operation) => {
          const settings = { ...defaultCompaction, ...live.profile.compaction };
          const resolved = await harness.runtime.resolveModel(
            settings.model ?? live.profile.model ?? harness.runtime.defaultModel,
          );
          return compact({
            operation,
            reason: "manual",
            settings,
            windowTokens: resolved.contextWindowTokens ?? settings.contextWindowTokens,
            call: { model: resolved.model, idleTimeoutMs: harness.runtime.modelIdleTimeoutMs },
            now: harness.runtime.clock.now,
            ...(options?.focus === undefined ? {} : { focus: options.focus }),
          });
        },
      ),
    abort: () => live.abort(),
    history: async () => [...(await live.load()).messages],
    fs: () => live.sandbox(),
  };
}

function checkedText(text: string): string {
  if (typeof text === "string" && text.trim() !== "") return text;
  throw new KitError({ code: "invalid_request", message: "A prompt needs a text." });
}
