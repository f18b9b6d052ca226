import type { OuterRules } from "../../files/ignore-scope.ts";
import type { IsolationOptions } from "../contract.ts";

/** A folder of this machine that a sandbox works in. */
export interface Workspace {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** Absolute, as it was named: a link may have been on the way. */
  readonly calledRoot: string;
  /** The environment of every command. */
  readonly environment: () => Promise<Readonly<Record<string, string>>>;
  /** Ignore rules from above the root that searches follow. */
  readonly outerRules: () => readonly OuterRules[];
  readonly isolation: IsolationOptions;
  /** Folders of kit's own, absolute: commands see nothing of them. */
  readonly hidden: readonly string[];
  /** That of kit's own which a command could make where it is missing; it is made before one may. */
  readonly stateFolder?: string;
  /** Makes a folder for the homes and temporary files of walled commands, outside of the workspace. */
  readonly ownFolder: () => Promise<string>;
  /** Fires when the sandbox is closed: running commands end. */
  readonly closing: AbortSignal;
}

/** A workspace as one sandbox sees it: from its working folder. */
export interface View {
  readonly workspace: Workspace;
  /** Relative to the root; "" for the root. */
  readonly cwd: string;
}
