import { randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, join } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import { heldPath } from "../../../files/walk.ts";
import type { CommandAccess, SandboxIsolation } from "../../contract.ts";
import { isInside, type Workspace } from "../workspace-path.ts";
import { canHold, innerHome, innerSocket, mountPoints, toBubblewrap } from "./bubblewrap.ts";
import { defaultLimits, limitedShell, openControlGroup } from "./command-limits.ts";
import { checkRequired, findWall, isolationOf } from "./find-wall.ts";
import { type GitParts, gitPartsOf } from "./git-parts.ts";
import { holdGitPlace } from "./git-place.ts";
import { readSettings } from "./git-setting-paths.ts";
import { furtherGitlinks, placesOfGitlinks, unreadableIndex } from "./gitlinks.ts";
import { cachedFolders, finishWorkspace, guardWorkspace } from "./guard-workspace.ts";
import { type OwnFolders, ownFoldersOf, wallParts } from "./own-folders.ts";
import { type OwnRepository, openOwnRepository, type RepositoryRequest } from "./own-repository.ts";
import { bridgeArguments, bridgePort, openProxy } from "./proxy.ts";
import { watchReplaced } from "./replaced-paths.ts";
import { toSeatbeltProfile } from "./seatbelt.ts";
import { systemParts, toolFolders, type Visible } from "./system-folders.ts";

/** A command as it is started. */
export interface Launch {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Set for bubblewrap, which writes its status to descriptor 3: the descriptors from 4 on. */
  readonly wall?: { readonly descriptors: readonly number[] };
  /** Fires when the command has to end at once: paths that it must not change or read lost their protection. */
  readonly unprotected?: AbortSignal;
  /** Releases what was opened for the command; call it after the command has ended. Returns sentences for its caller. */
  readonly close?: () => Promise<readonly string[]>;
}

interface Command extends Launch {
  /** The working folder: absolute, without links. */
  readonly folder: string;
  readonly access: CommandAccess;
}

/** Describes the isolation of a workspace's commands. */
export function workspaceIsolation({ root, isolation }: Workspace): Promise<SandboxIsolation> {
  const obstacle = canHold(root) ? undefined : "the workspace contains system folders.";
  return isolationOf(isolation, obstacle);
}

