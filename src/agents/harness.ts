import { KitError } from "../base/kit-error.ts";
import { faultOfName } from "../base/names.ts";
import type { ApprovalDecision, ApprovalRequest } from "../protocol/approval.ts";
import type { SessionInfo, SessionKey } from "../protocol/session-entry.ts";
import type { PythonSession } from "../python/contract.ts";
import type { SessionStore } from "../stores/contract.ts";
import type { AgentRuntime, Harness, LiveSession, LiveSessionOptions } from "./agent-runtime.ts";
import { notWaiting } from "./approvals/approvals.ts";
import type { AgentProfile } from "./define/agent-profile.ts";
import { createEventHub, type EventHub, type EventListener } from "./events.ts";
import { type UnsavedWork, unsavedOf } from "./log/unsaved-work.ts";
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
  /** Called once the instance is closed. */
  readonly onClosed?: (() => void) | undefined;
}

/** Creates an instance of an agent. Stores and sandboxes are opened on first use. */
export function createHarness(identity: AgentIdentity, profile: AgentProfile, runtime: AgentRuntime): Agent {
  return new LiveAgent(new LiveHarness(identity, profile, runtime));
}

/** The parts of an agent that is live in this process. */
export function harnessOf(agent: Agent): Harness {
  if (agent instanceof LiveAgent) return agent.harness();
  throw new TypeError("The agent comes from elsewhere.");
}

/** Classes, because thousands of instances may be idle: their methods are shared, and rarely needed parts are created on first use. */
class LiveHarness implements Harness {
  readonly name: string;
  readonly file: string | undefined;
  readonly id: string;
  readonly run_id: string | undefined;
  readonly profile: AgentProfile;
  readonly runtime: AgentRuntime;
  readonly store: SessionStore;
  readonly unsaved: UnsavedWork;
  readonly events: EventHub;
  readonly liveSessions: LiveSessions;
  readonly #onClosed: AgentIdentity["onClosed"];
  #pythons: PythonSessions | undefined;
  #closed = false;

  constructor(
    { name, file, id, run_id, last_event, onClosed }: AgentIdentity,
    profile: AgentProfile,
    runtime: AgentRuntime,
  ) {
    const { clock, observers, onListenerError } = runtime;
    this.name = name;
    this.file = file;
    this.id = id;
    this.run_id = run_id;
    this.#onClosed = onClosed;
    this.profile = profile;
    this.runtime = runtime;
    this.store =
      profile.store === undefined ? runtime.store : (runtime.guardStore?.(profile.store) ?? profile.store);
    this.unsaved = unsavedOf(this.store, clock);
    this.events = createEventHub({ clock, observers, last: last_event, onListenerError });
    if (profile.onEvent !== undefined) this.events.subscribe(profile.onEvent);
    this.liveSessions = new LiveSessions(runtime.maxIdleSessions);
  }

  async startTask(
    ...[operation, task]: Parameters<Harness["startTask"]>
  ): Promise<{ readonly text: string }> {
    const { startTask } = await import("./operations/run-task.ts");
    return startTask(this, operation, task);
  }

  liveSession(name: string, options?: LiveSessionOptions): LiveSession {
    if (this.#closed) throw new KitError({ code: "unavailable", message: "The agent is closed." });
    const { liveSessions } = this;
    return (
      liveSessions.byName.get(name) ?? liveSessions.add(name, new SessionInMemory(this, name, options ?? {}))
    );
  }

  drop(live: LiveSession): void {
    this.liveSessions.drop(live);
    this.#pythons?.delete(live.key.session);
  }

  python(name: string): PythonSession {
    this.#pythons ??= new PythonSessions(this.runtime.python, this.profile);
    return this.#pythons.get(name);
  }

  keyOf(name: string): SessionKey {
    return { agent: this.name, instance_id: this.id, session: checkedName(name) };
  }

  async delete(name: string): Promise<void> {
    const key = this.keyOf(name);
    const live = this.liveSessions.byName.get(name);
    if (live !== undefined) {
      await live.close();
      this.liveSessions.drop(live);
    }
    this.#pythons?.delete(name);
    await this.store.delete(key);
    const { sandbox, projectRoot } = this.runtime;
    const owner = projectRoot === undefined ? key : { ...key, project_root: projectRoot };
    await (this.profile.sandbox ?? sandbox).remove?.(owner);
  }

  async close(drain: boolean): Promise<void> {
    const { liveSessions } = this;
    if (drain && liveSessions.busy)
      await Promise.all([...liveSessions.byName.values()].map((live) => live.queue.drained()));
    this.#closed = true;
    await Promise.all([...liveSessions.byName.values()].map((live) => live.close()));
    this.#onClosed?.();
  }
}

class LiveAgent implements Agent {
  readonly name: string;
  readonly id: string;
  readonly profile: AgentProfile;
  readonly #harness: LiveHarness;

