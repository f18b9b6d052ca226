import { createHash, randomUUID } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { isRecord } from "../../../base/record.ts";
import { isAlive, startOf } from "../../../processes/is-alive.ts";
import type { Workspace } from "../workspace-path.ts";
import { isGitPlace } from "./git-place.ts";
import type { FoundPaths, Guarded } from "./guarded-paths.ts";
import { refuseNew } from "./refuse-new.ts";

/** The record by which the next kit cleans up after a command whose kit was killed. */
interface Unfinished {
  readonly before: readonly (readonly [string, Guarded])[];
  /** The protected paths that the agent of the command had leave to change. */
  readonly granted: readonly string[];
  /** Whether the command had a guard, so that `before` has more than repositories. */
  readonly hasGuard: boolean;
}

type Place = Pick<Workspace, "root" | "state">;

/** `$XDG_STATE_HOME/kit/running-commands`: outside of the workspace, because a clone could bring records of its own. */
export function recordsFolder(): string {
  const { XDG_STATE_HOME = "" } = process.env;
  const state = isAbsolute(XDG_STATE_HOME) ? XDG_STATE_HOME : join(homedir(), ".local", "state");
  return join(state, "kit", "running-commands");
}

function folderOf({ root, state = "" }: Place): string {
  return join(recordsFolder(), createHash("sha256").update(`${root}\0${state}`).digest("hex"));
}

/** Records what a workspace has before a command; the returned function removes the record. */
export function recordBefore(place: Place, unfinished: Unfinished): () => void {
  const folder = folderOf(place);
  const file = join(folder, `${process.pid}-${startOf(process.pid)}-${randomUUID()}.json`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(file, JSON.stringify(unfinished), { mode: 0o600, flag: "wx" });
  } catch {
    // This user has no state folder that can be written, so a killed command is not finished.
    return () => undefined;
  }
  return () => rmSync(file, { force: true });
}

/** Finishes the commands whose kit was killed. `find` gets whether to look for more than repositories. */
export function finishKilled(
  place: Place,
  {
    find,
    isLeft,
  }: {
    readonly find: (hasGuard: boolean) => FoundPaths;
    /** Whether a later call, which finds more, goes through the record again. */
    readonly isLeft: (hasGuard: boolean) => boolean;
  },
): readonly string[] {
  const folder = folderOf(place);
  return namesIn(folder).flatMap((name) => {
    const [, pid, start] = /^(\d+)-(\d+)-[\da-f-]+\.json$/.exec(name) ?? [];
    if (pid === undefined || (isAlive(Number(pid)) && startOf(Number(pid)) === start)) return [];
    const file = join(folder, name);
    const unfinished = parse(file);
    const found = unfinished === undefined ? undefined : find(unfinished.hasGuard);
    const isKept = unfinished !== undefined && isLeft(unfinished.hasGuard);
    if (!isKept && found?.obstacle === undefined) rmSync(file, { force: true });
    if (unfinished === undefined || found === undefined) return [];
    const { before, granted } = unfinished;
    const isGranted = (path: string): boolean =>
      granted.some((grant) => path === grant || path.startsWith(`${grant}/`));
    const after = [...found.paths].filter(
      ([path, { kind }]) =>
        !isHeldPlace(place.root, path) &&
        (kind === "repository" || kind === "hidden-folder" || !isGranted(path)),
    );
    return refuseNew(place.root, new Map(before), new Map(after));
  });
}

/** Whether this is the `.git` that `holdGitPlace` makes, for a command that runs now or for a killed one. */
const isHeldPlace = (root: string, path: string): boolean => path === ".git" && isGitPlace(join(root, path));

/** The names in a folder that only this user can write. */
function namesIn(folder: string): readonly string[] {
  try {
    const { uid, mode } = lstatSync(folder);
    const isForeign = process.getuid !== undefined && (uid !== process.getuid() || (mode & 0o022) !== 0);
    return isForeign ? [] : readdirSync(folder);
  } catch {
    return [];
  }
}

const kinds: readonly unknown[] = ["read-only", "hidden", "hidden-folder", "repository", "holder"];

function parse(file: string): Unfinished | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (!isRecord(value) || !Array.isArray(value.before) || !Array.isArray(value.granted)) return undefined;
    if (!value.before.every(isEntry)) return undefined;
    const granted = value.granted.filter((path) => typeof path === "string");
    return { before: value.before, granted, hasGuard: value.hasGuard === true };
  } catch {
    // The machine stopped while the record was written, and no command had started.
    return undefined;
  }
}

function isEntry(value: unknown): value is readonly [string, Guarded] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [path, guarded]: unknown[] = value;
  return (
    typeof path === "string" &&
    !isAbsolute(path) &&
    !path.split("/").includes("..") &&
    isRecord(guarded) &&
    kinds.includes(guarded.kind) &&
    (guarded.link === undefined || typeof guarded.link === "string")
  );
}
