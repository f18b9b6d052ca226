import { isTaken, refusalOf, stateFolders } from "../../base/git-state-files.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import { type ConfigEntry, isPlainConfig, parseListedConfig } from "../policy/forms/git-keys.ts";
import { forbidden, toView } from "./command-context.ts";

interface RepositoryQuery {
  readonly sandbox: Sandbox;
  /** The folder of the command, relative to the root of the workspace, or absolute. */
  readonly start: string | undefined;
  /** Whether submodules count as well. */
  readonly isDeep: boolean;
  /** Whether the repository may lead out of the workspace, because a wall is there. */
  readonly isTrusted: boolean;
  /** Whether Git may go on with an unfinished rebase, cherry-pick or revert. */
  readonly continues: boolean;
  /** Runs Git in the folder of the command, or in a folder relative to it; `undefined` if it fails. */
  readonly runGit: (args: readonly string[], path?: string) => Promise<string | undefined>;
}

/** Submodules, each of which costs two calls of Git. */
const maxSubmodules = 50;

interface GitRepository {
  /** Its configuration, empty if it has only plain keys. */
  readonly entries: readonly ConfigEntry[];
  /** Whether its index may contain submodules. */
  readonly mayHaveSubmodules: boolean;
}

/**
 * The repository that Git would use. Throws `forbidden` if it leads out of the workspace: a `.git` can come from an
 * archive.
 */
export async function readGitRepository(query: RepositoryQuery): Promise<GitRepository> {
  const own = await nearestRepository(query);
  const isPlain = own?.config !== undefined && isPlainConfig(own.config);
  const listed = isPlain ? [] : await listConfig(query);
  if (query.isTrusted) return { entries: listed, mayHaveSubmodules: false };
  const namesWorkTree = listed.some(({ key }) => key === "core.worktree");
  if (own?.isInside !== true || namesWorkTree) await refuseForeign(query, own, namesWorkTree);
  const entries = listed.filter(({ key }) => key !== "core.worktree");
  const mayHaveSubmodules = own?.mayHaveSubmodules !== false;
  const deeper = query.isDeep && mayHaveSubmodules ? await configOfSubmodules(query) : [];
  return { entries: [...entries, ...deeper], mayHaveSubmodules };
}

async function listConfig({ runGit }: RepositoryQuery, path?: string): Promise<readonly ConfigEntry[]> {
  const listed = await runGit(["config", "--list", "-z"], path);
  // Without a repository there is nothing to list.
  return parseListedConfig(listed ?? "");
}

interface NearestRepository {
  /** The folder with the `.git`, relative to the root of the workspace. */
  readonly top: string;
  /** Whether all its parts are in the workspace. */
  readonly isInside: boolean;
  readonly config?: string;
  readonly mayHaveSubmodules: boolean;
}

/** The repository whose `.git` is in the workspace; `undefined` if there is none, or if Git has to be asked. */
async function nearestRepository(query: RepositoryQuery): Promise<NearestRepository | undefined> {
  const { sandbox, start } = query;
  if (start === undefined || start.startsWith("/")) return undefined;
  const segments = start === "" ? [] : start.split("/");
  for (let depth = segments.length; depth >= 0; depth -= 1) {
    const top = segments.slice(0, depth).join("/");
    const entry = toView(top === "" ? ".git" : `${top}/.git`, sandbox);
    const kind = await kindOf(entry, sandbox);
    if (kind === undefined) continue;
    if (kind === "directory") {
      if (!query.isTrusted) await refuseUnsafe(entry, query);
      const config = await sandbox.readFile(`${entry}/config`).catch(() => undefined);
      const mayHaveSubmodules = !query.isTrusted && (await indexMayHaveSubmodules(entry, sandbox));
      return { top, isInside: true, mayHaveSubmodules, ...(config === undefined ? {} : { config }) };
    }
    const pointer = /^gitdir: (.+)/.exec(await sandbox.readFile(entry))?.[1];
    const inside =
      pointer === undefined
        ? undefined
        : await sandbox
            .resolve(pointer.startsWith("/") ? pointer : toView(`${top}/${pointer}`, sandbox))
            .catch(() => undefined);
    if (inside === undefined || query.isTrusted) return { top, isInside: false, mayHaveSubmodules: true };
    await refuseUnsafe(toView(inside, sandbox), query);
    return { top, isInside: true, mayHaveSubmodules: true };
  }
  return undefined;
}

