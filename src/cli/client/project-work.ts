import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type SharedEngine, sharedEngineOf } from "../../app/config/engine-config.ts";
import { KitError } from "../../base/kit-error.ts";
import { quoteName } from "../../base/names.ts";
import { isRecord } from "../../base/record.ts";
import { KitClient } from "../../client/kit-client.ts";
import type { Engine } from "../../engine/contract.ts";
import { openSharedEngine } from "../../engine/open-engine.ts";
import type { ClusterState } from "../../protocol/cluster.ts";
import type { DispatchPage, DispatchQuery, DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { RunAccepted, RunPage, RunQuery, RunRecord, SignalBody } from "../../protocol/run.ts";
import {
  type Command,
  type CommandArgument,
  type CommandContext,
  defineCommand,
  type ExitCode,
} from "../command.ts";
import { matchId } from "../find-record.ts";
import { terminalFolders } from "../run/terminal-approvals.ts";
import { loadProjectConfig } from "../with-project.ts";
import { clientLocator, type LocateClient, urlOption } from "./open-client.ts";

export interface FollowOptions {
  readonly after: number;
  readonly follow: boolean;
  readonly signal: AbortSignal;
  /** Called when the server has stopped and kit waits for the next one. */
  onGone(): void;
}

const pageSize = 1_000;
const wholeId = /^[a-z]+_[0-9A-Z]{26}$/;

/**
 * The runs and dispatches of a project: from its server or, where none runs, from the engine on its disk, through
 * the same client. Includes runs of other terminals. An id may be shortened to its end, as tables show it.
 */
export class ProjectWork {
  readonly #client: KitClient;
  readonly #locate: LocateClient;
  readonly #terminals: readonly KitClient[];

  constructor(client: KitClient, options: { locate: LocateClient; terminals: readonly KitClient[] }) {
    this.#client = client;
    this.#locate = options.locate;
    this.#terminals = options.terminals;
  }

  /** Throws `run_not_found`. */
  async getRun(id: string): Promise<RunRecord> {
    const runId = await this.#runId(id);
    const terminal = await this.#terminalOf(runId);
    // The server may have ended while its run was followed, and the next one have another address.
    const client = terminal ?? (await this.#locate()) ?? this.#client;
    return await client.runs.get(runId).catch(missing("run", runId));
  }

  /** Puts the runs of `kit run` in other terminals at the beginning of the first page. */
  async listRuns(query: RunQuery): Promise<RunPage> {
    const page = await this.#client.runs.list(query);
    if (query.cursor !== undefined) return page;
    const otherPages = await Promise.all(this.#terminals.map(({ runs }) => runs.list(query)));
    const pages = [...otherPages, page];
    const total = pages.reduce((sum, { total: count = 0 }) => sum + count, 0);
    return {
      ...page,
      runs: pages.flatMap(({ runs }) => runs),
      ...(page.total === undefined ? {} : { total }),
    };
  }

  /**
   * A run's events after an index; with `follow` each new one too, until the run has ended, over the end of servers.
   * Throws `run_not_found`.
   */
  async *runEvents(id: string, { after, follow, signal, onGone }: FollowOptions): AsyncGenerator<KitEvent> {
    const runId = await this.#runId(id);
    const terminal = await this.#terminalOf(runId);
    const { runs } = terminal ?? this.#client;
    await runs.get(runId).catch(missing("run", runId));
    if (follow) {
      const locate = terminal === undefined ? this.#locate : async () => terminal;
      yield* followRun({ runId, after, signal, locate, onGone });
      return;
    }
    for (let next = after; ; ) {
      const { events } = await runs.events(runId, { after: next, limit: pageSize }, { signal });
      yield* events;
      next = events.at(-1)?.index ?? next;
      if (events.length < pageSize) return;
    }
  }

  /**
   * Sends a run the value that its `waitFor` waits for. Throws `run_not_found`, and `conflict` for a run that has
   * ended.
   */
  async signalRun(id: string, signal: SignalBody): Promise<void> {
    const runId = await this.#runId(id);
    const { runs } = (await this.#terminalOf(runId)) ?? this.#client;
    await runs.signal(runId, signal).catch(missing("run", runId));
  }

  /** Returns false for a run that had ended. */
  async cancelRun(id: string): Promise<boolean> {
    const runId = await this.#runId(id);
    const { runs } = (await this.#terminalOf(runId)) ?? this.#client;
    return await runs.cancel(runId).catch(missing("run", runId));
  }

  /** Continues a failed run. Throws `run_not_found`, and `conflict` for a run that has not failed. */
  async retryRun(id: string): Promise<RunRecord> {
    const runId = await this.#runId(id);
    return await this.#client.runs.retry(runId).catch(missing("run", runId));
  }

  /** The nodes that share the work. */
  cluster(): Promise<ClusterState> {
    return this.#client.cluster();
  }

  /** Starts a run of the same workflow with the same payload. Throws `run_not_found`, and `conflict` while it goes on. */
  async rerun(id: string): Promise<RunAccepted> {
    const runId = await this.#runId(id);
    const { runs, workflows } = this.#client;
    const { workflow, payload } = toRerun(await runs.get(runId).catch(missing("run", runId)));
    return await workflows.start(workflow, payload);
  }

  /** Throws `not_found`. */
  async getDispatch(id: string): Promise<DispatchRecord> {
    const dispatchId = await this.#dispatchId(id);
    return await this.#client.dispatches.get(dispatchId).catch(missing("dispatch", dispatchId));
  }

  listDispatches(query: DispatchQuery): Promise<DispatchPage> {
    return this.#client.dispatches.list(query);
  }

  /** Throws `not_found`, and `conflict` for a dispatch that is not a dead letter. */
  async retryDispatch(id: string): Promise<DispatchRecord> {
    const dispatchId = await this.#dispatchId(id);
    return await this.#client.dispatches.retry(dispatchId).catch(missing("dispatch", dispatchId));
  }

  /** Returns false for a dispatch that had ended. */
  async cancelDispatch(id: string): Promise<boolean> {
    const dispatchId = await this.#dispatchId(id);
    return await this.#client.dispatches.cancel(dispatchId).catch(missing("dispatch", dispatchId));
  }

  async #runId(id: string): Promise<string> {
    if (wholeId.test(id)) return id;
    const { runs } = await this.listRuns({ limit: pageSize });
    return matchId(
      id,
      runs.map(({ run_id }) => run_id),
    );
  }

  async #dispatchId(id: string): Promise<string> {
    if (wholeId.test(id)) return id;
    const { dispatches } = await this.listDispatches({ limit: pageSize });
    return matchId(
      id,
      dispatches.map(({ dispatch_id }) => dispatch_id),
    );
  }

  async #terminalOf(runId: string): Promise<KitClient | undefined> {
    for (const terminal of this.#terminals) {
      const record = await terminal.runs.get(runId).catch(() => undefined);
      if (record !== undefined) return terminal;
    }
    return undefined;
  }
}

/** The words of a command that is about one run or dispatch. */
interface WorkCommand {
  /** Such as `<run-id>`. */
  readonly usage: string;
  readonly example: string;
  readonly details: string;
}

export const workDetails =
  "Asks the server that runs for this project; without a server it changes the state on disk, and the next 'kit start' continues from there.";

/** A command that takes the id of a run or a dispatch. */
export function workCommand(
  { usage, example, details }: WorkCommand,
  use: (work: ProjectWork, id: string, context: CommandContext) => Promise<ExitCode>,
): Command {
  return defineCommand({
    arguments: [workId(usage)],
    options: { url: urlOption },
    examples: [example],
    details: `${details} ${workDetails}`.trimStart(),
    run: ({ args: [id = ""], options: { url } }, context) =>
      withProjectWork(context, url, (work) => use(work, id, context)),
  });
}

export function workId(usage: string): CommandArgument {
  return { usage, description: "The id or its last characters, as the list prints them" };
}

/** Prints whether a run or dispatch was cancelled; it can have ended before. */
export function printCancelled(cancelled: boolean, { json, output }: CommandContext): ExitCode {
  if (json) output.json({ cancelled });
  else output.note(cancelled ? "Cancelled." : "It had ended already.");
  return cancelled ? 0 : 1;
}

/** Opens the work of the command line's project, and closes its engines however the command ends. */
export async function withProjectWork(
  context: CommandContext,
  url: string | undefined,
  use: (work: ProjectWork) => Promise<ExitCode>,
): Promise<ExitCode> {
  await using opened = new AsyncDisposableStack();
  const openEngine = async (target: string | SharedEngine | undefined): Promise<KitClient> => {
    const { serveEngine } = await import("../../server/serve-engine.ts");
    const engine = await createEngineAt(target);
    opened.defer(() => engine.drain());
    return new KitClient({
      baseUrl: "http://kit.invalid",
      fetch: serveEngine(engine),
      retry: { attempts: 1 },
    });
  };
  const locate = await clientLocator(context, url);
  const server = await locate();
  const client = server ?? (await openEngine(await enginePlace(context)));
  // A server that was named may be of another project than the terminals here.
  const folders = url === undefined ? terminalFolders(context.root) : [];
  const terminals = await Promise.all(folders.map(openEngine));
  const work = new ProjectWork(client, {
    locate: server === undefined ? async () => client : locate,
    terminals,
  });
  return await use(work);
}

async function createEngineAt(target: string | SharedEngine | undefined): Promise<Engine> {
  if (typeof target === "object") return await openSharedEngine(target);
  const { createEmbeddedEngine } = await import("../../engine/embedded/create-embedded-engine.ts");
  return createEmbeddedEngine(target === undefined ? {} : { folder: target });
}

/**
 * The folder or the database of the project's engine; undefined where there is none yet, so that reading does not
 * create one.
 */
async function enginePlace(context: CommandContext): Promise<string | SharedEngine | undefined> {
  const { config, environment } = await loadProjectConfig(context, { sendsKeys: true });
  const shared = sharedEngineOf(config, environment);
  if (shared !== undefined) return shared;
  const folder = resolve(context.root, config.engine?.folder ?? join(".kit", "engine"));
  return existsSync(folder) ? folder : undefined;
}

interface Rerun {
  readonly workflow: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The admission of a new run like this one, which has ended. */
function toRerun({ workflow, payload, ended_at }: RunRecord): Rerun {
  if (ended_at === undefined) {
    throw new KitError({
      code: "conflict",
      message: "The run has not ended.",
      hint: "It continues by itself; 'kit runs cancel' ends it.",
    });
  }
  if (isRecord(payload)) return { workflow, payload };
  throw new KitError({
    code: "conflict",
    message: "The run's payload is not a JSON object, so a request cannot carry it.",
  });
}

/** The error for an unknown id; its hint names the command that lists the ids. */
function missing(kind: "run" | "dispatch", id: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof KitError) || (error.code !== "run_not_found" && error.code !== "not_found"))
      throw error;
    throw new KitError({
      code: error.code,
      message: `There is no ${kind} with the id ${quoteName(id)}.`,
      hint:
        kind === "run" ? "'kit runs list' lists the runs." : "'kit dispatches list' lists the dispatches.",
      cause: error,
    });
  };
}

