import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { shownName } from "../../base/name-fault.ts";
import type { KitClient } from "../../client/kit-client.ts";
import { type Engine, runStream } from "../../engine/contract.ts";
import type { DispatchPage, DispatchQuery, DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { RunAccepted, RunPage, RunQuery, RunRecord, SignalBody } from "../../protocol/run.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { matchId } from "../find-record.ts";
import { terminalFolders } from "../run/terminal-engines.ts";
import { loadProjectConfig } from "../with-project.ts";
import { followRun } from "./follow-run.ts";
import { clientLocator, type LocateClient } from "./open-client.ts";

/** Runs and dispatches, asked of a server or, where none runs, read from the project's own engine. */
export interface WorkDesk {
  /** Throws `run_not_found`. */
  getRun(runId: string): Promise<RunRecord>;
  listRuns(query: RunQuery): Promise<RunPage>;
  /**
   * A run's events after an index; with `follow` each new one too, until the run has ended, whatever
   * becomes of the server meanwhile.
   */
  runEvents(runId: string, options: FollowOptions): AsyncIterable<KitEvent>;
  /** Hands a run what its `waitFor` waits for. Throws `run_not_found`, and `conflict` for one that has ended. */
  signalRun(runId: string, signal: SignalBody): Promise<void>;
  /** False when it had ended. */
  cancelRun(runId: string): Promise<boolean>;
  /** Starts a run of the same workflow with the same payload. Throws `run_not_found`, and `conflict` while it goes on. */
  rerun(runId: string): Promise<RunAccepted>;
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
  /** Told when the server is gone, and the next one is waited for. */
  onGone(): void;
}

const pageSize = 1_000;

/** Opens the desk of a command line, and closes it whatever happens. */
export async function withWorkDesk(
  context: CommandContext,
  url: string | undefined,
  use: (desk: WorkDesk) => Promise<ExitCode>,
): Promise<ExitCode> {
  await using opened = new AsyncDisposableStack();
  const openDesk = async (folder: string | undefined): Promise<WorkDesk> => {
    const { createEmbeddedEngine } = await import("../../engine/embedded/create-embedded-engine.ts");
    const { toSentDispatch } = await import("../../app/service/session-input.ts");
    const engine = createEmbeddedEngine(folder === undefined ? {} : { folder });
    opened.defer(() => engine.drain());
    return localDesk(engine, toSentDispatch);
  };
  const locate = await clientLocator(context, url);
  const client = await locate();
  const desk =
    client === undefined ? await openDesk(await engineFolder(context)) : remoteDesk(client, locate);
  // What runs in other terminals is no server's affair, and a server that was named is not of this project.
  const folders = url === undefined ? terminalFolders(context.root) : [];
  const terminals = await Promise.all(folders.map(openDesk));
  return await use(withShortIds(withTerminals(desk, terminals)));
}

/** Where the project's engine keeps its work. A project that never had any has no such folder, and looking makes none. */
async function engineFolder(context: CommandContext): Promise<string | undefined> {
  const { config } = await loadProjectConfig(context);
  const folder = resolve(context.root, config.engine?.folder ?? join(".kit", "engine"));
  return existsSync(folder) ? folder : undefined;
}

/** A desk that also finds the runs of the workflows that run in other terminals. */
function withTerminals(desk: WorkDesk, terminals: readonly WorkDesk[]): WorkDesk {
  if (terminals.length === 0) return desk;
  const deskOf = async (runId: string): Promise<WorkDesk> => {
    for (const terminal of terminals) {
      const found = await terminal.getRun(runId).catch(() => undefined);
      if (found !== undefined) return terminal;
    }
    return desk;
  };
  return {
    ...desk,
    getRun: async (runId) => (await deskOf(runId)).getRun(runId),
    async listRuns(query) {
      const page = await desk.listRuns(query);
      if (query.cursor !== undefined) return page;
      const others = await Promise.all(terminals.map((terminal) => terminal.listRuns(query)));
      return { ...page, runs: [...others.flatMap(({ runs }) => runs), ...page.runs] };
    },
    async *runEvents(runId, options) {
      yield* (await deskOf(runId)).runEvents(runId, options);
    },
    signalRun: async (runId, signal) => (await deskOf(runId)).signalRun(runId, signal),
    cancelRun: async (runId) => (await deskOf(runId)).cancelRun(runId),
  };
}

/** A desk that takes the end of an id for the id, as tables show it. */
function withShortIds(desk: WorkDesk): WorkDesk {
  const whole = /^[a-z]+_[0-9A-Z]{26}$/;
  const run = async (id: string): Promise<string> => {
    if (whole.test(id)) return id;
    const { runs } = await desk.listRuns({ limit: pageSize });
    return matchId(
      id,
      runs.map(({ run_id }) => run_id),
    );
  };
  const dispatch = async (id: string): Promise<string> => {
    if (whole.test(id)) return id;
    const { dispatches } = await desk.listDispatches({ limit: pageSize });
    return matchId(
      id,
      dispatches.map(({ dispatch_id }) => dispatch_id),
    );
  };
  return {
    ...desk,
    getRun: async (id) => desk.getRun(await run(id)),
    async *runEvents(id, options) {
      yield* desk.runEvents(await run(id), options);
    },
    signalRun: async (id, signal) => desk.signalRun(await run(id), signal),
    cancelRun: async (id) => desk.cancelRun(await run(id)),
    rerun: async (id) => desk.rerun(await run(id)),
    getDispatch: async (id) => desk.getDispatch(await dispatch(id)),
    retryDispatch: async (id) => desk.retryDispatch(await dispatch(id)),
    cancelDispatch: async (id) => desk.cancelDispatch(await dispatch(id)),
  };
}

function remoteDesk(client: KitClient, locate: LocateClient): WorkDesk {
  const { runs, dispatches } = client;
  return {
    async getRun(runId) {
      // Who has followed a run may have seen its server go, and the next one come at another address.
      const now = (await locate()) ?? client;
      return await now.runs.get(runId).catch(explainMissing);
    },
    listRuns: (query) => runs.list(query),
    async *runEvents(runId, { after, follow, signal, onGone }) {
      await runs.get(runId).catch(explainMissing);
      if (follow) {
        yield* followRun({ runId, after, signal, locate, onGone });
        return;
      }
      for (let next = after; ; ) {
        const { events } = await runs.events(runId, { after: next, limit: pageSize }, { signal });
        yield* events;
        next = events.at(-1)?.index ?? next;
        if (events.length < pageSize) return;
      }
    },
    signalRun: (runId, signal) => runs.signal(runId, signal).catch(explainMissing),
    cancelRun: (runId) => runs.cancel(runId).catch(explainMissing),
    async rerun(runId) {
      const { workflow, payload } = toRerun(await runs.get(runId).catch(explainMissing));
      return await client.workflows.start(workflow, payload);
    },
    getDispatch: (dispatchId) => dispatches.get(dispatchId).catch(explainMissing),
    listDispatches: (query) => dispatches.list(query),
    retryDispatch: (dispatchId) => dispatches.retry(dispatchId).catch(explainMissing),
    cancelDispatch: (dispatchId) => dispatches.cancel(dispatchId).catch(explainMissing),
  };
}

function localDesk(engine: Engine, toSentDispatch: (record: DispatchRecord) => DispatchRecord): WorkDesk {
  const getRun = async (runId: string): Promise<RunRecord> => {
    const run = await engine.getRun(runId);
    if (run === undefined) throw missing("run_not_found", `There is no run with the id ${shownName(runId)}.`);
    return run;
  };
  const getDispatch = async (dispatchId: string): Promise<DispatchRecord> => {
    const dispatch = await engine.getDispatch(dispatchId);
    if (dispatch === undefined)
      throw missing("not_found", `There is no dispatch with the id ${shownName(dispatchId)}.`);
    return toSentDispatch(dispatch);
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
    async signalRun(runId, signal) {
      await getRun(runId);
      await engine.signal(runId, signal);
    },
    async cancelRun(runId) {
      await getRun(runId);
      return engine.cancelRun(runId);
    },
    async rerun(runId) {
      const { run_id } = await engine.startRun(toRerun(await getRun(runId)));
      return { status: "accepted", run_id };
    },
    getDispatch,
    async listDispatches(query) {
      const { items, ...rest } = await engine.listDispatches(query);
      return { dispatches: items.map(toSentDispatch), ...rest };
    },
    async retryDispatch(dispatchId) {
      await getDispatch(dispatchId);
      return toSentDispatch(await engine.redrive(dispatchId));
    },
    async cancelDispatch(dispatchId) {
      await getDispatch(dispatchId);
      return engine.cancelDispatch(dispatchId);
    },
  };
}

/** What a run began with, once it is over. */
function toRerun({ workflow, payload, ended_at }: RunRecord): Rerun {
  if (ended_at === undefined) {
    throw new KitError({
      code: "conflict",
      message: "The run has not ended.",
      hint: "It goes on by itself; 'kit runs cancel' ends it.",
    });
  }
  if (isObject(payload)) return { workflow, payload };
  throw new KitError({ code: "conflict", message: "The run's payload is none that a request can carry." });
}

interface Rerun {
  readonly workflow: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const lists = {
  run_not_found: "'kit runs list' lists the runs.",
  not_found: "'kit dispatches list' lists the dispatches.",
} as const;

function missing(code: keyof typeof lists, message: string, cause?: unknown): KitError {
  return new KitError({ code, message, hint: lists[code], cause });
}

function explainMissing(error: unknown): never {
  if (!(error instanceof KitError)) throw error;
  const { code, message } = error;
  throw code === "run_not_found" || code === "not_found" ? missing(code, message, error) : error;
}