async function refuseUnsafe(gitFolder: string, { sandbox, continues }: RepositoryQuery): Promise<void> {
  await refuseLinks(gitFolder, sandbox);
  if (continues) await refuseSteps(gitFolder, sandbox);
}

/** Git writes this index again before it reads it. */
const rewritten = "rebase-apply/patch-merge-index";

/** Refuses an unfinished operation whose files, which can come from an archive, may make Git start a program. */
async function refuseSteps(gitFolder: string, sandbox: Sandbox): Promise<void> {
  for (const folder of stateFolders) {
    const entries = await sandbox.list(`${gitFolder}/${folder}`).catch(() => []);
    for (const { name } of entries) {
      const path = `${folder}/${name}`;
      if (path === rewritten) continue;
      const bytes = await sandbox.readBytes(`${gitFolder}/${path}`).catch(() => undefined);
      if (bytes === undefined || !isTaken(path) || refusalOf(path, Buffer.from(bytes)) !== undefined)
        throw forbidden(`the next steps of the repository may run programs (${path} in .git)`);
    }
  }
}

/** Whether the index of a repository has the mode of a submodule, or parts that do not show it. */
async function indexMayHaveSubmodules(gitFolder: string, sandbox: Sandbox): Promise<boolean> {
  if ((await sandbox.list(gitFolder)).some(({ name }) => name.startsWith("sharedindex."))) return true;
  try {
    const index = await sandbox.readBytes(`${gitFolder}/index`);
    return index.some(
      (byte, at) =>
        // Mode 160000 as a number of four bytes, or "sdir": an extension that stores folders as entries.
        (byte === 0xe0 && index[at - 1] === 0 && index[at - 2] === 0 && index[at + 1] === 0) ||
        (byte === 0x64 && index[at - 1] === 0x73 && index[at + 1] === 0x69 && index[at + 2] === 0x72),
    );
  } catch (error) {
    return !(error instanceof KitError && error.code === "not_found");
  }
}

async function kindOf(path: string, sandbox: Sandbox): Promise<string | undefined> {
  try {
    return (await sandbox.stat(path)).kind;
  } catch (error) {
    if (error instanceof KitError && error.code === "not_found") return undefined;
    throw forbidden(`"${path}" leads out of the workspace`);
  }
}

/** Folders of a repository from which Git prints contents, or in which it writes through links. */
const parts = [
  "",
  "objects",
  "objects/info",
  "objects/pack",
  "info",
  "rebase-merge",
  "rebase-apply",
  "sequencer",
  "refs",
  "logs",
];

/** Folders of branches that kit looks into. */
const maxFolders = 2_000;

