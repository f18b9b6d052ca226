import { join } from "node:path";
import type { IsolationOptions, SandboxOwner } from "../contract.ts";

export interface VirtualOptions extends IsolationOptions {
  /** Workspaces are folders of its `.kit/sandboxes`; default: the agent's project, otherwise the current folder of the process. */
  readonly root?: string | undefined;
  /** The folder of all workspaces, instead of `.kit/sandboxes` below `root`. */
  readonly folder?: string | undefined;
  /** Files of a new workspace, by path; an existing workspace is not changed. */
  readonly files?: Readonly<Record<string, string | Uint8Array>> | undefined;
  /** Variables for commands in addition to `PATH`, a separate home folder and the language. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** The parent folder of all workspaces. */
export const folderOfAll = ({ root, folder }: VirtualOptions, { project_root }: SandboxOwner): string =>
  folder ?? join(root ?? project_root ?? process.cwd(), ".kit", "sandboxes");
