import type { Engine } from "../../engine/contract.ts";
import { instanceName } from "../../protocol/session-name.ts";
import type { FullStore } from "../../stores/full-store.ts";
import type { PruneOptions, Retention } from "./retention.ts";
import type { Service } from "./service.ts";

const hourMs = 3_600_000;
/** How long parts of prompts are stored after their last use. */
const textsMs = 30 * 24 * hourMs;

/** How often the service checks for problems, such as missing files, in ms. */
const problemMs = 1_000;

export interface HousekeepingOptions {
  /** Receives errors of listeners and schedules, and the reasons of failed runs and dispatches. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Sessions that have not been used for so long are removed, once an hour; default: none are removed. */
  readonly pruneOlderThanMs?: number | undefined;
  /** Receives one line about removed sessions. */
  readonly onRemoved?: ((text: string) => void) | undefined;
  /** Receives the text of a reported problem that no longer exists. */
  readonly onResolved?: ((text: string) => void) | undefined;
}

/** Reports each problem once, and when it is resolved, and removes old sessions. Returns a function that stops both. */
export function startHousekeeping(
  {
    problem,
    warning,
    sessions,
    store,
  }: Pick<Service, "problem" | "sessions"> &
    Pick<Engine, "warning"> & { readonly store: Pick<FullStore, "pruneTexts"> },
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
      const current = find();
      if (current === undefined) {
        for (const message of reported) onResolved(message);
        reported.clear();
      } else if (!reported.has(current.message)) {
        reported.add(current.message);
        onError(current);
      }
    };
  });
  const watch = setInterval(() => {
    for (const watch of watches) watch();
  }, problemMs).unref();
  const texts = setInterval(() => {
    Promise.resolve(store.pruneTexts(Date.now() - textsMs)).catch(onError);
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
 * Prunes once an hour, for the first time an hour after the start, so that a wrong clock can be corrected before. Passes
 * one line about the removed sessions to `onRemoved`. Returns a function that stops pruning and waits for a running pass.
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
      for (const session of pruned.removed) instances.add(instanceName(session));
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
