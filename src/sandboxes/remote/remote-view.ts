import { KitError } from "../../base/kit-error.ts";
import { forbidden, invalid } from "../../files/obstacle.ts";
import { toWorkspacePath } from "../host/workspace-path.ts";
import type { MachineLink, ScriptRun } from "./machine-link.ts";
import { outcomes } from "./scripts.ts";

const maxNameBytes = 255;

/** A workspace on a machine and the working folder of one sandbox. */
export interface RemoteView {
  readonly link: MachineLink;
  readonly name: string;
  readonly persistent: boolean;
  /** Whether the configuration forbids commands without isolation. */
  readonly requiresWall: boolean;
  /** Relative to the root; "" for the root. */
  readonly cwd: string;
  /** Fires when the sandbox is closed: running commands end. */
  readonly closing: AbortController;
  /** Running commands. */
  readonly running: Set<Promise<unknown>>;
}

/** Converts a caller's path to one relative to the root of the workspace. */
export function pathIn({ cwd, link }: Pick<RemoteView, "cwd" | "link">, path: string): string {
  const inside = toWorkspacePath({ workspace: link.paths(), cwd }, path);
  if (inside.split("/").some((name) => Buffer.byteLength(name) > maxNameBytes))
    throw invalid(`${inside.slice(0, 80)}… is too long for a file name.`);
  return inside;
}

export interface PathScript extends Pick<ScriptRun, "script" | "stdin" | "signal" | "repeatable"> {
  /** The arguments after the root and the path. */
  readonly args?: readonly string[];
}

/** Runs a script on a path of the workspace and returns its output. Throws the error of its exit code. */
export async function runOnPath(view: RemoteView, inside: string, run: PathScript): Promise<string> {
  if (view.closing.signal.aborted) throw closed();
  const { args = [], ...rest } = run;
  const result = await view.link.run({ repeatable: true, ...rest, args: [inside, ...args] });
  if (result.exitCode === 0) return result.stdout;
  throw failure(result.exitCode, inside, result.stderr);
}

export const closed = (): KitError =>
  new KitError({ code: "unavailable", message: "The sandbox is closed." });

/** Converts a script's exit code to an error about a path. */
export function failure(exitCode: number, inside: string, stderr = ""): KitError {
  const path = inside === "" ? "The workspace" : inside;
  switch (exitCode) {
    case outcomes.missing:
      return new KitError({ code: "not_found", message: `${path} does not exist.` });
    case outcomes.outside:
      return forbidden(`${path} leads out of the workspace, or is not a regular file.`);
    case outcomes.wrongKind:
      return invalid(`${path} is a folder where a file is expected, or a file where a folder is expected.`);
    case outcomes.tooLarge:
      return new KitError({ code: "payload_too_large", message: `${path} is too large.` });
    case outcomes.changed:
      return new KitError({ code: "conflict", message: `${path} was changed meanwhile.` });
    case outcomes.noSpace:
      return new KitError({
        code: "unavailable",
        message: `${path} cannot be written: the machine has no space left, or its user has no permission.`,
      });
    default:
      return new KitError({
        code: "unavailable",
        message: `The machine failed to process ${path}.`,
        cause: new Error(`exit code ${exitCode}: ${stderr.slice(0, 1_000)}`),
      });
  }
}

/** Splits NUL-terminated names. */
export function namesOf(bytes: Buffer): readonly string[] {
  const names = bytes.toString("utf8").split("\0");
  return names.slice(0, -1);
}
