import type { Engine } from "../../engine/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { PruneOptions, Retention } from "./retention.ts";
import type { Service } from "./service.ts";

const hourMs = 3_600_000;
/** How long parts of prompts are kept after their last use. */
const textsMs = 30 * 24 * hourMs;

/** How often the service checks whether its files are where they were, in ms. */
const problemMs = 1_000;

export interface HousekeepingOptions {
  /** Receives what fails beside the work: a listener that throws, a bad schedule; and why a run or a dispatch failed. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Sessions untouched for so long are removed, once an hour; default: none are. */
  readonly pruneOlderThanMs?: number | undefined;
  /** Receives one line about removed sessions. */
  readonly onRemoved?: ((text: string) => void) | undefined;
  /** Receives the text of a problem that `onError` was told of, and that is over. */
  readonly onResolved?: ((text: string) => void) | undefined;
}

/** Reports each problem once, and its end, and removes old sessions. The function returned ends both. */
export function startHousekeeping(
  {
    problem,
    warning,
    sessions,
    store,
  }: Pick<Service, "problem" | "sessions"> & Pick<Engine, "warning"> & { readonly store: SessionStore },
  {
    onError = () => undefined,
    onResolved = () => undefined,
    onRemoved = () => undefined,
    pruneOlderThanMs: olderThanMs,
  }: HousekeepingOptions,
): () => Promise<void> {
  const watches = [problem, () => warning?.()].map((find) => {
    const reported = new Set<string>();
    return () => {
      const found = find();
      if (found === undefined) {
        for (const message of reported) onResolved(message);
        reported.clear();
      } else if (!reported.has(found.message)) {
        reported.add(found.message);
        onError(found);
      }
    };
  });
  const watch = setInterval(() => {
    for (const watch of watches) watch();
  }, problemMs).unref();
  const texts = setInterval(() => {
    Promise.resolve(store.pruneTexts?.(Date.now() - textsMs)).catch(onError);
  }, hourMs).unref();
  const endPruning =
    olderThanMs === undefined ? undefined : pruneHourly(sessions, { olderThanMs, onRemoved, onError });
  return async () => {
    clearInterval(watch);
    clearInterval(texts);
    await endPruning?.();
  };
}

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
      for (const { agent, instance_id } of pruned.removed)
        instances.add(JSON.stringify([agent, instance_id]));
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
