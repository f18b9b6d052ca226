import { type BigIntStats, fstatSync, lstatSync, readlinkSync } from "node:fs";
import { relative } from "node:path";
import { attempt } from "../../../base/attempt.ts";
import { heldPath } from "../../../files/walk.ts";

/** The paths of a workspace that one command must not change or read, with the descriptors of what was there when it started. */
export type HeldPaths = ReadonlyMap<string, number>;

export interface ReplacedPaths {
  /** Fires when kit has seen that another program replaced a path. */
  readonly signal: AbortSignal;
  /** Call it when the command has ended, and before the descriptors are closed. Returns sentences for its caller. */
  close(): readonly string[];
}

const pollMs = 100;
/** With hundreds of paths, kit looks less often. */
const msPerPath = 0.5;
const maxNamed = 20;

/**
 * Looks for paths that other programs replace while a command runs. Linux removes a mount from a path, in all namespaces, when another
 * process removes what it covers or renames something else over it. The command can then change or read what is there now.
 *
 * kit looks at the paths in intervals: events of the system (inotify) would let a command keep kit busy that makes files in these folders.
 */
export function watchReplaced(root: string, paths: HeldPaths): ReplacedPaths {
  const controller = new AbortController();
  const identities = new Map([...paths].map(([path, held]) => [path, identityOf(fstatOf(held))]));
  const replaced = new Set<string>();
  const comparePaths = (): void => {
    for (const [path, held] of paths) {
      const identity = identityOf(attempt(() => lstatSync(path, { bigint: true, throwIfNoEntry: false })));
      if (identity === undefined || identity === identities.get(path)) continue;
      if (isElsewhere(path, { held, identity })) replaced.add(path);
      else identities.set(path, identity);
    }
  };
  const timer = setInterval(
    () => {
      comparePaths();
      if (replaced.size === 0) return;
      clearInterval(timer);
      controller.abort();
    },
    Math.max(pollMs, paths.size * msPerPath),
  ).unref();
  return {
    signal: controller.signal,
    close() {
      clearInterval(timer);
      comparePaths();
      if (replaced.size === 0) return [];
      const what = controller.signal.aborted
        ? "kit stopped the command, because another program replaced these paths while it ran"
        : "Another program replaced these paths while the command ran";
      return [
        `${what}, so that the command could change or read what is there now. A person has to look at them before any program uses them: ${listed(root, [...replaced])}.`,
      ];
    },
  };
}

/** Whether what was at a path is there no more. Some file systems change the numbers of files, so the system's path counts as well. */
function isElsewhere(
  path: string,
  { held, identity }: { readonly held: number; readonly identity: string },
): boolean {
  const own = identityOf(fstatOf(held));
  return own !== undefined && own !== identity && readlinkSync(heldPath(held)) !== path;
}

/** The kernel gives the number of a file to no other one while its descriptor is open. */
const identityOf = (stats: BigIntStats | undefined): string | undefined =>
  stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;

function fstatOf(descriptor: number): BigIntStats | undefined {
  // A file of another machine, which has removed it.
  return attempt(() => fstatSync(descriptor, { bigint: true }));
}

function listed(root: string, paths: readonly string[]): string {
  const rest = paths.length - maxNamed;
  const relativePaths = paths.slice(0, maxNamed).map((path) => relative(root, path));
  return [...relativePaths, ...(rest > 0 ? [`and ${rest} others`] : [])].join(", ");
}
