import type { Agent } from "../../agents/harness.ts";
import type { PromptResult } from "../../agents/operations/options.ts";
import { defined } from "../../base/record.ts";
import type { WorkContext } from "../../engine/contract.ts";
import type { EventLog } from "../../engine/event-log-contract.ts";
import type { PromptReply } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { agentStream, instanceName } from "../../protocol/session-name.ts";
import type { AbortTarget } from "../cluster/node-calls.ts";
import type { Fences } from "../cluster/owners.ts";
import type { Instances } from "../runtime/instances.ts";
import { origins } from "../runtime/observers.ts";
import type { Input } from "./input.ts";
import type { InstanceTarget } from "./service.ts";
import type { WorkSlots } from "./work-slots.ts";

export interface SessionWorkOptions {
  readonly instances: Pick<Instances, "get" | "releaseUnless">;
  /** The event log of this node; undefined if the engine keeps no events of instances. */
  readonly events: Pick<EventLog, "begin"> | undefined;
  readonly slots: WorkSlots;
  readonly fences: Fences;
}

interface RunningInput {
  readonly key: SessionKey;
  readonly operationId: string;
  /** Stops the operation and waits for its end. */
  abort(): Promise<boolean>;
  /** Resolves when the operation has ended, also after a failure. */
  readonly ended: Promise<void>;
}

/** Prompts sessions, and knows the inputs that run in this process. */
export class SessionWork {
  readonly #options: SessionWorkOptions;
  readonly #running = new Map<string, Set<RunningInput>>();

  constructor(options: SessionWorkOptions) {
    this.#options = options;
  }

  /**
   * Prompts the session of an input, or resumes the operation of an input that a crash interrupted. `context` holds the
   * session's place in line and a slot.
   */
  async perform<Outcome>(context: WorkContext, input: Input<Outcome>): Promise<PromptReply | Outcome> {
    const { events, slots } = this.#options;
    const { agent, instance_id } = input.key;
    // If the log fails, the first event reports the error.
    await events?.begin(agentStream(agent, instance_id)).catch(() => undefined);
    return await origins.run({ ...input.caller.trace }, () =>
      slots.hold({ context, caller: input.caller, input }, () => this.#run(context, input)),
    );
  }

  async #run<Outcome>(context: WorkContext, input: Input<Outcome>): Promise<PromptReply | Outcome> {
    const { instances, fences } = this.#options;
    const { key, request, resting, operationId, prepare } = input;
    // If another process can have worked for the instance, the next one reads what that process wrote.
    await instances.releaseUnless(key, await fences.takeOver(key, context.fence));
    // While an operation rests, nothing keeps its instance in memory.
    let live: Agent | undefined;
    const attempt = async (signal: AbortSignal): Promise<PromptReply | Outcome> => {
      live = await instances.get(key);
      try {
        const done = input.instead && (await input.instead(live, signal));
        if (done !== undefined) return done;
        const { message, model, backend, role, images, files, history, attempts, fork } = request;
        const choices = defined({
          ...{ model, backend, role, images, files, history, attempts, fork },
          thinkingLevel: request.thinking_level,
          omitRules: request.omit_rules,
          clientId: request.client_id,
          callerTools: request.tools,
          callerToolChoice: request.tool_choice,
          rewindBefore: request.rewind_before,
        });
        const how = { signal, operationId, resumes: resting !== undefined };
        return toReply(await live.session(key.session).prompt(message, { ...choices, ...how }));
      } finally {
        live = undefined;
      }
    };
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const abort = async (): Promise<boolean> => (await live?.session(key.session).abort()) ?? false;
    const name = instanceName(key);
    const running = this.#running.get(name) ?? new Set();
    const entry: RunningInput = { key, operationId, abort, ended };
    this.#running.set(name, running.add(entry));
    // The only reader of the reply is the caller: a second one would end the asynchronous stack of an error here.
    try {
      await prepare?.();
      return await (resting === undefined ? attempt(context.signal) : resting.run(attempt));
    } finally {
      fences.endInput(key);
      running.delete(entry);
      if (running.size === 0 && this.#running.get(name) === running) this.#running.delete(name);
      end();
    }
  }

  /** Calls `end` for an input that has no running attempt. `context` holds the session's place in line. */
  async end(context: Pick<WorkContext, "fence">, key: SessionKey, end: () => Promise<void>): Promise<void> {
    const { instances, fences } = this.#options;
    await instances.releaseUnless(key, await fences.takeOver(key, context.fence));
    try {
      await end();
    } finally {
      fences.endInput(key);
    }
  }

  /** Returns the running inputs of an instance, of one of its sessions, or of one operation. */
  running({ session, operation_id, ...target }: AbortTarget): readonly RunningInput[] {
    return [...(this.#running.get(instanceName(target)) ?? [])].filter(
      ({ key, operationId }) =>
        (session === undefined || key.session === session) &&
        (operation_id === undefined || operationId === operation_id),
    );
  }

  /** Returns the sessions with a running input. */
  sessions(): readonly SessionKey[] {
    return [...this.#running.values()].flatMap((inputs) => [...inputs].map(({ key }) => key));
  }

  /** Whether no other node can have worked for the instance since this node opened it. `fence` is that of its owner. */
  isCurrent(instance: InstanceTarget, fence: number | undefined): boolean {
    return fence === undefined || (fence > 0 && this.#options.fences.fenceOf(instance) === fence);
  }
}

export function toReply({ text, usage, metadata, result, model }: PromptResult<unknown>): PromptReply {
  const value = result === undefined ? {} : { result };
  return { text, ...value, usage, model: { id: model.id }, metadata };
}
