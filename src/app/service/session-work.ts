import type { Agent } from "../../agents/harness.ts";
import { defined } from "../../base/defined.ts";
import type { WorkContext } from "../../engine/contract.ts";
import type { PromptReply } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { Instances } from "../runtime/instances.ts";
import type { RestingWork } from "./resting-work.ts";
import type { InstanceTarget } from "./service.ts";
import type { SessionInput } from "./session-input.ts";

export interface RunningInput {
  readonly key: SessionKey;
  /** Stops the operation and waits for its end. */
  abort(): Promise<boolean>;
  /** Resolves when it has ended, however. */
  readonly ended: Promise<void>;
}

/** An input whose turn has come. */
export interface TakenInput extends SessionInput {
  readonly key: SessionKey;
  /** Set for a stored input, which can be resumed from its log. */
  readonly resting?: RestingWork | undefined;
}

/** Prompts sessions, and knows which inputs this process works on. */
export class SessionWork {
  readonly #instances: Pick<Instances, "get" | "renew">;
  readonly #running = new Map<string, Set<RunningInput>>();
  readonly #isShared: boolean;
  #fence = 0;

  /** `isShared`: whether several processes take turns at the work. */
  constructor(instances: Pick<Instances, "get" | "renew">, { isShared }: { readonly isShared: boolean }) {
    this.#instances = instances;
    this.#isShared = isShared;
  }

  /** Prompts the session of an input, or resumes the operation of one that a crash interrupted. */
  async run(work: WorkContext, { key, resting, ...input }: TakenInput): Promise<PromptReply> {
    this.#renewAfterTakeover(work);
    const { agent, instance_id, session } = key;
    // Nothing keeps the instance of an operation that rests.
    let live: Agent | undefined;
    const attempt = async (signal: AbortSignal): Promise<PromptReply> => {
      live = await this.#instances.get({ name: agent, id: instance_id, payload: {} });
      try {
        return await prompt(live.session(session), input, { signal, resumes: resting !== undefined });
      } finally {
        live = undefined;
      }
    };
    const reply = resting === undefined ? attempt(work.signal) : resting.run(attempt);
    const stop = this.#add({
      key,
      abort: async () => (await live?.session(session).abort()) ?? false,
      ended: reply.then(
        () => undefined,
        () => undefined,
      ),
    });
    return await reply.finally(stop);
  }

  /** The inputs that run for an instance, or for one of its sessions. */
  running(target: InstanceTarget & { readonly session?: string | undefined }): readonly RunningInput[] {
    return [...(this.#running.get(keyOf(target)) ?? [])].filter(
      ({ key }) => target.session === undefined || key.session === target.session,
    );
  }

  /** Another process may have worked for the instances: they continue from what it has written. */
  #renewAfterTakeover({ fence }: WorkContext): void {
    if (!this.#isShared || fence === this.#fence) return;
    this.#fence = fence;
    this.#instances.renew();
  }

  #add(input: RunningInput): () => void {
    const key = keyOf(input.key);
    const others = this.#running.get(key) ?? new Set();
    this.#running.set(key, others.add(input));
    return () => {
      others.delete(input);
      if (others.size === 0 && this.#running.get(key) === others) this.#running.delete(key);
    };
  }
}

async function prompt(
  session: ReturnType<Agent["session"]>,
  { request, operationId }: SessionInput,
  how: { readonly signal: AbortSignal; readonly resumes: boolean },
): Promise<PromptReply> {
  const { message, thinking_level: thinkingLevel, model, backend, role, images, files } = request;
  const choices = defined({ model, backend, role, images, files, thinkingLevel });
  const result = await session.prompt(message, { ...choices, ...how, operationId });
  const { text, usage, metadata } = result;
  const { result: value } = result;
  return {
    text,
    ...(value === undefined ? {} : { result: value }),
    usage,
    model: { id: result.model.id },
    metadata,
  };
}

function keyOf({ agent, instance_id }: InstanceTarget): string {
  return JSON.stringify([agent, instance_id]);
}
