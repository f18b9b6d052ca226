import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import type { KitClient } from "../../client/kit-client.ts";
import { type Engine, runStream } from "../../engine/contract.ts";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { DispatchPage, DispatchQuery } from "../../protocol/http/dispatch-schemas.ts";
import type { RunPage, RunQuery } from "../../protocol/http/run-schemas.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { loadProjectConfig } from "../with-project.ts";
import { findClient } from "./open-client.ts";

/** Runs and dispatches, asked of a server or, where none runs, read from the project's own engine. */
export interface WorkDesk {
  /** Throws `run_not_found`. */
  getRun(runId: string): Promise<RunRecord>;
  listRuns(query: RunQuery): Promise<RunPage>;
  /** A run's events after an index; with `follow` each new one too, until the run has ended. */
  runEvents(runId: string, options: FollowOptions): AsyncIterable<KitEvent>;
  /** Throws `not_found`. */
  getDispatch(dispatchId: string): Promise<DispatchRecord>;
  listDispatches(query: DispatchQuery): Promise<DispatchPage>;
  /** Throws `not_found` and `conflict`. */
  retryDispatch(dispatchId: string): Promise<DispatchRecord>;
  cancelDispatch(dispatchId: string): Promise<boolean>;
}

export interface FollowOptions {
  readonly after: number;
  readonly follow: boolean;
  readonly signal: AbortSignal;
}

const pageSize = 1_000;

/** Opens the desk of a command line, and closes it whatever happens. */
export async function withWorkDesk(
  context: CommandContext,
  url: string | undefined,
  use: (desk: WorkDesk) => Promise<ExitCode>,
): Promise<ExitCode> {
  const client = await findClient(context, url);
  if (client !== undefined) return await use(remoteDesk(client));
  const engine = await openEngine(context);
  try {
    return await use(localDesk(engine));
  } finally {
    await engine.drain();
  }
}

async function openEngine(context: CommandContext): Promise<Engine> {
  const { config } = await loadProjectConfig(context);
  const folder = resolve(context.root, config.engine?.folder ?? join(".kit", "engine"));
  // A project that never had any work has no such folder, and looking at it makes none.
  return createEmbeddedEngine(existsSync(folder) ? { folder } : {});
}

function remoteDesk(client: KitClient): WorkDesk {
  return {
    getRun: (runId) => client.runs.get(runId),
    listRuns: (query) => client.runs.list(query),
    async *runEvents(runId, { after, follow, signal }) {
      if (follow) {
        yield* client.runs.stream(runId, { after }, { signal });
        return;
      }
      for (let next = after; ; ) {
        const { events } = await client.runs.events(runId, { after: next, limit: pageSize }, { signal });
        yield* events;
        next = events.at(-1)?.index ?? next;
        if (events.length < pageSize) return;
      }
    },
    getDispatch: (dispatchId) => client.dispatches.get(dispatchId),
    listDispatches: (query) => client.dispatches.list(query),
    retryDispatch: (dispatchId) => client.dispatches.retry(dispatchId),
    cancelDispatch: (dispatchId) => client.dispatches.cancel(dispatchId),
  };
}

function localDesk(engine: Engine): WorkDesk {
  const getRun = async (runId: string): Promise<RunRecord> => {
    const run = await engine.getRun(runId);
    if (run === undefined) throw missing("run_not_found", "There is no such run.");
    return run;
  };
  const getDispatch = async (dispatchId: string): Promise<DispatchRecord> => {
    const dispatch = await engine.getDispatch(dispatchId);
    if (dispatch === undefined) throw missing("not_found", "There is no such dispatch.");
    return dispatch;
  };
  return {
    getRun,
    async listRuns(query) {
      const { items, ...rest } = await engine.listRuns(query);
      return { runs: items, ...rest };
    },
    async *runEvents(runId, { after, follow, signal }) {
      await getRun(runId);
      if (follow) {
        yield* engine.events.subscribe(runStream(runId), { after, signal });
        return;
      }
      for (let next = after; ; ) {
        const events = await engine.events.read(runStream(runId), { after: next, limit: pageSize });
        yield* events;
        next = events.at(-1)?.index ?? next;
        if (events.length < pageSize) return;
      }
    },
    getDispatch,
    async listDispatches(query) {
      const { items, ...rest } = await engine.listDispatches(query);
      return { dispatches: items, ...rest };
    },
    async retryDispatch(dispatchId) {
      await getDispatch(dispatchId);
      return engine.redrive(dispatchId);
    },
    async cancelDispatch(dispatchId) {
      await getDispatch(dispatchId);
      return engine.cancelDispatch(dispatchId);
    },
  };
}

function missing(code: "run_not_found" | "not_found", message: string): KitError {
  return new KitError({ code, message });
}
