import { setImmediate } from "node:timers/promises";
import { getSystemErrorMap } from "node:util";
import { KitError } from "../../base/kit-error.ts";
import { agentStream, type Engine } from "../../engine/contract.ts";
import type { SessionKey, TouchedSession, TouchedSessionPage } from "../../protocol/session-entry.ts";
import type { PruneFailure } from "../../protocol/session-page.ts";
import type { HostedApp } from "../runtime/hosted-app.ts";

type InstanceTarget = Omit<SessionKey, "session">;

export interface PruneOptions {
  /** Sessions that nobody has touched for so long go. */
  readonly olderThanMs: number;
  /** Says what would go, and removes nothing. */
  readonly dryRun?: boolean | undefined;
  /** Sessions that are looked at, from 1; default 200. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** Sessions for which it says no are passed over. */
  readonly permit?: (session: TouchedSession) => Promise<boolean>;
  /** Told what could not be removed; the others are, all the same. */
  readonly onError?: (error: unknown) => void;
}

/** What one look has removed. */
export interface Pruned {
  readonly removed: readonly TouchedSession[];
  /** Old enough, but at work, waited for or listened to. */
  readonly in_use: number;
  /** Those that could not be removed, or not as a whole. */
  readonly failed: readonly PruneFailure[];
  readonly next_cursor?: string | undefined;
}

/** The sessions that there are, and those that nobody has touched for long. */
export interface Retention {
  /** In the order in which they were made. */
  list(page: { readonly limit: number; readonly cursor?: string | undefined }): Promise<TouchedSessionPage>;
  /**
   * Removes old sessions with the tasks below them and their workspaces, page by page; an instance without a session is then
   * as if it had never been. What is touched meanwhile stays.
   */
  prune(options: PruneOptions): Promise<Pruned>;
  /** Keeps the sessions of an instance for as long as somebody is connected to it; the function returned ends that. */
  attach(target: InstanceTarget): () => void;
}

export interface RetentionOptions {
  readonly app: Pick<HostedApp, "listSessions" | "forget" | "approvals">;
  readonly engine: Pick<Engine, "mayForget" | "events">;
  /** Whether an input of the instance is worked on here. */
  readonly isAtWork: (target: InstanceTarget) => boolean;
}

export function createRetention({ app, engine, isAtWork }: RetentionOptions): Retention {
  const attached = new Map<string, number>();

  const isFree = async (session: TouchedSession): Promise<boolean> => {
    const { agent, instance_id } = session;
    if (attached.has(nameOf(session)) || isAtWork(session)) return false;
    if (((await app.approvals?.list({ agent, instance_id })) ?? []).length > 0) return false;
    return await engine.mayForget(session, Date.parse(session.touched_at));
  };
  const remove = async (session: TouchedSession, before: number): Promise<boolean> => {
    const { agent, instance_id, session: name } = session;
    return await app.forget({ agent, instance_id, session: name }, before, () =>
      engine.events.delete(agentStream(agent, instance_id)),
    );
  };

  return {
    list: (page) => app.listSessions(page),
    async prune({ olderThanMs, dryRun = false, limit = 200, cursor, permit, onError = () => undefined }) {
      const before = Date.now() - olderThanMs;
      const page = await app.listSessions({ limit, ...(cursor === undefined ? {} : { cursor }) });
      const removed: TouchedSession[] = [];
      const failed: PruneFailure[] = [];
      let in_use = 0;
      for (const session of page.sessions) {
        // What is below another one goes with it.
        if (session.parent !== undefined || Date.parse(session.touched_at) >= before) continue;
        if (permit !== undefined && !(await permit(session))) continue;
        try {
          if ((await isFree(session)) && (dryRun || (await remove(session, before)))) removed.push(session);
          else in_use += 1;
        } catch (error) {
          failed.push(toFailure(session, error));
          onError(error);
        }
        // Requests have their turn in between.
        await setImmediate();
      }
      const { next_cursor } = page;
      return { removed, in_use, failed, ...(next_cursor === undefined ? {} : { next_cursor }) };
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
  };
}

/** Why it stays, without the paths of this machine. */
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

const hourMs = 3_600_000;

/**
 * Prunes once an hour, first an hour after its start, so that a clock which is wrong then can be put right. Says in one line
 * what went. The function returned ends it, and waits for what is under way.
 */
export function pruneHourly(
  retention: Retention,
  options: Pick<PruneOptions, "olderThanMs"> & {
    readonly onRemoved: (text: string) => void;
    readonly onError: (error: unknown) => void;
    /** For tests. */
    readonly everyMs?: number;
  },
): () => Promise<void> {
  const { olderThanMs, onRemoved, onError, everyMs = hourMs } = options;
  let isOver = false;
  let pass: Promise<void> | undefined;
  const prune = async (): Promise<void> => {
    let sessions = 0;
    const instances = new Set<string>();
    let cursor: string | undefined;
    do {
      const from = cursor === undefined ? {} : { cursor };
      const pruned = await retention.prune({ olderThanMs, onError, ...from });
      sessions += pruned.removed.length;
      for (const session of pruned.removed) instances.add(nameOf(session));
      cursor = pruned.next_cursor;
    } while (cursor !== undefined && !isOver);
    if (sessions > 0) onRemoved(removedText({ sessions, instances: instances.size, olderThanMs }));
  };
  const timer = setInterval(() => {
    pass ??= prune()
      .catch(onError)
      .finally(() => {
        pass = undefined;
      });
  }, everyMs).unref();
  return async () => {
    isOver = true;
    clearInterval(timer);
    await pass;
  };
}

function removedText(count: {
  readonly sessions: number;
  readonly instances: number;
  readonly olderThanMs: number;
}): string {
  const { sessions, instances, olderThanMs } = count;
  const some = (number: number, noun: string): string =>
    `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  return `Removed ${some(sessions, "session")} of ${some(instances, "instance")}, untouched for ${some(olderThanMs / 86_400_000, "day")}.`;
}

function nameOf({ agent, instance_id }: InstanceTarget): string {
  return JSON.stringify([agent, instance_id]);
}
