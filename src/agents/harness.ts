import { KitError } from "../base/kit-error.ts";
import { faultOfName } from "../base/name-fault.ts";
import type { ApprovalDecision, ApprovalRequest } from "../protocol/approval.ts";
import type { SessionInfo, SessionKey } from "../protocol/session-entry.ts";
import type { AgentRuntime, Harness, LiveSession } from "./agent-runtime.ts";
import { notWaiting } from "./approvals/approvals.ts";
import type { AgentProfile } from "./define/agent-profile.ts";
import { createEventHub, type EventListener } from "./events.ts";
import { PythonSessions } from "./operations/run-python.ts";
import { startTask } from "./operations/run-task.ts";
import { createLiveSession } from "./session/live-session.ts";
import { createSession, type Session } from "./session/session.ts";

/** An agent that is alive: its profile, its sessions, its events. */
export interface Agent {
  readonly name: string;
  readonly id: string;
  readonly profile: AgentProfile;
  /** The session of that name, whether it has a history or not; default "default". */
  session(name?: string): Session;
  readonly sessions: {
    /** Throws `conflict` when the session has a history already. */
    create(name: string): Promise<Session>;
    /** Undefined for a session that was never used. */
    get(name: string): Promise<Session | undefined>;
    list(): Promise<readonly SessionInfo[]>;
    /** Deletes the history of the session and of all tasks below it, and the workspace that was its own. */
    delete(name: string): Promise<void>;
  };
  /** Calls of this instance that wait for somebody's word, those of tasks too. */
  readonly approvals: {
    /** Oldest first; of one session where it is named. */
    list(filter?: { readonly session?: string }): Promise<readonly ApprovalRequest[]>;
    /** Throws `not_found` for what is not waiting here: decided, expired, aborted or unknown. */
    decide(approvalId: string, decision: ApprovalDecision): Promise<void>;
  };
  /** Hears what happens in all sessions of this instance; the function returned ends it. */
  subscribe(listener: EventListener): () => void;
  /** Whether an operation runs or waits in any of its sessions. */
  readonly busy: boolean;
  /** Aborts what runs, and gives the sandboxes back; with `drain`, waits for what was asked before. */
  close(options?: { readonly drain?: boolean }): Promise<void>;
}

/** Whose an agent is: the first two parts of the key of its sessions. */
export interface AgentIdentity {
  readonly name: string;
  readonly id: string;
  /** The file that describes the agent, relative to the project's root. */
  readonly file?: string;
  /** The workflow run that brought it along; stands on every event of its sessions. */
  readonly run_id?: string;
  /** The index of the newest event that this instance gave in another life; default 0. */
  readonly last_event?: number;
}

