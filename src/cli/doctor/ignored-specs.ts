import type { LoadedConfig } from "../../app/config/load-config.ts";
import { runGit } from "../../processes/git.ts";
import type { Project } from "../../project/project.ts";
import { createSourceCatalog } from "../../project/scan/source-catalog.ts";

/** How long Git may look for ignored files, in ms. */
const maxWaitMs = 5_000;

/** The spec files that other clones do not have, because Git ignores them. */
export interface IgnoredSpecs {
  /** In folders that their tool reads from the disk, so kit reads them too. */
  readonly read: readonly string[];
  readonly unread: readonly string[];
}

/** Folders of specs besides those that a tool reads from the disk. Git lists an ignored folder as one entry that ends in a slash. */
const specFolder = /(?:^|\/)(?:specs|\.tessl)\/$/;

/** Finds the ignored spec files of a project, not those inside of other ignored folders; none if Git does not answer in time. */
export async function findIgnoredSpecs(
  { root, files }: Pick<Project, "root" | "files">,
  { config, signal }: { readonly config: LoadedConfig["config"]; readonly signal: AbortSignal },
): Promise<IgnoredSpecs> {
  const { specAdapterFor, isGuidelineFile, isToolFolder } = createSourceCatalog(config);
  const list = async (
    paths: readonly string[],
    ...options: readonly string[]
  ): Promise<readonly string[]> => {
    const chosen = ["-z", "--others", "--ignored", "--exclude-standard", ...options];
    const found = await runGit(["ls-files", ...chosen, "--", ...paths], {
      cwd: root,
      signal,
      timeoutMs: maxWaitMs,
    });
    return found.status === "ok" ? found.stdout.toString().split("\0") : [];
  };
  const entries = await list(["."], "--directory");
  const folders = entries.filter((path) => specFolder.test(path) || isToolFolder(path.replace(/\/$/, "")));
  const inFolders = folders.length === 0 ? [] : await list(folders);
  const specs = [...new Set([...entries, ...inFolders])]
    .filter((path) => !path.endsWith("/") && specAdapterFor(path) !== undefined && !isGuidelineFile(path))
    .sort();
  const known = new Set(files());
  return {
    read: specs.filter((path) => known.has(path)),
    unread: specs.filter((path) => !known.has(path)),
  };
}
