import { KitError } from "../base/kit-error.ts";
import { faultOfName } from "../base/names.ts";
import type { ApprovalDecision, ApprovalRequest } from "../protocol/approval.ts";
import type { SessionInfo, SessionKey } from "../protocol/session-entry.ts";
import type { AgentRuntime, Harness, LiveSession } from "./agent-runtime.ts";
import { notWaiting } from "./approvals/approvals.ts";
import type { AgentProfile } from "./define/agent-profile.ts";
import { createEventHub, type EventListener } from "./events.ts";
import { PythonSessions } from "./operations/run-python.ts";
import { SessionInMemory } from "./session/live-session.ts";
import { type Session, SessionHandle } from "./session/session.ts";

/** An instance of an agent: its profile, sessions and events. `Output` is the type of its `output` schema. */
export interface Agent<Output = unknown> {
  readonly name: string;
  readonly id: string;
  readonly profile: AgentProfile;
  /** The session of that name, with or without a history; default "default". */
  session(name?: string): Session<Output>;
  readonly sessions: {
    /** Throws `conflict` when the session has a history already. */
    create(name: string): Promise<Session<Output>>;
    /** Undefined for a session that was never used. */
    get(name: string): Promise<Session<Output> | undefined>;
    list(): Promise<readonly SessionInfo[]>;
    /** Deletes the history of the session and of all tasks below it, and the workspace that was its own. */
    delete(name: string): Promise<void>;
  };
  /** Calls of this instance and its tasks that wait for approval. */
  readonly approvals: {
    /** Lists waiting calls, oldest first; `session` selects one session. */
    list(filter?: { readonly session?: string }): Promise<readonly ApprovalRequest[]>;
    /** Approves or denies a call. Throws `not_found` if it is not waiting here: decided, expired, aborted or unknown. */
    decide(approvalId: string, decision: ApprovalDecision): Promise<void>;
  };
  /** Calls the listener with the events of all sessions of this instance; the returned function ends it. */
  onEvent(listener: EventListener): () => void;
  /** Whether an operation runs or waits in any of its sessions. */
  readonly busy: boolean;
  /** Aborts running operations and closes the sandboxes; with `drain`, waits for enqueued operations first. */
  close(options?: { readonly drain?: boolean }): Promise<void>;
}

/** The identity of an instance: the first two parts of its sessions' keys. */
export interface AgentIdentity {
  readonly name: string;
  readonly id: string;
  /** The file that describes the agent, relative to the project's root. */
  readonly file?: string | undefined;
  /** The workflow run that created the instance; every event of its sessions carries it. */
  readonly run_id?: string | undefined;
  /** The index of the newest event that the instance emitted in an earlier process; default 0. */
  readonly last_event?: number | undefined;
}

