import { countDoneTurns } from "../../agents/log/past-operation.ts";
import type { EngineHandlers } from "../../engine/contract.ts";
import { outageOf } from "../../protocol/outage.ts";
import type { JoinedResult } from "../../protocol/prompt.ts";
import type { RuntimeParts } from "../runtime/agent-factory.ts";
import { origins } from "../runtime/observers.ts";
import { type ComposedParts, openParts, type ServiceOptions } from "./compose-parts.ts";
import type { Input } from "./input.ts";
import { RestingWork } from "./resting-work.ts";
import type { ProjectService } from "./service.ts";
import { openUpkeep, toService } from "./service-calls.ts";
import { joins, operationOf, toFork, toPromptRequest } from "./stored-input.ts";
import {
  checkKnownByNode,
  clockSet,
  createOutageLog,
  isRetryableInput,
  nameDispatch,
} from "./work-errors.ts";

/**
 * Composes a service: sources become live agents and workflows, whose work the engine accepts and starts. If `createService` throws,
 * the caller closes the parts and the engine.
 */
export async function createService(
  runtimeParts: RuntimeParts,
  options: ServiceOptions,
): Promise<ProjectService> {
  const parts = await openParts(runtimeParts, options);
  const { owners, admin, sessions, prompts } = parts;
  owners.serve({ ...owners.streamAnswers, ...admin.answers, ...sessions.answers, ...prompts.answers });
  const upkeep = await openUpkeep(parts);
  const service = toService(parts, upkeep);
  if (options.works === false) return service;
  try {
    const isDurable = options.keepsWork !== false && parts.engine.capabilities.durable;
    // Without files of the project on disk, this is a bundle for a platform, which has no modules to lose.
    if (isDurable && runtimeParts.modules === undefined) {
      const { loadOwnCode } = await import("./load-own-code.ts");
      await loadOwnCode();
    }
    await parts.engine.start(handlersOf(parts));
    await upkeep.renewSchedules();
    return service;
  } catch (error) {
    await upkeep.stop();
    await parts.instances.close();
    parts.sources.close();
    throw error;
  }
}

/** Returns how the engine starts accepted work. */
function handlersOf(parts: ComposedParts): EngineHandlers {
  const {
    engine,
    sources,
    traces,
    work: sessions,
    runs,
    slots,
    causeOf,
    onError,
    runtimeParts,
    instances,
  } = parts;
  const { store } = runtimeParts;
  return {
    async dispatch(context, request) {
      try {
        const { agent, instance_id, session, input } = request;
        await checkKnownByNode(agent, { engine, sources });
        if (context.attempt > 1) await traces.recallSession(request);
        const key = { agent, instance_id, session };
        const operationId = operationOf(context.id);
        const fork = toFork(input);
        const work: Input = {
          key,
          caller: request,
          request: toPromptRequest(input),
          operationId,
          prepare:
            fork && (async () => (await import("./forks.ts")).beginFork(store, key, { fork, operationId })),
          resting: new RestingWork(context),
        };
        if (!joins(input)) return await sessions.perform(context, work);
        const { performJoined } = await import("./joined-input.ts");
        const instead: Input<JoinedResult>["instead"] = (...at) => performJoined(...at, work);
        return await sessions.perform(context, { ...work, instead });
      } catch (error) {
        // No caller waits for a dispatch, so only the log gets the reason.
        if (!context.signal.aborted && outageOf(error) === undefined) onError(nameDispatch(error, context));
        throw error;
      }
    },
    async run(context, request) {
      return await origins.run({}, () =>
        slots.hold({ context, caller: request, input: undefined }, () => runs.perform(context, request)),
      );
    },
    async progressOf(key, dispatchId) {
      const live = await instances.get(key).catch((error: unknown) => {
        // An agent that cannot be created makes no progress, and its attempts report why; an outage tells nothing about it.
        if (outageOf(error) !== undefined) throw error;
      });
      const entries = await (live?.profile.store ?? store).read(key);
      return countDoneTurns(entries, operationOf(dispatchId));
    },
    checkSignal: (wait, payload) => runs.checkSignal(wait, payload),
    onInputEnd: parts.endInput,
    isRetryable: isRetryableInput,
    onOutage: createOutageLog(onError),
    onHeld: (problem, run) => runs.noteHeld(problem, run),
    onClockSet: (byMs) => onError(clockSet(byMs)),
    causeOf,
  };
}
