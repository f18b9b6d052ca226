import { setImmediate } from "node:timers/promises";
import { getSystemErrorMap } from "node:util";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import type { SessionKey, TouchedSession, TouchedSessionPage } from "../../protocol/session-entry.ts";
import { agentStream, instanceName } from "../../protocol/session-name.ts";
import type { PruneFailure } from "../../protocol/session-page.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionListing } from "../../stores/contract.ts";
import type { FullStore } from "../../stores/full-store.ts";
import { createListingFilter } from "../../stores/session-summary.ts";
import type { NodeCalls } from "../cluster/node-calls.ts";
import type { Owners } from "../cluster/owners.ts";
import type { Instances } from "../runtime/instances.ts";

type InstanceTarget = Omit<SessionKey, "session">;

export interface PruneOptions {
  /** Sessions that have not been used for so long are removed. */
  readonly olderThanMs: number;
  /** Reports the sessions, and removes nothing. */
  readonly dryRun?: boolean | undefined;
  /** Sessions to check, from 1; default 200. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** Returns whether a session can be removed. Default: every session. */
  readonly permit?: (session: TouchedSession) => Promise<boolean>;
  /** Whether to remove sessions of other nodes, too. Default false: each node removes its own. */
  readonly everywhere?: boolean | undefined;
  /** Receives the error of each session that could not be removed; the other sessions are removed. */
  readonly onError?: (error: unknown) => void;
}

/** The result of one pass. */
export interface Pruned {
  readonly removed: readonly TouchedSession[];
  /** Old enough, but running, waiting, or with a connected client. */
  readonly in_use: number;
  /** Sessions that could not be removed, or not as a whole. */
  readonly failed: readonly PruneFailure[];
  readonly next_cursor?: string | undefined;
}

/** Lists all sessions of the store, and removes old ones. */
export interface Retention {
  /** Lists sessions. Throws `unavailable` if the project's own store cannot list. */
  list(page: SessionListing): Promise<TouchedSessionPage>;
  /**
   * Removes a page of old sessions with their tasks and workspaces, and the events of an instance that has no session
   * left. A session that is used in the meantime stays.
   */
  prune(options: PruneOptions): Promise<Pruned>;
  /** Keeps the sessions of an instance while a client is connected to it. Returns a function to call on disconnect. */
  attach(target: InstanceTarget): () => void;
}

export interface RetentionOptions {
  readonly root: string;
  readonly store: FullStore;
  readonly instances: Pick<Instances, "whileAtRest">;
  readonly approvals: Pick<Approvals, "list">;
  readonly engine: Pick<Engine, "mayForget" | "events">;
  /** Returns the sandbox of an instance. */
  readonly sandboxOf: (key: SessionKey) => Promise<SandboxFactory>;
  /** Whether an input of the instance runs in this process. */
  readonly isAtWork: (target: InstanceTarget) => boolean;
  readonly owners: Pick<Owners, "isAttached" | "isOwn" | "ask">;
}

/** The calls that other nodes send to this one. */
export interface RetentionAnswers {
  readonly answers: Pick<NodeCalls, "attached" | "forget">;
}

export function createRetention(options: RetentionOptions): Retention & RetentionAnswers {
  const { root, store, instances, approvals, engine, sandboxOf, isAtWork, owners } = options;
  const attached = new Map<string, number>();

  const isFree = async (session: TouchedSession): Promise<boolean> => {
    const { agent, instance_id } = session;
    if (attached.has(instanceName(session)) || isAtWork(session)) return false;
    if ((await approvals.list({ agent, instance_id })).length > 0) return false;
    if (!(await engine.mayForget(session, Date.parse(session.touched_at)))) return false;
    return !(await owners.isAttached({ agent, instance_id }));
  };
  const listAll: Retention["list"] = async (page) => {
    const { sessions, ...rest } = await store.listAll(page);
    // The project's own store can ignore the filter; then its total is not that of the filter either.
    const matching = sessions.filter(createListingFilter(page));
    return { sessions: matching, ...rest };
  };
  const remove = async (
    { agent, instance_id, session }: TouchedSession,
    before: number,
  ): Promise<boolean> => {
    const key = { agent, instance_id, session };
    const sandbox = await sandboxOf(key);
    const removed = await instances.whileAtRest(key, async () => {
      if (!(await store.deleteUntouched(key, before))) return false;
      try {
        await sandbox.remove?.({ ...key, project_root: root });
      } catch (cause) {
        throw workspaceLeft(key, cause);
      }
      // Delete the events here, before the instance can start again.
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
          const request = { session, before, dryRun };
          const isOther = everywhere === true && !(await owners.isOwn(session));
          if (await (isOther ? owners.ask("forget", request) : forget(request))) removed.push(session);
          else in_use += 1;
        } catch (error) {
          failed.push(toFailure(session, error));
          onError?.(error);
        }
        // Let requests run between two removals.
        await setImmediate();
      }
      const { next_cursor } = page;
      return { removed, in_use, failed, next_cursor };
    },
    attach(target) {
      const name = instanceName(target);
      attached.set(name, (attached.get(name) ?? 0) + 1);
      return () => {
        const readerCount = (attached.get(name) ?? 0) - 1;
        if (readerCount > 0) attached.set(name, readerCount);
        else attached.delete(name);
      };
    },
    answers: { attached: async (target) => attached.has(instanceName(target)), forget },
  };
}

function workspaceLeft({ agent, instance_id }: SessionKey, cause: unknown): KitError {
  const code = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : "";
  return new KitError({
    code: "internal_error",
    message: `The history of ${agent}/${instance_id} was removed, but its workspace could not be removed${code}.`,
    hint: "Check the permissions of its folder below .kit/sandboxes, and remove it yourself.",
    cause,
  });
}

/** Returns why a session could not be removed, without paths of this machine. */
function toFailure({ agent, instance_id, session }: TouchedSession, error: unknown): PruneFailure {
  if (error instanceof KitError) {
    const { code: type, message } = error;
    return { agent, instance_id, session, error: { type, message } };
  }
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const reason = getSystemErrorMap()
    .values()
    .find(([name]) => name === code)?.[1];
  const message = `It could not be removed: ${reason ?? "see the log of the server"}.`;
  return { agent, instance_id, session, error: { type: "internal_error", message } };
}
