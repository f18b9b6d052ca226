/**
 * Where a module of kit lies that runs as a process or thread of its own, or is an entry of the package, by its
 * path below the sources without extension. The sources run as they are; `dist/` holds these modules under the
 * same paths and the rest in `dist/chunks/`, so a path relative to the calling module would not hold in both.
 *
 * For example:
 * new Worker(ownModule("project/store/writer-thread"));
 */
export function ownModule(path: string): URL {
  // kit has no folder named src or dist inside of either: the last one is the top of its code.
  const top = import.meta.url.replace(/^(.*\/(?:src|dist)\/).*$/, "$1");
  return new URL(`${path}${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, top);
}

/**
 * The modules that are started by their path: kit's command line, its own processes and threads, and the functions of platforms. Every bundle of kit
 * has them as entries, at these paths.
 */
export const startedModules = [
  "cli/main",
  "python/child/main",
  "python/child/watchdog",
  "project/store/writer-thread",
  "server/functions/netlify",
  "server/functions/vercel",
] as const;

/** Files that these modules read from beside them. A bundle holds it at the same path. */
export const filesOfModules = ["python/child/prelude.py"] as const;