/** Makes a command run in isolation, if this machine can. Throws `unavailable` if isolation is required and there is none. */
export async function enclose(workspace: Workspace, command: Command): Promise<Launch> {
  const { wall, ...isolation } = await workspaceIsolation(workspace);
  checkRequired(workspace.isolation.isolation, { wall, ...isolation });
  const foundWall = await findWall();
  if (wall === "none" || foundWall.wall === "none") return command;
  await using cleanup = new AsyncDisposableStack();
  const { root } = workspace;
  const { write = true, network = [] } = command.access;
  const [ownFolders, parts] = await Promise.all([ownFoldersOf(workspace), wallParts()]);
  const { etc, filter: filterFile } = parts;
  if ([ownFolders.folder, parts.empty].some((path) => isInside(root, path))) throw ownFoldersInside();
  const notes: string[] = [];
  const holdsPlace =
    write &&
    workspace.shared === true &&
    command.access.makesRepository !== true &&
    foundWall.wall === "bubblewrap";
  // Before kit looks at the root's repository: a killed command may have made it.
  if (write && workspace.shared === true) notes.push(...finishWorkspace(workspace, command.access.guard));
  const releasePlace = holdsPlace ? holdGitPlace(root) : () => undefined;
  cleanup.defer(releasePlace);
  const git = gitPartsOf(root, write);
  if (write) {
    const { stateFolder } = workspace;
    if (stateFolder !== undefined && lstatSync(stateFolder, { throwIfNoEntry: false }) === undefined)
      mkdirSync(stateFolder);
  }
  if (write && workspace.shared === true) await readSettings(root);
  const guarded = guardWorkspace(workspace, command.access, { cleanup, notes });
  // Before kit looks for new repositories: with a .git, the root itself would be taken for none.
  cleanup.defer(releasePlace);
  const openCopy = (
    folder: string | undefined,
    more: Pick<RepositoryRequest, "isCommon" | "common">,
  ): OwnRepository | undefined => {
    if (!write || folder === undefined || foundWall.wall !== "bubblewrap") return undefined;
    if (workspace.readsRepository === true) return undefined;
    const opened = openOwnRepository({ folder, root, copies: parts.copies, ...more });
    if (opened !== undefined) cleanup.defer(async () => void notes.push(...(await opened.close())));
    return opened;
  };
  let common: OwnRepository | undefined;
  const repository = openCopy(git.folder, { common: () => common });
  common = openCopy(git.seen[0], { isCommon: true });
  const gitPaths =
    foundWall.wall === "seatbelt" || !write
      ? git.protectedPaths
      : await gitPathsOf(workspace, git, { repository, entries: guarded.repositories });
  const readOnlyRepository =
    workspace.readsRepository === true && git.folder !== undefined ? [git.folder] : [];
  const plan = {
    root,
    write,
    tools: toolsOf(command.environment.PATH ?? "", workspace),
    seen: git.seen,
    mounts: [...(common?.mounts ?? []), ...(repository?.mounts ?? [])],
    protectedPaths: write
      ? [
          ...gitPaths.filter((path) => !isInside(root, path)),
          ...outermost(
            [
              ...gitPaths,
              ...readOnlyRepository,
              ...readOnlyPathsOf(root, command.access),
              ...guarded.protectedPaths,
            ].filter((path) => isInside(root, path)),
          ),
        ]
      : [],
    hidden: [...workspace.hidden.flatMap((path) => hiddenFolder(root, path)), ...guarded.hiddenFolders],
  };
  const limits = { ...defaultLimits, ...workspace.isolation.limits };
  const commandLine = [command.program, ...command.args];
  const proxyAccess = network.length === 0 ? undefined : await openProxyAccess(ownFolders, network, cleanup);
  const environment = { ...command.environment, ...(proxyAccess?.environment ?? {}) };
  const close = (): (() => Promise<readonly string[]>) => {
    const opened = cleanup.move();
    return async () => {
      await opened.disposeAsync();
      return notes;
    };
  };
  if (foundWall.wall === "seatbelt") {
    const hidden = [...plan.hidden.filter((path) => !isInside(path, root)), ...guarded.hiddenFiles];
    const profile = toSeatbeltProfile({
      ...plan,
      // Its tools keep caches there, and this wall has no folder to put in their place.
      protectedPaths: plan.protectedPaths.filter((path) => basename(path) !== "node_modules"),
      seen: [...plan.tools, ...plan.seen],
      changed:
        workspace.readsRepository === true
          ? []
          : git.folder === undefined
            ? git.changed
            : [...git.changed, git.folder],
      hidden,
      ownFolder: ownFolders.folder,
      proxyPort: proxyAccess?.port,
    });
    const args = ["-p", profile, ...limitedShell(limits, false), ...commandLine];
    return {
      program: foundWall.program,
      args,
      environment: { ...environment, HOME: ownFolders.home, TMPDIR: ownFolders.temporary },
      close: close(),
    };
  }
  const group = openControlGroup(limits);
  if (group !== undefined) cleanup.defer(() => group.close());
  const descriptors: number[] = [];
  const pass = (descriptor: number): number => {
    cleanup.defer(() => closeSync(descriptor));
    return 3 + descriptors.push(descriptor);
  };
  const held = new Map<string, number>();
  const hold = (path: string): number => {
    const descriptor = openPath(path);
    held.set(path, descriptor);
    return pass(descriptor);
  };
  const seccomp = filterFile === undefined ? [] : ["--seccomp", String(pass(openSync(filterFile, "r")))];
  const mounts = toBubblewrap({
    ...plan,
    folder: command.folder,
    system: visibleSystemParts(),
    etc,
    ownFolders,
    socket: proxyAccess?.socket,
    cached: cachedFolders(plan.protectedPaths, join(ownFolders.folder, "caches")),
    hiddenFiles: guarded.hiddenFiles,
    empty: parts.empty,
    memoryBytes: limits.memoryMb * 1024 * 1024,
    sealedMounts: foundWall.canSeal ? [...new Set(["/", mountOf(root)])] : [],
    hold,
  });
  const covered = [...plan.protectedPaths, ...guarded.hiddenFiles, ...plan.hidden].filter((path) =>
    isInside(root, path),
  );
  if (repository !== undefined && git.folder !== undefined && isInside(root, git.folder))
    covered.push(git.folder);
  const watched = covered.map((path): [string, number] => {
    const descriptor = held.get(path) ?? openPath(path);
    if (!held.has(path)) cleanup.defer(() => closeSync(descriptor));
    return [path, descriptor];
  });
  const replaced = watchReplaced(root, new Map(watched));
  cleanup.defer(() => void notes.push(...replaced.close()));
  guarded.confirm();
  const [program = "", ...args] = [
    ...(group?.prefix ?? []),
    foundWall.program,
    ...mounts,
    ...["--json-status-fd", "3", ...seccomp, "--"],
    ...limitedShell(limits, group !== undefined, mountPoints(root, mounts)),
    ...(proxyAccess === undefined ? [] : bridgeArguments(innerSocket)),
    ...commandLine,
  ];
  return {
    program,
    args,
    environment: { ...environment, HOME: innerHome, TMPDIR: "/tmp" },
    wall: { descriptors },
    unprotected: replaced.signal,
    close: close(),
  };
}

/** A command could replace what kit mounts for the next one. */
function ownFoldersInside(): KitError {
  return new KitError({
    code: "unavailable",
    message: "The command was not run: the folder for temporary files lies in the workspace.",
    hint: "Set TMPDIR to an absolute folder outside of the workspace.",
  });
}

