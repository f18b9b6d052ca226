import { KitError } from "../../base/kit-error.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AgentPolicy } from "../define/agent-profile.ts";
import type { PathChange } from "../policy/protected-paths.ts";

/** The sandbox and policy of a command. */
export interface CommandContext {
  readonly sandbox: Sandbox;
  readonly cwd?: string | undefined;
  readonly policy: AgentPolicy;
  readonly projectRoot?: string | undefined;
  readonly isLoaded?: PathChange["isLoaded"] | undefined;
  readonly signal: AbortSignal;
}

/** A command with its final words and environment. */
export interface PreparedCommand {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The path relative to the root of the workspace, or absolute; `undefined` if it may leave the workspace. `..` is
 * accepted only at the beginning: after a name that is a link, it is relative to the link's target.
 */
export function pathFromRoot(path: string, folder: string): string | undefined {
  const segments = path.split("/");
  const first = segments.findIndex((segment) => segment !== ".." && segment !== "." && segment !== "");
  if (first !== -1 && segments.indexOf("..", first) !== -1) return undefined;
  if (path.startsWith("/")) return segments.includes("..") ? undefined : path;
  const up = segments.filter((segment) => segment === "..").length;
  const from = folder === "" ? [] : folder.split("/");
  if (up > from.length) return undefined;
  const down = segments.filter((segment) => segment !== "" && segment !== "." && segment !== "..");
  return [...from.slice(0, from.length - up), ...down].join("/");
}

/** Converts a path relative to the root into one relative to the sandbox's working folder. */
export function toView(fromRoot: string, { cwd }: Sandbox): string {
  if (fromRoot.startsWith("/")) return fromRoot;
  const up = cwd === "" ? "" : "../".repeat(cwd.split("/").length);
  return `${up}${fromRoot}` || ".";
}

export function forbidden(reason: string): KitError {
  return new KitError({ code: "forbidden", message: `The command was not run: ${reason}.` });
}
