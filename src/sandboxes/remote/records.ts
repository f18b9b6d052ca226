import { hash, randomBytes } from "node:crypto";
import { link, mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { assertNoLinkOut } from "../../files/find-place.ts";
import { hasCode } from "../../files/obstacle.ts";
import { underFileLock } from "../../sqlite/file-lock.ts";
import type { SandboxOwner } from "../contract.ts";
import { workspaceName } from "../host/workspace-name.ts";

/** The records in `.kit/machines`: the machine of each session, and the project's id. */
export interface MachineRecords {
  /** The id that labels the machines of this project; created on first use. */
  project(): Promise<string>;
  /** Whether this project has an id, which every created machine needs. */
  hasProject(): Promise<boolean>;
  /** The id of a session's machine; `undefined` if none is recorded. */
  read(owner: SandboxOwner): Promise<string | undefined>;
  write(owner: SandboxOwner, id: string): Promise<void>;
  remove(owner: SandboxOwner): Promise<void>;
  /**
   * Runs `work` under a lock, which all processes with this project folder share, and sometimes another session. Throws `unavailable`
   * if the lock is not free within `maxWaitMs`, which is 10 minutes by default.
   */
  exclusively<Result>(owner: SandboxOwner, work: () => Promise<Result>, maxWaitMs?: number): Promise<Result>;
  /** Notes that `user`, a link of this process, uses the session's machine from now on. */
  use(owner: SandboxOwner, user: string): Promise<void>;
  /** Removes the note of `use`. */
  leave(owner: SandboxOwner, user: string): Promise<void>;
  /** Whether a link of any process with this project folder noted its use in the last `ms` milliseconds. */
  isUsed(owner: SandboxOwner, ms: number): Promise<boolean>;
  /** Whether a session's record names this machine. */
  holds(id: string): Promise<boolean>;
}

const folderName = ".kit/machines";

/** The lock files of a project, so that they do not grow with its sessions. */
const lockFiles = 64;
/** An opening takes as long as its vendor does. */
const maxOpeningMs = 600_000;

/** `configuredId`: the project id from the options; by default one is generated and stored. */
export function createMachineRecords(root: string, vendor: string, configuredId?: string): MachineRecords {
  const folder = join(root, folderName);
  const fileOf = (owner: SandboxOwner): string => join(folder, `${vendor}-${workspaceName(owner)}`);
  const usersOf = (owner: SandboxOwner): string => join(folder, "using", `${vendor}-${workspaceName(owner)}`);
  const createFolder = async (): Promise<void> => {
    assertNoLinkOut(root, [".kit", folderName]);
    await mkdir(folder, { recursive: true, mode: 0o700 });
  };
  let project: Promise<string> | undefined;
  return {
    project() {
      project ??=
        configuredId === undefined
          ? createFolder().then(() => readOrCreateId(root, folder))
          : Promise.resolve(configuredId);
      project.catch(() => {
        project = undefined;
      });
      return project;
    },
    hasProject: async () => (await readText(join(folder, "project"))) !== undefined,
    read: async (owner) => await readText(fileOf(owner)),
    async write(owner, id) {
      await createFolder();
      await writeAtomically(fileOf(owner), id, async (newFile, file) => await rename(newFile, file));
    },
    async remove(owner) {
      await rm(fileOf(owner), { force: true });
      await rm(usersOf(owner), { recursive: true, force: true });
    },
    async use(owner, user) {
      try {
        await createFolder();
        await mkdir(usersOf(owner), { recursive: true, mode: 0o700 });
        await writeFile(join(usersOf(owner), user), `${process.pid}\n`, { mode: 0o600 });
      } catch (cause) {
        throw recordNotWritten(cause);
      }
    },
    async leave(owner, user) {
      await rm(join(usersOf(owner), user), { force: true });
      // Fails while another link has a note there.
      await rmdir(usersOf(owner)).catch(() => undefined);
    },
    async isUsed(owner, ms) {
      const names = await readdir(usersOf(owner)).catch(() => []);
      const ages = names.map(async (name) => {
        const stats = await stat(join(usersOf(owner), name)).catch(() => undefined);
        return stats === undefined ? Infinity : Date.now() - stats.mtimeMs;
      });
      return (await Promise.all(ages)).some((age) => age < ms);
    },
    async exclusively(owner, work, maxWaitMs = maxOpeningMs) {
      try {
        await createFolder();
        await mkdir(join(folder, "opening"), { recursive: true, mode: 0o700 });
      } catch (cause) {
        throw recordNotWritten(cause);
      }
      // The empty file stays: another process may wait on it.
      const digest = hash("sha256", `${vendor}-${workspaceName(owner)}`);
      const lock = join(folder, "opening", String(Number.parseInt(digest.slice(0, 8), 16) % lockFiles));
      const wait = {
        maxMs: maxWaitMs,
        message: `kit has waited ${Math.round(maxWaitMs / 1000)} seconds for another opening or pause of a machine of ${vendor} in this project.`,
        hint: "If a kit process of this project hangs, end it. Then try again.",
      };
      return await underFileLock(lock, wait, work);
    },
    async holds(id) {
      const names = await readdir(folder).catch(() => []);
      const ids = names
        .filter((name) => name.startsWith(`${vendor}-`))
        .map((name) => readText(join(folder, name)));
      return (await Promise.all(ids)).includes(id);
    },
  };
}

/** If two processes create an id at once, both use the first one. */
async function readOrCreateId(root: string, folder: string): Promise<string> {
  const file = join(folder, "project");
  const storedName = await readText(file);
  if (storedName !== undefined) return storedName;
  const readable = basename(root)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 24)
    .replace(/^-+|-+$/g, "");
  const newName = `${readable === "" ? "project" : readable}-${randomBytes(6).toString("hex")}`;
  await writeAtomically(file, newName, async (newFile, target) => {
    await link(newFile, target).catch((error: unknown) => {
      if (!hasCode(error, "EEXIST")) throw error;
    });
    await rm(newFile);
  });
  return (await readText(file)) ?? newName;
}

async function writeAtomically(
  file: string,
  text: string,
  move: (fresh: string, file: string) => Promise<void>,
): Promise<void> {
  const newFile = `${file}.${randomBytes(6).toString("hex")}.new`;
  try {
    await writeFile(newFile, `${text}\n`, { flag: "wx", mode: 0o600 });
    await move(newFile, file);
  } catch (cause) {
    await rm(newFile, { force: true }).catch(() => undefined);
    throw recordNotWritten(cause);
  }
}

const recordNotWritten = (cause: unknown): KitError =>
  new KitError({
    code: "unavailable",
    message: "kit could not record which machine the session uses.",
    hint: "Make the folder .kit of the project writable.",
    cause,
  });

async function readText(file: string): Promise<string | undefined> {
  try {
    const text = (await readFile(file, "utf8")).trim();
    return text === "" ? undefined : text;
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return undefined;
    throw error;
  }
}
