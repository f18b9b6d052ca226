/** The version of this package; a test keeps it equal to `package.json`. */
export const version = "0.3.0";

/**
 * Returns the address of a module of kit that runs as its own process or thread, or is an entry of the package.
 * `path` is relative to `src/`, without extension. `dist/` holds these modules under the same paths and all others in
 * `dist/chunks/`, so a path relative to the calling module would differ between the two.
 *
 * For example:
 * new Worker(ownModule("project/store/writer-thread"));
 */
export function ownModule(path: string): URL {
  return new URL(`${path}${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, ownFolder());
}

/** Returns the URL of `src/` or `dist/`; in a bundle, of the folder of this module. */
export function ownFolder(): string {
  // No folder inside `src/` or `dist/` has one of these names, so the last one in the path is the top folder.
  return import.meta.url.replace(/^(.*\/(?:src|dist)\/).*$/, "$1").replace(/[^/]*$/, "");
}

/**
 * The modules that are started by their path: the command line, kit's processes and threads, and the functions of
 * platforms. Every bundle of kit has them as entries, at these paths.
 */
export const startedModules = [
  "cli/main",
  "engine/postgres/beat-thread",
  "python/child/main",
  "python/child/watchdog",
  "project/store/writer-thread",
  "server/functions/netlify",
  "server/functions/vercel",
] as const;

/** Files that these modules read. A bundle holds each at the same path. */
export const filesOfModules = ["python/child/prelude.py"] as const;
