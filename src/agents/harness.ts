import { KitError } from "../base/kit-error.ts";
import type { SessionInfo, SessionKey } from "../protocol/session-entry.ts";
import type { AgentProfile } from "./agent-profile.ts";
import type { AgentRuntime, Harness, LiveSession } from "./agent-runtime.ts";
import { createEventHub, type EventListener } from "./events/emitter.ts";
import { startTask } from "./operations/task.ts";
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
  /** The workflow run that brought it along; stands on every event of its sessions. */
  readonly run_id?: string;
}

const sessionName = /^[^\p{Cc}/\\]{1,128}$/u;

/** Brings an agent to life. Nothing is opened before a session needs it. */
export function createHarness(identity: AgentIdentity, profile: AgentProfile, runtime: AgentRuntime): Agent {
  const lives = new Map<string, LiveSession>();
  const events = createEventHub({
    clock: runtime.clock,
    ...(runtime.onListenerError && { onListenerError: runtime.onListenerError }),
  });
  for (const observer of runtime.observers) events.subscribe(observer);
  if (profile.onEvent !== undefined) events.subscribe(profile.onEvent);
  const store = profile.store ?? runtime.store;
  const harness: Harness = {
    ...identity,
    profile,
    runtime,
    store,
    events,
    startTask: (operation, task) => startTask(harness, operation, task),
    live(name, options) {
      let live = lives.get(name);
      if (live === undefined) {
        live = createLiveSession(harness, name, options ?? {});
        lives.set(name, live);
      } else {
        // The map keeps the order of last use: what comes first was idle longest.
        lives.delete(name);
        lives.set(name, live);
      }
      if (lives.size > runtime.maxIdleSessions) evictIdle(lives, runtime.maxIdleSessions);
      return live;
    },
  };
  const open = (name: string): Session => createSession(harness, harness.live(checkedName(name)));
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
        await lives.get(name)?.close();
        lives.delete(name);
        await store.delete(key);
        await (profile.sandbox ?? runtime.sandbox).remove?.(key);
      },
    },
    subscribe: (listener) => events.subscribe(listener),
    get busy() {
      for (const live of lives.values()) if (live.queue.busy) return true;
      return false;
    },
    async close({ drain = false } = {}) {
      // The line is first come, first served: what comes out at its end has waited for all before it.
      const idle = async (live: LiveSession): Promise<void> => {
        if (live.queue.busy) await live.queue.run(async () => undefined).catch(() => undefined);
      };
      if (drain) await Promise.all([...lives.values()].map(idle));
      for (const live of lives.values()) await live.close();
      lives.clear();
    },
  };
}

function evictIdle(lives: Map<string, LiveSession>, limit: number): void {
  for (const [name, live] of lives) {
    if (lives.size <= limit) return;
    if (live.queue.busy) continue;
    live.evict();
    lives.delete(name);
  }
}

function checkedName(name: string): string {
  if (sessionName.test(name) && name !== "." && name !== "..") return name;
  throw new KitError({
    code: "invalid_request",
    message: "A session's name has 1 to 128 characters, without slashes and control characters.",
  });
}
