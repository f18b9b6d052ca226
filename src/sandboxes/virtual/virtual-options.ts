import { join } from "node:path";
import type { IsolationOptions, SandboxOwner } from "../contract.ts";

export interface VirtualOptions extends IsolationOptions {
  /** Workspaces lie in its `.kit/sandboxes`; default: the agent's project, else the folder that the process was started in. */
  readonly root?: string | undefined;
  /** The folder of all workspaces, in place of `.kit/sandboxes` below `root`. */
  readonly folder?: string | undefined;
  /** Files of a new workspace, by path; one that exists is left as it is. */
  readonly files?: Readonly<Record<string, string | Uint8Array>> | undefined;
  /** Variables for commands beside `PATH`, a home of their own and the language. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** The folder that all workspaces lie in. */
export const folderOfAll = ({ root, folder }: VirtualOptions, { project_root }: SandboxOwner): string =>
  folder ?? join(root ?? project_root ?? process.cwd(), ".kit", "sandboxes");
