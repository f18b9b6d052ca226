import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import { createApprovalsBy } from "../../agents/approvals/approvals.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import { createPostgresEngine } from "../../engine/postgres/create-postgres-engine.ts";
import { openEngineDatabase } from "../../engine/postgres/engine-database.ts";
import type { WaitingCalls } from "../../engine/waiting-calls-contract.ts";
import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { PostgresSessionStore } from "../../stores/postgres/postgres-store.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { createManualClock, type ManualClock } from "../../testing/manual-clock.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { openTestParts } from "../../testing/test-app.ts";
import {
  type Answer,
  type CallEvent,
  type CallStory,
  pay,
  type Scheduled,
  type WaitingAgent,
} from "./call-stories.suite.ts";
import { createService } from "./create-service.ts";
import type { ProjectService } from "./service.ts";

const leaseMs = 1_000;
const timeoutMs = 5_000;
const pollMs = 50;
/** Longer than a node takes to find what it was not told. */
const postgresMs = 300;

/** The stores that the processes share: a folder, or a schema of Postgres. */
export type Place = ({ readonly folder: string } | { readonly url: string; readonly schema: string }) & {
  readonly agent?: WaitingAgent | undefined;
};

/** A process that shares the stores, and stops before each of its writes about a call until it is let go. */
class ModelProcess {
  readonly clock: ManualClock = createManualClock();
  readonly #parked: { readonly at: string; readonly go: () => void }[] = [];
  readonly #death = new AbortController();
  service!: ProjectService;
  store!: SessionStore;
  isFrozen = false;
  /** Counts what the process does, so that the explorer notices when it rests. */
  activity = 0;

  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  async open(root: string): Promise<void> {
    const limits = { leaseMs, pollMs, backoffMs: 1 };
    const place = this.#place;
    const isLocal = "folder" in place;
    const store = isLocal
      ? new SqliteSessionStore({ file: join(place.folder, "sessions.db") })
      : new PostgresSessionStore(place);
    const engine = isLocal
      ? createEmbeddedEngine({ folder: join(place.folder, "engine"), clock: this.clock, limits })
      : await createPostgresEngine({ ...place, limits });
    const model = createScriptedModel(({ prompt }) => {
      const last = prompt.at(-1);
      if (last?.role === "tool") return { text: "Done." };
      // A rewind leaves nothing of what was said before it.
      if (JSON.stringify(last).includes("Instead.")) {
        const others = prompt.slice(0, -1).filter(({ role }) => role !== "system");
        return { text: others.length > 0 ? `Still there: ${JSON.stringify(others)}` : "Instead." };
      }
      const delegates = JSON.stringify(last).includes("Delegate.");
      const call = delegates
        ? { name: "task", input: { prompt: "Pay." } }
        : { name: "pay", input: { euros: 5 } };
      return { toolCalls: [{ ...call, id: "call_1" }] };
    });
    this.store = this.#parkStore(store);
    const parts = await openTestParts({ root, store: this.store, model });
    const approvals = createApprovalsBy(this.clock, isLocal ? { timeoutMs } : {});
    const options = { engine: this.#parkCalls(engine), restMs: 60_000, housekeeping: false };
    this.service = await createService({ ...parts, approvals }, options);
    this.#death.signal.addEventListener("abort", () => void store.close());
  }

  /** The write at which the process has stopped. */
  get at(): string | undefined {
    return this.#parked[0]?.at;
  }

  /** Lets the process do its next write or, if it waits, notice what others have written. */
  async step(): Promise<void> {
    const next = this.#parked.shift();
    if (next === undefined) await this.pass(pollMs + 1);
    next?.go();
    await this.rest();
  }

  /** Lets time pass for the process. A Postgres engine has the time of its database: it gets enough to hear of the others. */
  async pass(ms: number): Promise<void> {
    if ("folder" in this.#place) await this.clock.advance(ms);
    else await delay(Math.min(Math.max(ms, postgresMs), 10 * postgresMs));
  }

  /** Waits until the process does nothing more by itself. */
  async rest(): Promise<void> {
    for (let quiet = 0, seen = this.activity; quiet < 3; quiet = seen === this.activity ? quiet + 1 : 0) {
      seen = this.activity;
      for (let turns = 0; turns < 4; turns += 1) await turn();
      await delay("folder" in this.#place ? 0 : 10);
    }
  }

  async close(): Promise<void> {
    for (const { go } of this.#parked) go();
    this.#death.abort();
    await this.clock.advance(leaseMs);
    const closed = this.service.close({ timeoutMs: 0 });
    for (let isOpen = true; isOpen; ) {
      isOpen = await Promise.race([closed.then(() => false), turn(true)]);
      await this.clock.advance(leaseMs);
    }
  }

  async #park(at: string): Promise<void> {
    if (this.#death.signal.aborted)
      throw new KitError({ code: "lease_lost", message: "The process has died." });
    this.activity += 1;
    await new Promise<void>((go) => this.#parked.push({ at, go }));
    this.activity += 1;
    if (this.#death.signal.aborted)
      throw new KitError({ code: "lease_lost", message: "The process has died." });
  }

  #parkCalls(engine: Engine): Engine {
    const { waitingCalls } = engine;
    if (waitingCalls === undefined) return engine;
    const calls: WaitingCalls = {
      decide: (...args) => waitingCalls.decide(...args),
      list: (within) => waitingCalls.list(within),
      add: async (...call) => {
        await this.#park("add");
        const wait = await waitingCalls.add(...call);
        return {
          ...wait,
          settle: async (decision) => {
            await this.#park("settle");
            return await wait.settle(decision);
          },
          withdraw: async () => {
            await this.#park("withdraw");
            await wait.withdraw();
          },
        };
      },
    };
    return { ...engine, waitingCalls: calls };
  }

  #parkStore(store: SessionStore): SessionStore {
    const append = store.append.bind(store);
    store.append = async (request) => {
      const [entry] = request.entries;
      this.activity += 1;
      const name = entry?.type === "note" ? entry.name : entry?.type === "message" ? entry.message.role : "";
      const isParked = ["approval_request", "approval", "tool"].includes(name);
      if (isParked) await this.#park(`append ${name}`);
      await append(request);
      // The tool has not started yet.
      if (name === "approval") await this.#park("decided");
    };
    return store;
  }
}

let stories = 0;
const mostSteps = 120;

/** Plays a schedule on two processes of a new folder: the first works, the other stands by and serves the persons. */
export async function play(
  root: string,
  schedule: readonly Scheduled[],
  agent: WaitingAgent = "payer",
): Promise<CallStory> {
  const folder = mkdtempSync(join(tmpdir(), "kit-call-model-"));
  return await playOn({ folder, agent }, root, schedule).finally(() =>
    rmSync(folder, { recursive: true, force: true }),
  );
}

/** Plays a schedule on two processes that share the stores. */
export async function playOn(place: Place, root: string, schedule: readonly Scheduled[]): Promise<CallStory> {
  const [first, other] = [new ModelProcess(place), new ModelProcess(place)];
  stories += 1;
  const instance_id = `i${stories}`;
  const paid = (): string[] => Reflect.get(globalThis, "kitPaid") ?? [];
  const answers: Answer[] = [];
  const { agent = "payer" } = place;
  const story = { isCancelled: false, isExpired: false, isEdited: agent === "edited" };
  const rewinds: string[] = [];
  const target = { agent, instance_id, session: "default" };
  let call: string | undefined;
  try {
    await first.open(root);
    // The first owner of all shards of a Postgres engine, and the holder of the lease of a folder.
    const text = agent === "delegator" ? "Delegate." : "Pay.";
    const tools = agent === "called" ? { tools: [pay] } : {};
    const { dispatch_id, operation_id } = await first.service.dispatch(target, text, tools);
    await first.rest();
    await other.open(root);
    const { engine, approvals } = other.service;
    let turns = 0;
    let hasFrozen = false;
    const step = async (): Promise<void> => {
      turns += 1;
      // After the first woke up, both go on in turn.
      const isFirst = !hasFrozen || (!first.isFrozen && turns % 2 === 0);
      await (isFirst ? first : other).step();
      if (isFirst && hasFrozen) await other.rest();
    };
    const decide = async (event: Answer["event"]): Promise<void> => {
      call = (await approvals.list({ instance_id }))[0]?.approval_id ?? call;
      if (call === undefined) return;
      const approved = event === "approve";
      const results = { asker: { result: 5 }, called: { result: "Paid." }, edited: { args: { euros: 7 } } };
      const result = agent in results ? results[agent as keyof typeof results] : {};
      const decision = { approved, by: event, ...(approved && result) };
      const answer = await approvals.decide(call, decision).then(
        () => ({ isAccepted: true }),
        (error: KitError) => ({
          isAccepted: false,
          message: error.message,
          first: error.meta?.decision as ApprovalDecision | undefined,
        }),
      );
      answers.push({ event, ...answer });
    };
    const happen = async (event: CallEvent): Promise<void> => {
      if (event === "approve" || event === "deny") return await decide(event);
      if (event === "cancel") {
        if (await engine.cancelDispatch(dispatch_id)) story.isCancelled = true;
        return;
      }
      if (event === "rewind") {
        const sent = await other.service.dispatch(target, "Instead.", { rewind_before: operation_id });
        rewinds.push(sent.dispatch_id);
        // A page whose message is edited stops the operation, too.
        if (await engine.cancelDispatch(dispatch_id)) story.isCancelled = true;
        return;
      }
      if (event === "expire") {
        story.isExpired = true;
        for (const each of [first, other]) if (!each.isFrozen) await each.pass(timeoutMs);
        return;
      }
      hasFrozen = true;
      if (event === "lose") return await loseLeases(place);
      first.isFrozen = event === "freeze";
      if (event === "wake") return;
      // Without its lock, as after its death.
      if ("url" in place) void first.service.engine.drain({ timeoutMs: 0 });
      await other.pass(2 * leaseMs);
      await other.rest();
    };
    for (const { event, steps } of schedule) {
      for (let count = 0; count < steps; count += 1) await step();
      await happen(event);
    }
    const hasEnded = async (): Promise<boolean> => {
      const all = await Promise.all([dispatch_id, ...rewinds].map((id) => engine.getDispatch(id)));
      return all.every((dispatch) => dispatch?.ended_at !== undefined);
    };
    for (let count = 0; count < mostSteps && !(await hasEnded()); count += 1) {
      await step();
      // If no person has decided, the call must still wait, and a last person ends it.
      if (count === mostSteps / 2 && !answers.some(({ isAccepted }) => isAccepted)) await decide("deny");
    }
    const status = (await engine.getDispatch(dispatch_id))?.status;
    const ended = await Promise.all(rewinds.map((id) => engine.getDispatch(id)));
    const rewound = ended.map((each) =>
      each?.status === "completed" ? each.result : (each?.error ?? each?.status),
    );
    // A process that was frozen in its tool call, or woke up late, must have time to do harm.
    for (let count = 0; count < 8; count += 1) await step();
    const waiting = (await approvals.list({ instance_id })).length;
    const keys = await other.store.list({ agent, instance_id });
    const entries = (await Promise.all(keys.map((key) => other.store.read(key)))).flat();
    const mine =
      agent === "called"
        ? entries
            .filter((entry) => /"role":"tool".*"Paid\./.test(JSON.stringify(entry)))
            .map(() => `${instance_id}:5`)
        : paid().filter((one) => one.startsWith(`${instance_id}:`));
    const isUnknown = JSON.stringify(entries).includes("outcome is unknown");
    return { ...story, schedule, answers, status, rewound, paid: mine, waiting, isUnknown };
  } finally {
    await first.close();
    await other.close();
  }
}

/** Ends the leases of all nodes, as another node does that takes the shards and dies. */
async function loseLeases(place: Place): Promise<void> {
  if (!("url" in place)) return;
  const database = await openEngineDatabase(place);
  await database.run("UPDATE $s.shards SET fence = fence + 1, node = 'another'");
  await database.run("SELECT pg_terminate_backend(backend) FROM $s.nodes");
  await database.close();
}