/** Creates an instance of an agent. Stores and sandboxes are opened on first use. */
export function createHarness(identity: AgentIdentity, profile: AgentProfile, runtime: AgentRuntime): Agent {
  const events = createEventHub({
    clock: runtime.clock,
    observers: runtime.observers,
    last: identity.last_event,
    onListenerError: runtime.onListenerError,
  });
  if (profile.onEvent !== undefined) events.subscribe(profile.onEvent);
  const { guardStore = (agentStore) => agentStore } = runtime;
  const store = profile.store === undefined ? runtime.store : guardStore(profile.store);
  const liveSessions = new LiveSessions(runtime.maxIdleSessions);
  // Thousands of instances may be idle: rarely needed parts are created on first use.
  let pythons: PythonSessions | undefined;
  let closed = false;
  const harness: Harness = {
    ...identity,
    profile,
    runtime,
    store,
    events,
    liveSessions,
    async startTask(operation, task) {
      const { startTask } = await import("./operations/run-task.ts");
      return startTask(harness, operation, task);
    },
    liveSession(name, options) {
      if (closed) throw new KitError({ code: "unavailable", message: "The agent is closed." });
      return (
        liveSessions.get(name) ?? liveSessions.add(name, new SessionInMemory(harness, name, options ?? {}))
      );
    },
    drop(live) {
      liveSessions.drop(live);
      pythons?.delete(live.key.session);
    },
    python(name) {
      pythons ??= new PythonSessions(runtime.python, profile);
      return pythons.get(name);
    },
  };
  const owner = { agent: identity.name, instance_id: identity.id };
  const open = (name = "default"): Session => new SessionHandle(harness, checkedName(name));
  const keyOf = (name: string): SessionKey => ({
    agent: identity.name,
    instance_id: identity.id,
    session: checkedName(name),
  });
  const agent: Agent = {
    name: identity.name,
    id: identity.id,
    profile,
    session: open,
    sessions: {
      async create(name) {
        if ((await store.info(keyOf(name))) !== undefined) {
          throw new KitError({
            code: "conflict",
            message: `A session named "${name}" exists already.`,
            hint: "Use sessions.get(name).",
          });
        }
        return open(name);
      },
      get: async (name) => ((await store.info(keyOf(name))) === undefined ? undefined : open(name)),
      list: async () => store.list({ agent: identity.name, instance_id: identity.id }),
      async delete(name) {
        const key = keyOf(name);
        const live = liveSessions.get(name);
        if (live !== undefined) {
          await live.close();
          liveSessions.drop(live);
        }
        pythons?.delete(name);
        await store.delete(key);
        const { sandbox, projectRoot } = runtime;
        const owner = projectRoot === undefined ? key : { ...key, project_root: projectRoot };
        await (profile.sandbox ?? sandbox).remove?.(owner);
      },
    },
    approvals: {
      list: async (filter) => (await runtime.approvals?.list({ ...filter, ...owner })) ?? [],
      async decide(approvalId, decision) {
        if (runtime.approvals === undefined) throw notWaiting();
        await runtime.approvals.decide(approvalId, decision, owner);
      },
    },
    onEvent: (listener) => events.subscribe(listener),
    get busy() {
      return liveSessions.busy;
    },
    async close({ drain = false } = {}) {
      if (drain) await Promise.all(liveSessions.all().map((live) => live.queue.drained()));
      closed = true;
      await Promise.all(liveSessions.all().map((live) => live.close()));
      liveSessions.clear();
    },
  };
  harnesses.set(agent, harness);
  return agent;
}

const harnesses = new WeakMap<Agent, Harness>();

/** The parts of an agent that is live in this process. */
export function harnessOf(agent: Agent): Harness {
  const harness = harnesses.get(agent);
  if (harness === undefined) throw new TypeError("The agent comes from elsewhere.");
  return harness;
}

function checkedName(name: string): string {
  const fault = typeof name === "string" ? faultOfName(name) : "must be a text";
  if (fault === undefined) return name;
  throw new KitError({ code: "invalid_request", message: `A session's name ${fault}.` });
}

/** The sessions of an agent that this process has open. It evicts the sessions that have been idle longest. */
class LiveSessions {
  readonly #maxIdle: number;
  /** Evicts in batches: a map is slow to find its first key after many single deletions. */
  readonly #evictBeyond: number;
  readonly #sessions = new Map<string, LiveSession>();
  // Ordered by last use.
  readonly #idle = new Map<string, LiveSession>();

  constructor(maxIdle: number) {
    this.#maxIdle = maxIdle;
    this.#evictBeyond = maxIdle + Math.floor(maxIdle / 32);
  }

  get(name: string): LiveSession | undefined {
    return this.#sessions.get(name);
  }

  /** A new session starts idle: its caller may only read it. */
  add(name: string, live: LiveSession): LiveSession {
    this.#sessions.set(name, live);
    this.markIdle(live);
    return live;
  }

  markBusy(live: LiveSession): void {
    const name = live.key.session;
    this.#idle.delete(name);
    // With a small limit, the session was evicted as soon as it was added.
    if (!this.#sessions.has(name)) this.#sessions.set(name, live);
  }

  markIdle(live: LiveSession): void {
    const name = live.key.session;
    // The session may have been evicted while it was busy.
    if (this.#sessions.get(name) !== live) return;
    this.#idle.delete(name);
    this.#idle.set(name, live);
    if (this.#idle.size > this.#evictBeyond) this.#evictOldest();
  }

  drop(live: LiveSession): void {
    const name = live.key.session;
    if (this.#sessions.get(name) !== live) return;
    this.#sessions.delete(name);
    this.#idle.delete(name);
  }

  all(): readonly LiveSession[] {
    return [...this.#sessions.values()];
  }

  /** Whether an operation runs or waits in any of them. */
  get busy(): boolean {
    for (const live of this.#sessions.values()) if (live.queue.busy) return true;
    return false;
  }

  clear(): void {
    this.#sessions.clear();
    this.#idle.clear();
  }

  #evictOldest(): void {
    for (const [name, live] of this.#idle) {
      if (this.#idle.size <= this.#maxIdle) return;
      this.#idle.delete(name);
      if (live.evict()) this.#sessions.delete(name);
    }
  }
}
