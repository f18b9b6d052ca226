import { openProject } from "../../project/open-project.ts";
import type { Project } from "../../project/project.ts";
import { loadConfig } from "../config/load-config.ts";

/** When unused indexes of repositories are closed. */
export interface IdleIndexes {
  /** How long after the last question; default 60,000. */
  readonly idleMs?: number;
  /** How many may stay open meanwhile, those asked last; default 16. */
  readonly maxIdle?: number;
}

/** The indexes of the repositories that agents work in, one for each root, opened at the first question. */
export interface Repositories {
  /** Asks the index of a repository, as its files are now. */
  use<Value>(root: string, work: (project: Project) => Value | Promise<Value>): Promise<Value>;
  close(): Promise<void>;
}

interface Entry {
  readonly project: Promise<Project>;
  /** The look at its files that is under way. */
  looking: Promise<unknown> | undefined;
  lookAgainAt: number;
  /** How many ask now. */
  users: number;
  usedAt: number;
}

/** The share of its time that the project's own index spends at most on looking whether files have changed. */
const lookShare = 0.1;

/** `own` is its opener's to close, and there all the time. */
export function createRepositories(own: Project, limits: IdleIndexes = {}): Repositories {
  const { idleMs = 60_000, maxIdle = 16 } = limits;
  // In the order of last use.
  const entries = new Map<string, Entry>();
  const closings = new Set<Promise<void>>();
  let sweeper: NodeJS.Timeout | undefined;

  const open = (root: string): Entry => {
    const entry = toEntry(openElsewhere(root));
    entries.set(root, entry);
    // The next one who asks tries again.
    entry.project.catch(() => entries.delete(root));
    return entry;
  };
  const end = (root: string, { project }: Entry): void => {
    entries.delete(root);
    const closing = project
      .then((opened) => opened.close())
      .catch(() => undefined)
      .finally(() => closings.delete(closing));
    closings.add(closing);
  };
  const sweep = (): void => {
    sweeper = undefined;
    const usedBefore = performance.now() - idleMs;
    const idle = [...entries].filter(([, { users }]) => users === 0);
    const excess = idle.length - maxIdle;
    for (const [index, [root, entry]] of idle.entries()) {
      if (index < excess || entry.usedAt <= usedBefore) end(root, entry);
    }
    if (entries.size > 0) sweeper = setTimeout(sweep, idleMs / 2).unref();
  };
  const ownEntry = toEntry(Promise.resolve(own));

  return {
    async use(root, work) {
      const entry = root === own.root ? ownEntry : (entries.get(root) ?? open(root));
      entry.users += 1;
      try {
        const project = await entry.project;
        await (entry === ownEntry ? lookNowAndThen(entry, project) : look(entry, project));
        return await work(project);
      } finally {
        entry.users -= 1;
        entry.usedAt = performance.now();
        if (entries.get(root) === entry) {
          entries.delete(root);
          entries.set(root, entry);
          if (entries.size > maxIdle) sweep();
          else sweeper ??= setTimeout(sweep, idleMs / 2).unref();
        }
      }
    },
    async close() {
      clearTimeout(sweeper);
      for (const [root, entry] of [...entries]) end(root, entry);
      await Promise.all(closings);
    },
  };
}

function toEntry(project: Promise<Project>): Entry {
  return { project, looking: undefined, lookAgainAt: 0, users: 0, usedAt: performance.now() };
}

/**
 * Brings an index up to date. What was changed before the question is seen: a look that began earlier is not
 * enough; one that begins after it serves all who have asked by then.
 */
async function look(entry: Entry, project: Project): Promise<void> {
  if (entry.looking !== undefined) await entry.looking.catch(() => undefined);
  entry.looking ??= project.refresh().finally(() => {
    entry.looking = undefined;
  });
  await entry.looking;
}

/** The project itself is watched by the server that serves it: others look now and then. */
async function lookNowAndThen(entry: Entry, project: Project): Promise<void> {
  // A server answers before its project is indexed; what a question depends on is waited for by who asks it.
  if (project.indexing() !== undefined) return;
  const began = performance.now();
  if (began < entry.lookAgainAt) return;
  entry.lookAgainAt = Number.POSITIVE_INFINITY;
  try {
    await look(entry, project);
  } finally {
    const now = performance.now();
    entry.lookAgainAt = now + (now - began) / lookShare;
  }
}

/**
 * Opens a repository that is not the project's own: nothing is written there, and no code of it is run. Of its
 * configuration, `kit.toml` is read; the index goes when it is closed.
 */
async function openElsewhere(root: string): Promise<Project> {
  const { config } = await loadConfig({ cwd: root, file: "kit.toml", environment: {} }).catch(() => ({
    config: {},
  }));
  return await openProject({ root, config, indexFile: ":memory:", readOnly: true });
}
