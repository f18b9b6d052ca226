import { realpathSync, statSync } from "node:fs";
import { basename, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { KitError } from "../base/kit-error.ts";
import { createProjectGuidelines } from "./create-project-guidelines.ts";
import { createProjectIndex } from "./create-project-index.ts";
import type { OpenProjectOptions, Project, RefreshOptions, ScanSummary } from "./project.ts";
import { createProjectSpecs } from "./project-specs.ts";
import { createSourceCatalog } from "./scan/source-catalog.ts";
import { IndexPlace } from "./store/index-place.ts";
import { watchProject } from "./watch/watch-project.ts";

/**
 * Opens a repository: its index as the last process left it, brought up to date with the disk. The caller closes it. `signal` and
 * `onProgress` belong to the first pass. Throws `invalid_request` when the root is not a folder.
 *
 * @example
 * import { openProject } from "kit";
 *
 * const project = await openProject({ root: "." });
 * const { specs, total_count } = project.specs.query({ q: "login" });
 * await project.close();
 */
export async function openProject(options: OpenProjectOptions & RefreshOptions): Promise<Project> {
  const root = rootOf(options.root);
  const place = new IndexPlace(root, options.indexFile);
  const { config = {}, readOnly = false } = options;
  const catalog = createSourceCatalog(config);
  const index = createProjectIndex({ root, place, catalog });
  const close = async (): Promise<void> => {
    await index.close();
    place.remove();
  };
  // `openProject` returns no summary, so the next `refresh` reports a rebuild.
  let rebuilt: string | undefined;
  const refresh = async (refreshOptions?: RefreshOptions): Promise<ScanSummary> => {
    const summary = await index.refresh(refreshOptions);
    const reported = rebuilt === undefined ? summary : { rebuilt, ...summary };
    rebuilt = undefined;
    return reported;
  };
  const first = index.refresh(options).then((summary) => {
    rebuilt = summary.rebuilt;
  });
  try {
    await (options.background === true ? Promise.race([first, shortWait()]) : first);
  } catch (error) {
    await close();
    throw error;
  }
  // `ready()` rejects with its failure. Other callers see that answers stay marked as incomplete.
  first.catch(() => undefined);
  return {
    root,
    name: basename(root),
    readOnly,
    specs: createProjectSpecs(index),
    guidelines: createProjectGuidelines({ index, name: basename(root), readOnly, config }),
    files: index.files,
    realPath: (path) => index.aliases().realOf(path),
    datesOf: index.datesOf,
    indexing: index.indexing,
    indexProblem: () => place.problem,
    ready: (file) => (file === undefined ? first : index.ready(file)),
    refresh,
    watch: async (onChange, onError) => await watchProject(index, { onChange, onError }),
    close,
  };
}

/** Most projects are up to date by then, so their first answers are complete. */
async function shortWait(): Promise<void> {
  await setTimeout(250, undefined, { ref: false });
}

function rootOf(given: string): string {
  try {
    const root = realpathSync(resolve(given));
    if (statSync(root).isDirectory()) return root;
  } catch (error) {
    throw noFolder(error);
  }
  throw noFolder();
}

function noFolder(cause?: unknown): KitError<"invalid_request"> {
  const message = "The project root is not a folder that can be opened.";
  return new KitError({ code: "invalid_request", message, cause });
}