/** The paths that must be read-only next to the copy of the repository. */
async function gitPathsOf(
  { root, shared }: Workspace,
  { folder, protectedPaths }: GitParts,
  {
    repository,
    entries,
  }: { readonly repository: OwnRepository | undefined; readonly entries: readonly string[] },
): Promise<readonly string[]> {
  if (repository !== undefined && repository.gitlinks === undefined) throw unreadableIndex("the repository");
  const own = repository?.gitlinks ?? [];
  const further =
    shared === true ? furtherGitlinks(root, repository === undefined ? [".git", ...entries] : entries) : [];
  const submodules = await placesOfGitlinks(root, [...own, ...further]);
  if (folder === undefined) return [...protectedPaths, ...submodules];
  // A folder without a repository: a command could make one, with its own settings.
  if (repository === undefined) return shared === true ? [folder, ...submodules] : [];
  return [...protectedPaths.filter((path) => !isInside(folder, path)), ...submodules];
}

/** The mount of this machine that a folder is in. */
function mountOf(folder: string): string {
  const points = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path !== "" && !path.includes("\\") && isInside(path, folder));
  return points.reduce((longest, path) => (path.length > longest.length ? path : longest), "/");
}

/** The real folder to hide; for a link in the workspace, its target. Empty if there is nothing to hide. */
function hiddenFolder(root: string, path: string): readonly string[] {
  try {
    const real = realpathSync(path);
    // A command cannot see the target of a link that leads out of the workspace.
    const isSeen = real === path || isInside(root, real);
    return isSeen && real !== root && statSync(real).isDirectory() ? [real] : [];
  } catch {
    return [];
  }
}

let visibleSystem: readonly Visible[] | undefined;
function visibleSystemParts(): readonly Visible[] {
  visibleSystem ??= systemParts();
  return visibleSystem;
}

const toolsByPath = new Map<string, readonly string[]>();

/** Cached, as the result is the same for every command with the same search path. */
function toolsOf(path: string, { root, hidden }: Workspace): readonly string[] {
  const key = JSON.stringify([path, root, hidden]);
  let tools = toolsByPath.get(key);
  if (tools === undefined) {
    const avoid = [root, ...hidden, ...(process.env.HOME === undefined ? [] : [process.env.HOME])];
    tools = toolFolders(path, avoid);
    if (toolsByPath.size > 200) toolsByPath.clear();
    toolsByPath.set(key, tools);
  }
  return tools;
}

/** Each mount slows a command down, and there may be hundreds of loaded package files. */
const maxPackageFiles = 32;

/** The existing paths of the workspace that must stay read-only; absolute. */
function readOnlyPathsOf(root: string, { readOnlyPaths = [] }: CommandAccess): readonly string[] {
  const real = readOnlyPaths.flatMap((path) => {
    try {
      const realPath = realpathSync(join(root, path));
      return realPath !== root && isInside(root, realPath) ? [realPath] : [];
    } catch {
      return [];
    }
  });
  const packageFiles = real.filter((path) => path.includes("/node_modules/", root.length));
  if (packageFiles.length <= maxPackageFiles) return real;
  const folders = packageFiles.map((path) => path.slice(0, path.indexOf("/node_modules/", root.length) + 13));
  return [...new Set([...real.filter((path) => !packageFiles.includes(path)), ...folders])];
}

/** Without paths below other ones. */
function outermost(paths: readonly string[]): readonly string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => other !== path && isInside(other, path)));
}

/** Opens a path whose folders are no links, which another process may have changed since kit looked. */
function openPath(path: string): number {
  const descriptor = openSync(path, onlyPath | constants.O_NOFOLLOW);
  if (readlinkSync(heldPath(descriptor)) === path) return descriptor;
  closeSync(descriptor);
  throw new KitError({
    code: "unavailable",
    message: "The command was not run: a folder of the workspace was replaced at that moment.",
    hint: "Try again.",
  });
}

/** O_PATH, which Node does not name: no rights to the file are needed, and pipes do not block. */
const onlyPath = 0o10000000;

/** Opens the proxy to the allowed hosts, with the environment variables by which programs find it. */
async function openProxyAccess(
  ownFolders: OwnFolders,
  allowed: readonly string[],
  cleanup: AsyncDisposableStack,
): Promise<{
  readonly socket: string;
  readonly port: number | undefined;
  readonly environment: Readonly<Record<string, string>>;
}> {
  const onSocket = process.platform === "linux";
  const socket = join(ownFolders.sockets, randomUUID().slice(0, 8));
  // On macOS every process reaches the loopback interface, so the proxy needs a token.
  const token = onSocket ? undefined : randomUUID();
  const proxy = await openProxy({ allowed, ...(token === undefined ? { at: socket } : { at: 0, token }) });
  cleanup.defer(() => proxy.close());
  const address = `http://${token === undefined ? "" : `kit:${token}@`}127.0.0.1:${proxy.port ?? bridgePort}`;
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
  return {
    socket,
    port: proxy.port,
    environment: {
      ...Object.fromEntries(names.map((name) => [name, address])),
      NO_PROXY: "",
      no_proxy: "",
      // Node's own fetch uses the proxy only if this is set.
      NODE_USE_ENV_PROXY: "1",
    },
  };
}