  constructor(harness: LiveHarness) {
    this.name = harness.name;
    this.id = harness.id;
    this.profile = harness.profile;
    this.#harness = harness;
  }

  harness(): Harness {
    return this.#harness;
  }

  session(name?: string): Session {
    return new SessionHandle(this.#harness, name === undefined ? "default" : checkedName(name));
  }

  get sessions(): Agent["sessions"] {
    const harness = this.#harness;
    const { store } = harness;
    return {
      create: async (name) => {
        if ((await store.info(harness.keyOf(name))) === undefined) return this.session(name);
        throw new KitError({
          code: "conflict",
          message: `A session named "${name}" exists already.`,
          hint: "Use sessions.get(name).",
        });
      },
      get: async (name) =>
        (await store.info(harness.keyOf(name))) === undefined ? undefined : this.session(name),
      list: async () => store.list({ agent: harness.name, instance_id: harness.id }),
      delete: (name) => harness.delete(name),
    };
  }

  get approvals(): Agent["approvals"] {
    const { approvals } = this.#harness.runtime;
    const owner = { agent: this.name, instance_id: this.id };
    return {
      list: async (filter) => (await approvals?.list({ ...filter, ...owner })) ?? [],
      async decide(approvalId, decision) {
        if (approvals === undefined) throw notWaiting();
        await approvals.decide(approvalId, decision, owner);
      },
    };
  }

  onEvent(listener: EventListener): () => void {
    return this.#harness.events.subscribe(listener);
  }

  get busy(): boolean {
    return this.#harness.liveSessions.busy;
  }

  async close({ drain = false }: { readonly drain?: boolean } = {}): Promise<void> {
    await this.#harness.close(drain);
  }
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
  readonly byName = new Map<string, LiveSession>();
  // Ordered by last use.
  readonly #idle = new Map<string, LiveSession>();

  constructor(maxIdle: number) {
    this.#maxIdle = maxIdle;
    this.#evictBeyond = maxIdle + Math.floor(maxIdle / 32);
  }

  /** A new session starts idle: its caller may only read it. */
  add(name: string, live: LiveSession): LiveSession {
    this.byName.set(name, live);
    this.markIdle(live);
    return live;
  }

  markBusy(live: LiveSession): void {
    const name = live.key.session;
    this.#idle.delete(name);
    // With a small limit, the session was evicted as soon as it was added.
    if (!this.byName.has(name)) this.byName.set(name, live);
  }

  markIdle(live: LiveSession): void {
    const name = live.key.session;
    // The session may have been evicted while it was busy.
    if (this.byName.get(name) !== live) return;
    this.#idle.delete(name);
    this.#idle.set(name, live);
    if (this.#idle.size > this.#evictBeyond) this.#evictOldest();
  }

  drop(live: LiveSession): void {
    const name = live.key.session;
    if (this.byName.get(name) !== live) return;
    this.byName.delete(name);
    this.#idle.delete(name);
  }

  /** Whether an operation runs or waits in any of them. */
  get busy(): boolean {
    for (const live of this.byName.values()) if (live.queue.busy) return true;
    return false;
  }

  #evictOldest(): void {
    for (const [name, live] of this.#idle) {
      if (this.#idle.size <= this.#maxIdle) return;
      this.#idle.delete(name);
      if (live.evict()) this.byName.delete(name);
    }
  }
}
