import { randomBytes } from "node:crypto";
import { link, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { KitError } from "../../base/kit-error.ts";
import { assertNoLinkOut } from "../../files/find-place.ts";
import { hasCode } from "../../files/obstacle.ts";
import type { SandboxOwner } from "../contract.ts";
import { workspaceName } from "../host/workspace-name.ts";

/** The records of a project's machines in `.kit/machines`: their sessions, and the project's own id. */
export interface MachineRecords {
  /** The id that distinguishes the machines of this project from those of others. */
  project(): Promise<string>;
  /** Whether a machine was ever made for this project. */
  isUsed(): Promise<boolean>;
  /** The id of the machine that belongs to a session; undefined where none is known. */
  read(owner: SandboxOwner): Promise<string | undefined>;
  write(owner: SandboxOwner, id: string): Promise<void>;
  remove(owner: SandboxOwner): Promise<void>;
  /** Has one opener at a time do this for a session, of all processes that share the project's folder. */
  alone<Result>(owner: SandboxOwner, work: () => Promise<Result>): Promise<Result>;
  /** Whether a session has this machine. */
  holds(id: string): Promise<boolean>;
}

const folderName = ".kit/machines";

/** `named`: the project's name where its configuration has one; otherwise one is made and kept. */
export function createMachineRecords(root: string, vendor: string, stateFolder?: string): MachineRecords {
  const folder = join(root, folderName);
  const fileOf = (owner: SandboxOwner): string => join(folder, `${vendor}-${workspaceName(owner)}`);
  const make = async (): Promise<void> => {
    assertNoLinkOut(root, [".kit", folderName]);
    await mkdir(folder, { recursive: true, mode: 0o700 });
  };
  let project: Promise<string> | undefined;
  return {
    project() {
      project ??=
        stateFolder === undefined ? make().then(() => ownName(root, folder)) : Promise.resolve(stateFolder);
      project.catch(() => {
        project = undefined;
      });
      return project;
    },
    isUsed: async () => (await textOf(join(folder, "project"))) !== undefined,
    read: async (owner) => await textOf(fileOf(owner)),
    async write(owner, id) {
      await make();
      await putWhole(fileOf(owner), id, async (fresh, file) => await rename(fresh, file));
    },
    remove: async (owner) => await rm(fileOf(owner), { force: true }),
    async alone(owner, work) {
      await make().catch((cause: unknown) => {
        throw notNoted(cause);
      });
      const lock = join(folder, `opening-${vendor}-${workspaceName(owner)}`);
      while (!(await take(lock))) await setTimeout(pollMs);
      const beat = setInterval(
        () => void utimes(lock, new Date(), new Date()).catch(() => undefined),
        beatMs,
      );
      try {
        return await work();
      } finally {
        clearInterval(beat);
        await rm(lock, { force: true });
      }
    },
    async holds(id) {
      const names = await readdir(folder).catch(() => []);
      const ids = names
        .filter((name) => name.startsWith(`${vendor}-`))
        .map((name) => textOf(join(folder, name)));
      return (await Promise.all(ids)).includes(id);
    },
  };
}

/** How often an opener looks whether another one has finished, and says that it is at work itself. */
const pollMs = 50;
const beatMs = 5_000;
/** An opener that was silent for so long has crashed. */
const staleMs = 30_000;

async function take(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, `${process.pid}\n`, { flag: "wx", mode: 0o600 });
    return true;
  } catch (cause) {
    if (!hasCode(cause, "EEXIST")) throw notNoted(cause);
  }
  const stats = await stat(lock).catch(() => undefined);
  if (stats === undefined || Date.now() - stats.mtimeMs < staleMs) return false;
  // One of those that wait moves it away, and all try again.
  const old = `${lock}.${randomBytes(6).toString("hex")}.old`;
  await rename(lock, old).catch(() => undefined);
  await rm(old, { force: true });
  return false;
}

/** Two processes may ask at once: the one that is first decides. */
async function ownName(root: string, folder: string): Promise<string> {
  const file = join(folder, "project");
  const known = await textOf(file);
  if (known !== undefined) return known;
  const readable = basename(root)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 24)
    .replace(/^-+|-+$/g, "");
  const made = `${readable === "" ? "project" : readable}-${randomBytes(6).toString("hex")}`;
  await putWhole(file, made, async (fresh, place) => {
    await link(fresh, place).catch((error: unknown) => {
      if (!hasCode(error, "EEXIST")) throw error;
    });
    await rm(fresh);
  });
  return (await textOf(file)) ?? made;
}

async function putWhole(
  file: string,
  text: string,
  move: (fresh: string, file: string) => Promise<void>,
): Promise<void> {
  const fresh = `${file}.${randomBytes(6).toString("hex")}.new`;
  try {
    await writeFile(fresh, `${text}\n`, { flag: "wx", mode: 0o600 });
    await move(fresh, file);
  } catch (cause) {
    await rm(fresh, { force: true }).catch(() => undefined);
    throw notNoted(cause);
  }
}

const notNoted = (cause: unknown): KitError =>
  new KitError({
    code: "unavailable",
    message: "kit could not note which machine it uses.",
    hint: "The folder .kit of the project has to be writable.",
    cause,
  });

async function textOf(file: string): Promise<string | undefined> {
  try {
    const text = (await readFile(file, "utf8")).trim();
    return text === "" ? undefined : text;
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return undefined;
    throw error;
  }
}
