import { setImmediate } from "node:timers/promises";
import { getSystemErrorMap } from "node:util";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import { KitError } from "../../base/kit-error.ts";
import { agentStream, type Engine } from "../../engine/contract.ts";
import type { SessionKey, TouchedSession, TouchedSessionPage } from "../../protocol/session-entry.ts";
import type { PruneFailure } from "../../protocol/session-page.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionListing, SessionStore } from "../../stores/contract.ts";
import type { NodeCalls } from "../cluster/node-calls.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import type { Instances } from "../runtime/instances.ts";

type InstanceTarget = Omit<SessionKey, "session">;

export interface PruneOptions {
  /** Sessions untouched for so long are removed. */
  readonly olderThanMs: number;
  /** Says what would go, and removes nothing. */
  readonly dryRun?: boolean | undefined;
  /** Sessions that are looked at, from 1; default 200. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** Sessions for which it says no are passed over. */
  readonly permit?: (session: TouchedSession) => Promise<boolean>;
  /** Whether sessions of other machines of a cluster are removed, too: each removes its own by itself. Default false. */
  readonly everywhere?: boolean | undefined;
  /** Told what could not be removed; the others are, all the same. */
  readonly onError?: (error: unknown) => void;
}

/** The result of one pass. */
export interface Pruned {
  readonly removed: readonly TouchedSession[];
  /** Old enough, but at work, waited for or listened to. */
  readonly in_use: number;
  /** Sessions that could not be removed, or not as a whole. */
  readonly failed: readonly PruneFailure[];
  readonly next_cursor?: string | undefined;
}

/** All sessions of the store, and the removal of old ones. */
export interface Retention {
  /** In the order in which they were made. Throws `unavailable` for a store of the project's own that cannot list. */
  list(page: SessionListing): Promise<TouchedSessionPage>;
  /**
   * Removes old sessions with the tasks below them and their workspaces, page by page; an instance without a session is then
   * as if it had never been. What is touched meanwhile stays.
   */
  prune(options: PruneOptions): Promise<Pruned>;
  /** Keeps the sessions of an instance while a client is connected to it; the function returned ends that. */
  attach(target: InstanceTarget): () => void;
}

export interface RetentionOptions {
  readonly root: string;
  readonly store: SessionStore;
  readonly instances: Pick<Instances, "whileAtRest">;
  readonly approvals: Pick<Approvals, "list">;
  readonly engine: Pick<Engine, "mayForget" | "events">;
  /** Where an instance works. */
  readonly sandboxOf: (key: SessionKey) => Promise<SandboxFactory>;
  /** Whether an input of the instance is worked on here. */
  readonly isAtWork: (target: InstanceTarget) => boolean;
  /** The other nodes of a cluster. */
  readonly nodes?: ServiceCluster | undefined;
}

/** Other nodes ask this one for these. */
interface RetentionAnswers {
  readonly answers: Pick<NodeCalls, "attached" | "forget">;
}

export function createRetention(options: RetentionOptions): Retention & RetentionAnswers {
  const { root, store, instances, approvals, engine, sandboxOf, isAtWork, nodes } = options;
  const attached = new Map<string, number>();

  const isFree = async (session: TouchedSession): Promise<boolean> => {
    const { agent, instance_id } = session;
    if (attached.has(nameOf(session)) || isAtWork(session)) return false;
    if ((await approvals.list({ agent, instance_id })).length > 0) return false;
    if (!(await engine.mayForget(session, Date.parse(session.touched_at)))) return false;
    return (await nodes?.isAttached({ agent, instance_id })) !== true;
  };
  const listAll: Retention["list"] = async (page) => {
    if (store.listAll === undefined) throw cannotList();
    const { sessions, ...rest } = await store.listAll(page);
    const { agent, instance_id } = page;
    // A store of the project's own may know no filter.
    const found = sessions.filter(
      (session) =>
        (agent === undefined || session.agent === agent) &&
        (instance_id === undefined || session.instance_id === instance_id),
    );
    return { sessions: found, ...rest };
  };
  const remove = async (
    { agent, instance_id, session }: TouchedSession,
    before: number,
  ): Promise<boolean> => {
    const key = { agent, instance_id, session };
    const sandbox = await sandboxOf(key);
    const removed = await instances.whileAtRest(agent, instance_id, async () => {
      if ((await store.deleteUntouched?.(key, before)) !== true) return false;
      try {
        await sandbox.remove?.({ ...key, project_root: root });
      } catch (cause) {
        throw workspaceLeft(key, cause);
      }
      // Before the instance may come to life again.
      const isLast = (await store.list({ agent, instance_id })).length === 0;
      if (isLast) await engine.events.delete(agentStream(agent, instance_id));
      return true;
    });
    return removed === true;
  };

  const forget: NodeCalls["forget"] = async ({ session, before, dryRun }) =>
    (await isFree(session)) && (dryRun || (await remove(session, before)));

  return {
    list: listAll,
    async prune({ olderThanMs, dryRun = false, limit = 200, cursor, everywhere, permit, onError }) {
      const before = Date.now() - olderThanMs;
      const page = await listAll({ limit, cursor });
      const removed: TouchedSession[] = [];
      const failed: PruneFailure[] = [];
      let in_use = 0;
      for (const session of page.sessions) {
        // A task's session is removed with its parent.
        if (session.parent !== undefined || Date.parse(session.touched_at) >= before) continue;
        if (permit !== undefined && !(await permit(session))) continue;
        try {
          const asked = { session, before, dryRun };
          const isOther = everywhere === true && nodes !== undefined && !(await nodes.isOwn(session));
          if (await (isOther ? nodes.ask("forget", asked) : forget(asked))) removed.push(session);
          else in_use += 1;
        } catch (error) {
          failed.push(toFailure(session, error));
          onError?.(error);
        }
        // Requests have their turn in between.
        await setImmediate();
      }
      const { next_cursor } = page;
      return { removed, in_use, failed, next_cursor };
    },
    attach(target) {
      const name = nameOf(target);
      attached.set(name, (attached.get(name) ?? 0) + 1);
      return () => {
        const left = (attached.get(name) ?? 0) - 1;
        if (left > 0) attached.set(name, left);
        else attached.delete(name);
      };
    },
    answers: { attached: async (target) => attached.has(nameOf(target)), forget },
  };
}

function workspaceLeft({ agent, instance_id }: SessionKey, cause: unknown): KitError {
  const code = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : "";
  return new KitError({
    code: "internal_error",
    message: `The history of ${agent}/${instance_id} is removed, and its workspace could not be${code}.`,
    hint: "Look at the rights of its folder below .kit/sandboxes, and remove it by hand.",
    cause,
  });
}

function cannotList(): KitError {
  return new KitError({
    code: "unavailable",
    message: "The session store of this project cannot list its sessions.",
    hint: "A store with `listAll` and `deleteUntouched` can: see SessionStore.",
  });
}

/** Why a session stays, without the paths of this machine. */
function toFailure({ agent, instance_id, session }: TouchedSession, error: unknown): PruneFailure {
  if (error instanceof KitError) {
    const { code: type, message } = error;
    return { agent, instance_id, session, error: { type, message } };
  }
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const reason = getSystemErrorMap()
    .values()
    .find(([name]) => name === code)?.[1];
  const message = `It could not be removed: ${reason ?? "the log of the server says more"}.`;
  return { agent, instance_id, session, error: { type: "internal_error", message } };
}

function nameOf({ agent, instance_id }: InstanceTarget): string {
  return JSON.stringify([agent, instance_id]);
}
