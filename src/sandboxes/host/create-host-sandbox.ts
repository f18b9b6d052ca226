import { resolveInside } from "../../files/find-place.ts";
import type { Sandbox } from "../contract.ts";
import { exec } from "./exec/exec.ts";
import { exists, list, readBytes, readText, stat } from "./read.ts";
import { remove } from "./remove.ts";
import { glob } from "./search/glob.ts";
import { grep } from "./search/grep.ts";
import { workspaceIsolation } from "./wall/enclose.ts";
import type { View, Workspace } from "./workspace.ts";
import { toWorkspacePath } from "./workspace-path.ts";
import { editFile, makeFolder, writeFile } from "./write.ts";

/** Larger files are not for a model or a string; `download` takes them. */
const maxReadBytes = 16 * 1024 * 1024;
const maxDownloadBytes = 1024 * 1024 * 1024;

/** A sandbox in a folder of this machine: what `local` and `virtual` have in common. */
export function createHostSandbox(
  name: string,
  workspace: Omit<Workspace, "closing"> & { readonly release?: () => Promise<void> },
  options: { readonly shared?: boolean } = {},
): Sandbox {
  const controller = new AbortController();
  const running = new Set<Promise<unknown>>();
  return viewFrom("", {
    name,
    ...(options.shared === true ? { hostRoot: workspace.root } : {}),
    workspace: { ...workspace, closing: controller.signal },
    running,
    async close() {
      controller.abort();
      await Promise.allSettled(running);
      await workspace.release?.();
    },
  });
}

interface Shared {
  readonly name: string;
  readonly hostRoot?: string;
  readonly workspace: Workspace;
  /** Commands that have not ended. */
  readonly running: Set<Promise<unknown>>;
  close(): Promise<void>;
}

function viewFrom(cwd: string, shared: Shared): Sandbox {
  const { workspace } = shared;
  const view: View = { workspace, cwd };
  const inside = (path: string): string => toWorkspacePath(view, path);
  return {
    name: shared.name,
    capabilities: { exec: true, literalExec: true, persistent: true },
    cwd,
    ...(shared.hostRoot === undefined ? {} : { hostRoot: shared.hostRoot }),
    isolation: () => workspaceIsolation(workspace),
    resolve: async (path, options) =>
      await resolveInside({
        root: workspace.root,
        path: inside(path),
        area: "workspace",
        ...(options?.keepLink === true ? { end: "keep-link" } : {}),
      }),
    stat: (path) => stat(view, path),
    exists: (path) => exists(view, path),
    list: (path = "") => list(view, path),
    readFile: (path) => readText(view, path, maxReadBytes),
    readBytes: (path) => readBytes(view, path, maxReadBytes),
    writeFile: (path, content) => writeFile(view, path, content),
    writeBytes: (path, content) => writeFile(view, path, content),
    mkdir: (path) => makeFolder(view, path),
    rm: (path, options) => remove(view, path, options?.recursive === true),
    edit: (path, change) => editFile(view, path, { change, maxBytes: maxReadBytes }),
    grep: (request) => grep(view, request),
    glob: (pattern, options) => glob(view, pattern, options ?? {}),
    exec(request) {
      const command = exec(view, request).finally(() => shared.running.delete(command));
      shared.running.add(command);
      return command;
    },
    upload: (path, content) => writeFile(view, path, content),
    download: (path) => readBytes(view, path, maxDownloadBytes),
    at: (folder) => viewFrom(inside(folder), shared),
    close: shared.close,
  };
}