/** How long to wait between two attempts to find a restarted server, in ms. */
const pollMs = 500;

interface FollowedRun {
  readonly runId: string;
  readonly after: number;
  readonly signal: AbortSignal;
  /** The current server: a restarted one may have another address. */
  locate(): Promise<KitClient | undefined>;
  /** Called once each time the server stops. */
  onGone(): void;
}

/**
 * The events of a run until it has ended. The run continues after its server stops, so this waits for the next
 * server and continues after the last event.
 */
async function* followRun(run: FollowedRun): AsyncGenerator<KitEvent, void> {
  const { runId, signal } = run;
  let { after } = run;
  for (;;) {
    const { client } = await findRun(run);
    let isNew = false;
    try {
      for await (const event of client.runs.stream(runId, { after }, { signal })) {
        after = event.index;
        isNew = true;
        yield event;
      }
      return;
    } catch (error) {
      signal.throwIfAborted();
      const { record } = await findRun(run);
      // A run that has failed ends its stream with its error, which its record has, too.
      if (record.ended_at !== undefined && !(isGone(error) && isNew)) return;
      if (!isGone(error)) throw error;
    }
  }
}

async function findRun(run: FollowedRun): Promise<{ client: KitClient; record: RunRecord }> {
  for (let hasWarned = false; ; hasWarned = true) {
    const client = await run.locate();
    try {
      if (client !== undefined) {
        return { client, record: await client.runs.get(run.runId, { signal: run.signal }) };
      }
    } catch (error) {
      run.signal.throwIfAborted();
      if (!isGone(error)) throw error;
    }
    if (!hasWarned) run.onGone();
    await sleep(pollMs, undefined, { signal: run.signal });
  }
}

function isGone(error: unknown): boolean {
  return error instanceof KitError && (error.code === "unavailable" || error.code === "store_unavailable");
}
