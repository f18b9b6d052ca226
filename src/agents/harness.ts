import { KitError } from "../base/kit-error.ts";
import { faultOfName } from "../base/name-fault.ts";
import type { ApprovalDecision, ApprovalRequest } from "../protocol/approval.ts";
import type { SessionInfo, SessionKey } from "../protocol/session-entry.ts";
import type { AgentProfile } from "./agent-profile.ts";
import type { AgentRuntime, Harness } from "./agent-runtime.ts";
import { notWaiting } from "./approvals/create-approvals.ts";
import { createEventHub, type EventListener } from "./events/emitter.ts";
import { PythonSessions } from "./operations/python.ts";
import { startTask } from "./operations/task.ts";
import { createLiveSession } from "./session/live-session.ts";
import { LiveSessions } from "./session/live-sessions.ts";
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
