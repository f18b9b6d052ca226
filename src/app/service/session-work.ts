import type { Agent } from "../../agents/harness.ts";
import type { AdmitRequest, WorkContext } from "../../engine/contract.ts";
import type { PromptReply } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { HostedApp } from "../runtime/hosted-app.ts";
import type { RestingWork } from "./resting-work.ts";
import type { InstanceTarget } from "./service.ts";
import { operationOf, toSessionInput } from "./session-input.ts";

/** The inputs that this process works on. */
export interface SessionWork {
  /** Does the work of an input: prompts its session, or has it go on where a crash interrupted it. */
  run(work: WorkContext, request: AdmitRequest, resting?: RestingWork): Promise<PromptReply>;
  /** What runs for an instance, or for one of its sessions. */
  running(target: InstanceTarget & { readonly session?: string | undefined }): readonly RunningInput[];
}

export interface RunningInput {
  /** Of the dispatch, or the call. */
  readonly id: string;
  readonly key: SessionKey;
  /** Stops the operation and waits for its end. */
  abort(): Promise<boolean>;
  /** Resolves when it has ended, however. */
  readonly ended: Promise<void>;
}

export function createSessionWork(app: HostedApp): SessionWork {
  const inputs = new Map<string, Set<RunningInput>>();
  let fence = 0;
  return {
    async run(work, request, resting) {
      if (work.fence !== fence) {
        fence = work.fence;
        app.renewInstances();
      }
      const { agent, instance_id, session } = request;
      // While it rests, nothing keeps its instance.
      let live: Agent | undefined;
      const attempt = async (signal: AbortSignal): Promise<PromptReply> => {
        live = await app.instance(agent, instance_id);
        try {
          return await prompt(live, { ...work, signal }, request);
        } finally {
          live = undefined;
        }
      };
      const reply = resting === undefined ? attempt(work.signal) : resting.run(attempt);
      const input: RunningInput = {
        id: work.id,
        key: { agent, instance_id, session },
        abort: async () => (await live?.session(session).abort()) ?? false,
        ended: reply.then(
          () => undefined,
          () => undefined,
        ),
      };
      const key = keyOf(request);
      const others = inputs.get(key) ?? new Set();
      inputs.set(key, others.add(input));
      try {
        return await reply;
      } finally {
        others.delete(input);
        if (others.size === 0) inputs.delete(key);
      }
    },
    running: (target) =>
      [...(inputs.get(keyOf(target)) ?? [])].filter(
        ({ key }) => target.session === undefined || key.session === target.session,
      ),
  };
}

async function prompt(agent: Agent, work: WorkContext, admitted: AdmitRequest): Promise<PromptReply> {
  const { request, operationId = operationOf(work.id) } = toSessionInput(admitted.input);
  const { message, model, backend, role, thinking_level, images, files } = request;
  const options = {
    signal: work.signal,
    model,
    backend,
    role,
    thinkingLevel: thinking_level,
    images,
    files,
  };
  const result = await agent
    .session(admitted.session)
    .prompt(message, { ...options, operationId, resumes: isStored(work) });
  const { text, usage, metadata } = result;
  return { text, usage, model: { id: result.model.id }, metadata };
}

/** A call lives in its caller and is tried once: nothing was done of it before. */
function isStored({ id }: WorkContext): boolean {
  return !id.startsWith("call_");
}

function keyOf({ agent, instance_id }: InstanceTarget): string {
  return JSON.stringify([agent, instance_id]);
}
