import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ErrorCode } from "../../protocol/error-code.ts";
import { errorCodes } from "../../protocol/error-code.ts";
import type { OperationKind } from "../../protocol/event.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AgentProfile } from "../agent-profile.ts";
import type { Harness, LiveSession, LiveSessionOptions, Operation, Toolkit } from "../agent-runtime.ts";
import type { EventScope } from "../events/emitter.ts";
import { createToolkit } from "../operations/toolkit.ts";
import { closeOpenCalls } from "./close-open-calls.ts";
import { createOperationQueue } from "./operation-queue.ts";
import { commit, loadState, type SessionState } from "./session-state.ts";

export function createLiveSession(harness: Harness, name: string, options: LiveSessionOptions): LiveSession {
  const key: SessionKey = { agent: harness.name, instance_id: harness.id, session: name };
  const place = harness.run_id === undefined ? key : { ...key, run_id: harness.run_id };
  const profile = options.profile ?? harness.profile;
  const queue = createOperationQueue(harness.runtime.maxWaitingOperations);
  let state: SessionState | undefined;
  let sandbox: Promise<Sandbox> | undefined;
  let toolkit: Toolkit | undefined;
  let current: Operation | undefined;
  let running:
    | { readonly controller: AbortController; readonly done: Promise<void>; readonly emit: Operation["emit"] }
    | undefined;

  const load = async (): Promise<SessionState> => {
    if (state === undefined || state.stale) state = await loadState(harness.store, key, options.parent);
    return state;
  };

  const live: LiveSession = {
    key,
    profile,
    depth: options.depth ?? 0,
    queue,
    load,
    get current() {
      return current;
    },
    toolkit() {
      toolkit ??= createToolkit(harness, live);
      return toolkit;
    },
    async sandbox() {
      if (options.sandbox !== undefined) return options.sandbox();
      sandbox ??= openSandbox(harness, profile, key).catch((error: unknown) => {
        sandbox = undefined;
        throw error;
      });
      return sandbox;
    },
    operate: (request, work) =>
      queue.run(async () => {
        const controller = new AbortController();
        const forward = (): void => controller.abort(request.signal?.reason);
        request.signal?.addEventListener("abort", forward, { once: true });
        if (request.signal?.aborted) forward();
        const scope: EventScope = { ...place, operation_id: request.id ?? createId("op"), ...request.scope };
        const emit: Operation["emit"] = (body, turnId) => harness.events.publish(body, scope, turnId);
        let settle = (): void => undefined;
        running = {
          controller,
          emit,
          done: new Promise((resolve) => {
            settle = resolve;
          }),
        };
        try {
          return await settled(
            request.kind,
            { emit, now: harness.runtime.clock.now, signal: controller.signal },
            async () => {
              const loaded = state === undefined || state.stale ? await load() : state;
              const operation: Operation = {
                id: scope.operation_id,
                kind: request.kind,
                signal: controller.signal,
                state: loaded,
                secrets: {},
                live,
                emit,
                commit: (entries) => commit(harness.store, loaded, entries),
              };
              current = operation;
              await closeOpenCalls(operation, harness.runtime.clock);
              controller.signal.throwIfAborted();
              return work(operation);
            },
          );
        } finally {
          request.signal?.removeEventListener("abort", forward);
          running = undefined;
          current = undefined;
          settle();
        }
      }, request.signal),
    async abort() {
      const active = running;
      if (active === undefined) return false;
      active.emit({ type: "abort_requested" });
      active.controller.abort(new KitError({ code: "aborted", message: "The operation was aborted." }));
      await active.done;
      return true;
    },
    evict() {
      state = undefined;
    },
    async close() {
      await live.abort();
      if (sandbox !== undefined) await (await sandbox).close();
      sandbox = undefined;
      state = undefined;
    },
  };
  return live;
}

async function openSandbox(harness: Harness, profile: AgentProfile, key: SessionKey): Promise<Sandbox> {
  const opened = await (profile.sandbox ?? harness.runtime.sandbox).open(key);
  return profile.cwd === undefined ? opened : opened.at(profile.cwd);
}

interface Settling {
  readonly emit: Operation["emit"];
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** Wraps work in the events that open and close an operation, however it ends. */
async function settled<Value>(
  kind: OperationKind,
  settling: Settling,
  work: () => Promise<Value>,
): Promise<Value> {
  const { emit, now, signal } = settling;
  const started = now();
  emit({ type: "operation_start", operation_kind: kind });
  const end = (isError: boolean): void => {
    emit({ type: "operation", operation_kind: kind, duration_ms: now() - started, is_error: isError });
    emit({ type: "idle" });
  };
  try {
    const value = await work();
    end(false);
    return value;
  } catch (error) {
    if (signal.aborted) emit({ type: "aborted" });
    else emit({ type: "error", error: toEventError(error), will_retry: false });
    end(true);
    throw error;
  }
}

function toEventError(error: unknown): { type: ErrorCode; message: string } {
  if (error instanceof KitError && Object.hasOwn(errorCodes, error.code)) {
    return { type: error.code as ErrorCode, message: error.message };
  }
  return { type: "internal_error", message: "The operation failed." };
}