/** Brings an agent to life. Nothing is opened before a session needs it. */
export function createHarness(identity: AgentIdentity, profile: AgentProfile, runtime: AgentRuntime): Agent {
  const events = createEventHub({
    clock: runtime.clock,
    observers: runtime.observers,
    ...(identity.last_event !== undefined && { last: identity.last_event }),
    ...(runtime.onListenerError && { onListenerError: runtime.onListenerError }),
  });
  if (profile.onEvent !== undefined) events.subscribe(profile.onEvent);
  const store = profile.store ?? runtime.store;
  const lives = new LiveSessions(runtime.maxIdleSessions);
  // Thousands of instances may rest: what few of them need is made when it is asked for.
  let pythons: PythonSessions | undefined;
  let closed = false;
  const harness: Harness = {
    ...identity,
    profile,
    runtime,
    store,
    events,
    startTask: (operation, task) => startTask(harness, operation, task),
    live(name, options) {
      if (closed) throw new KitError({ code: "unavailable", message: "The agent is closed." });
      return lives.get(name) ?? lives.add(name, createLiveSession(harness, name, options ?? {}));
    },
    wake: (live) => lives.wake(live),
    rest: (live) => lives.rest(live),
    drop(live) {
      lives.drop(live);
      pythons?.delete(live.key.session);
    },
    python(name) {
      pythons ??= new PythonSessions(runtime.python, profile);
      return pythons.get(name);
    },
  };
  const own = { agent: identity.name, instance_id: identity.id };
  const open = (name: string): Session => createSession(harness, checkedName(name));
  const keyOf = (name: string): SessionKey => ({
    agent: identity.name,
    instance_id: identity.id,
    session: checkedName(name),
  });
  return {
    name: identity.name,
    id: identity.id,
    profile,
    session: (name = "default") => open(name),
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
        const live = lives.get(name);
        if (live !== undefined) {
          await live.close();
          lives.drop(live);
        }
        pythons?.delete(name);
        await store.delete(key);
        const { sandbox, projectRoot } = runtime;
        const owner = projectRoot === undefined ? key : { ...key, project_root: projectRoot };
        await (profile.sandbox ?? sandbox).remove?.(owner);
      },
    },
    approvals: {
      list: async (filter) => (await runtime.approvals?.list({ ...filter, ...own })) ?? [],
      async decide(approvalId, decision) {
        if (runtime.approvals === undefined) throw notWaiting();
        await runtime.approvals.decide(approvalId, decision, own);
      },
    },
    subscribe: (listener) => events.subscribe(listener),
    get busy() {
      return lives.busy;
    },
    async close({ drain = false } = {}) {
      if (drain) await Promise.all(lives.all().map((live) => live.queue.drained()));
      closed = true;
      await Promise.all(lives.all().map((live) => live.close()));
      lives.clear();
    },
  };
}

function checkedName(name: string): string {
  const fault = typeof name === "string" ? faultOfName(name) : "must be a text";
  if (fault === undefined) return name;
  throw new KitError({ code: "invalid_request", message: `A session's name ${fault}.` });
}

/** The sessions of an agent that this process has open. Of those that rest, the oldest are let go. */
class LiveSessions {
  readonly #maxIdle: number;
  /** So many may rest before some are let go: a map whose first is taken away each time is slow to find the next. */
  readonly #letGoBeyond: number;
  readonly #lives = new Map<string, LiveSession>();
  // In the order of their last use.
  readonly #resting = new Map<string, LiveSession>();

  constructor(maxIdle: number) {
    this.#maxIdle = maxIdle;
    this.#letGoBeyond = maxIdle + Math.floor(maxIdle / 32);
  }

  get(name: string): LiveSession | undefined {
    return this.#lives.get(name);
  }

  /** A session that nobody has used yet rests: it may have been opened to be looked at. */
  add(name: string, live: LiveSession): LiveSession {
    this.#lives.set(name, live);
    this.rest(live);
    return live;
  }

  wake(live: LiveSession): void {
    const name = live.key.session;
    this.#resting.delete(name);
    // Where few may rest, it was let go as soon as it was there.
    if (!this.#lives.has(name)) this.#lives.set(name, live);
  }

  rest(live: LiveSession): void {
    const name = live.key.session;
    // It may have been let go while it was still at work.
    if (this.#lives.get(name) !== live) return;
    this.#resting.delete(name);
    this.#resting.set(name, live);
    if (this.#resting.size > this.#letGoBeyond) this.#letGo();
  }

  drop(live: LiveSession): void {
    const name = live.key.session;
    if (this.#lives.get(name) !== live) return;
    this.#lives.delete(name);
    this.#resting.delete(name);
  }

  all(): readonly LiveSession[] {
    return [...this.#lives.values()];
  }

  /** Whether an operation runs or waits in any of them. */
  get busy(): boolean {
    for (const live of this.#lives.values()) if (live.queue.busy) return true;
    return false;
  }

  clear(): void {
    this.#lives.clear();
    this.#resting.clear();
  }

  #letGo(): void {
    for (const [name, live] of this.#resting) {
      if (this.#resting.size <= this.#maxIdle) return;
      this.#resting.delete(name);
      if (live.evict()) this.#lives.delete(name);
    }
  }
}