/** Refuses a repository with parts outside of the workspace: by links, alternates, or a common folder. */
async function refuseLinks(gitFolder: string, sandbox: Sandbox): Promise<void> {
  const leadsOut = (what: string): KitError =>
    forbidden(`the repository leads out of the workspace (${what} in .git)`);
  const resolves = async (path: string): Promise<boolean> =>
    await sandbox.resolve(path).then(
      () => true,
      () => false,
    );
  const pending = [...parts];
  for (const part of pending) {
    if (pending.length > maxFolders) throw forbidden("the repository has too many folders to look at");
    const folder = part === "" ? gitFolder : `${gitFolder}/${part}`;
    const entries = await sandbox.list(folder).catch(() => []);
    for (const { name, kind } of entries) {
      // Git reads branches and logs, and writes to them, also through links.
      const isOfBranches = /^(refs|logs)(\/|$)/.test(part);
      if (kind === "directory" && isOfBranches) pending.push(`${part}/${name}`);
      // Git itself makes no links there, and one can lead to a protected file.
      if (kind === "link" && (isOfBranches || !(await resolves(`${folder}/${name}`))))
        throw leadsOut(part === "" ? name : `${part}/${name}`);
    }
    if (part === "" && entries.some(({ name }) => name === "commondir")) {
      const common = (await sandbox.readFile(`${folder}/commondir`)).trim();
      if (!(await resolves(common.startsWith("/") ? common : `${folder}/${common}`)))
        throw leadsOut("commondir");
      await refuseLinks(common.startsWith("/") ? common : `${folder}/${common}`, sandbox);
    }
    if (part === "objects/info" && entries.some(({ name }) => name === "alternates")) {
      for (const line of (await sandbox.readFile(`${folder}/alternates`)).split("\n")) {
        const path = line.startsWith("/") ? line : `${gitFolder}/objects/${line}`;
        if (line !== "" && !line.startsWith("#") && !(await resolves(path)))
          throw leadsOut("objects/info/alternates");
      }
    }
  }
}

/**
 * Refuses a repository whose work tree is another folder, or that is outside of the workspace and does not name the
 * work tree in turn. Git's own do: repositories around the workspace, of linked work trees and of submodules.
 */
async function refuseForeign(
  { sandbox, runGit }: RepositoryQuery,
  own: NearestRepository | undefined,
  namesWorkTree: boolean,
): Promise<void> {
  const workTree = (await runGit(["rev-parse", "--show-toplevel"]))?.replace(/\n$/, "");
  // Git finds no repository, or refuses it.
  if (workTree === undefined && own === undefined) return;
  const isRight =
    workTree !== undefined &&
    (own === undefined
      ? sandbox.hostRoot?.startsWith(`${workTree}/`) === true
      : (await sandbox.resolve(workTree).catch(() => undefined)) === own.top);
  const isNamed =
    own?.isInside === true ||
    // For a submodule Git lists another folder, but the configuration names the work tree.
    (own !== undefined && namesWorkTree) ||
    (await runGit(["worktree", "list", "--porcelain", "-z"]))
      ?.split("\0")
      .includes(`worktree ${workTree}`) === true;
  if (!isRight || !isNamed)
    throw forbidden("the repository leads out of the workspace (.git names another one)");
}

/** The configurations of the submodules that are checked out, and of those in them. */
async function configOfSubmodules(query: RepositoryQuery): Promise<readonly ConfigEntry[]> {
  const { runGit } = query;
  const up = (await runGit(["rev-parse", "--show-cdup"]))?.trim();
  if (up === undefined) return [];
  const entries: ConfigEntry[] = [];
  const folders = [up === "" ? "." : up];
  const seen = new Set(folders);
  for (const folder of folders) {
    if (folders.length > maxSubmodules) throw forbidden("the repository has too many submodules to look at");
    const index = await runGit(["ls-files", "-s", "-z"], folder);
    if (index === undefined) throw forbidden("Git does not list the files of the repository");
    for (const [, path = ""] of index.matchAll(/(?:^|\0)160000 [^\t]*\t([^\0]+)/g)) {
      const submodule = `${folder}/${path}`;
      if (seen.has(submodule)) continue;
      seen.add(submodule);
      // A submodule that is not checked out is an empty folder of the repository around it.
      const inside = await runGit(["rev-parse", "--show-cdup"], submodule);
      if (inside?.trim() !== "") continue;
      folders.push(submodule);
      const listed = await listConfig(query, submodule);
      entries.push(...listed.filter(({ key }) => key !== "core.worktree"));
    }
  }
  return entries;
}
