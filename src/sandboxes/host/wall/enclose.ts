import { randomUUID } from "node:crypto";
import { closeSync, lstatSync, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import type { CommandAccess, SandboxIsolation } from "../../contract.ts";
import { isInside, type Workspace } from "../workspace-path.ts";
import { canHold, innerHome, innerSocket, toBubblewrap } from "./bubblewrap.ts";
import { defaultLimits, limitedShell, openControlGroup } from "./command-limits.ts";
import { checkRequired, findWall, isolationOf } from "./find-wall.ts";
import { gitPartsOf, undoUnwanted } from "./git-parts.ts";
import { type OwnFolders, ownFoldersOf, wallParts } from "./own-folders.ts";
import { bridgeArguments, bridgePort, openProxy } from "./proxy.ts";
import { toSeatbeltProfile } from "./seatbelt.ts";
import { systemParts, toolFolders, type Visible } from "./system-folders.ts";

/** A command as it is started. */
export interface Launch {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Bubblewrap, which tells of the command on descriptor 3 and reads its filter, an open file, from 4. */
  readonly wall?: { readonly filter: number | undefined };
  /** Ends what was opened for the command, once it has ended. */
  readonly close?: () => Promise<void>;
}

interface Command extends Launch {
  /** Where it starts: absolute, without links. */
  readonly folder: string;
  readonly access: CommandAccess;
}

/** The wall around the commands of a workspace. */
export function workspaceIsolation({ root, isolation }: Workspace): Promise<SandboxIsolation> {
  const obstacle = canHold(root) ? undefined : "the workspace holds folders of the system.";
  return isolationOf(isolation, obstacle);
}

/** Puts a wall around a command where one stands. Throws `unavailable` where one is required and none does. */
export async function enclose(workspace: Workspace, command: Command): Promise<Launch> {
  const { wall, ...isolation } = await workspaceIsolation(workspace);
  checkRequired(workspace.isolation.isolation, { wall, ...isolation });
  const found = await findWall();
  if (wall === "none" || found.wall === "none") return command;
  await using cleanup = new AsyncDisposableStack();
  const { root } = workspace;
  const { write = true, network = [] } = command.access;
  const [own, { etc, filter: filterFile }] = await Promise.all([ownFoldersOf(workspace), wallParts()]);
  const git = gitPartsOf(root, write);
  if (write) {
    cleanup.defer(() => undoUnwanted(git));
    const { stateFolder } = workspace;
    if (stateFolder !== undefined && lstatSync(stateFolder, { throwIfNoEntry: false }) === undefined)
      mkdirSync(stateFolder);
  }
  const plan = {
    root,
    write,
    seen: [...toolsOf(command.environment.PATH ?? "", workspace), ...git.seen],
    changed: git.changed,
    kept: write
      ? [
          ...git.kept.filter((path) => !isInside(root, path)),
          ...keepTogether(root, [...git.kept, ...keptOf(root, command.access)], cleanup),
        ]
      : [],
    hidden: workspace.hidden.flatMap((path) => hiddenFolder(root, path)),
  };
  const limits = { ...defaultLimits, ...workspace.isolation.limits };
  const words = [command.program, ...command.args];
  const way = network.length === 0 ? undefined : await openWay(own, network, cleanup);
  const environment = { ...command.environment, ...(way?.environment ?? {}) };
  const close = (): (() => Promise<void>) => {
    const opened = cleanup.move();
    return () => opened.disposeAsync();
  };
  if (found.wall === "seatbelt") {
    const hidden = plan.hidden.filter((path) => !isInside(path, root));
    const profile = toSeatbeltProfile({ ...plan, hidden, own: own.folder, proxyPort: way?.port });
    const args = ["-p", profile, ...limitedShell(limits, false), ...words];
    return {
      program: found.program,
      args,
      environment: { ...environment, HOME: own.home, TMPDIR: own.temporary },
      close: close(),
    };
  }
  const group = openControlGroup(limits);
  if (group !== undefined) cleanup.defer(() => group.close());
  const filter = filterFile === undefined ? undefined : openSync(filterFile, "r");
  if (filter !== undefined) cleanup.defer(() => closeSync(filter));
  const [program = "", ...args] = [
    ...(group?.prefix ?? []),
    found.program,
    ...toBubblewrap({
      ...plan,
      folder: command.folder,
      system: system(),
      etc,
      own,
      socket: way?.socket,
      memoryBytes: limits.memoryMb * 1024 * 1024,
    }),
    ...["--json-status-fd", "3", ...(filter === undefined ? [] : ["--seccomp", "4"]), "--"],
    ...limitedShell(limits, group !== undefined),
    ...(way === undefined ? [] : bridgeArguments(innerSocket)),
    ...words,
  ];
  return {
    program,
    args,
    environment: { ...environment, HOME: innerHome, TMPDIR: "/tmp" },
    wall: { filter },
    close: close(),
  };
}

/** A folder that is hidden; one that a link of the workspace leads to is hidden where it lies. */
function hiddenFolder(root: string, path: string): readonly string[] {
  try {
    const real = realpathSync(path);
    // Beyond the workspace a link leads to nothing that a command sees.
    const isSeen = real === path || isInside(root, real);
    return isSeen && real !== root && statSync(real).isDirectory() ? [real] : [];
  } catch {
    return [];
  }
}

let systemSeen: readonly Visible[] | undefined;
function system(): readonly Visible[] {
  systemSeen ??= systemParts();
  return systemSeen;
}

const toolsByPath = new Map<string, readonly string[]>();

/** The same for every command of a search path: it is looked for once. */
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

/** Each mount costs a command time; of packages that the process has loaded there may be hundreds of files. */
const maxKeptOfPackages = 32;

/** The paths of the workspace that a command must leave as they are, those which are there; absolute. */
function keptOf(root: string, { readOnlyPaths = [] }: CommandAccess): readonly string[] {
  const real = readOnlyPaths.flatMap((path) => {
    try {
      const found = realpathSync(join(root, path));
      return found !== root && isInside(root, found) ? [found] : [];
    } catch {
      return [];
    }
  });
  const ofPackages = real.filter((path) => path.includes("/node_modules/", root.length));
  if (ofPackages.length <= maxKeptOfPackages) return real;
  const folders = ofPackages.map((path) => path.slice(0, path.indexOf("/node_modules/", root.length) + 13));
  return [...new Set([...real.filter((path) => !ofPackages.includes(path)), ...folders])];
}

/** The paths that running commands with write access hold, by workspace. */
const keeping = new Map<string, Set<ReadonlySet<string>>>();

/**
 * The ones of `paths` below the root that no running command can replace by a link; it holds them too.
 * Otherwise a command could have another one's wall lead out of the workspace while that is built.
 */
function keepTogether(
  root: string,
  paths: readonly string[],
  cleanup: AsyncDisposableStack,
): readonly string[] {
  const running = keeping.get(root) ?? new Set();
  keeping.set(root, running);
  const isKept = (path: string): boolean => [...running].every((kept) => kept.has(path));
  const inside = [...new Set(paths)].filter((path) => isInside(root, path) && isKept(path));
  const kept = new Set(
    inside.filter((path) => !inside.some((other) => other !== path && isInside(other, path))),
  );
  running.add(kept);
  cleanup.defer(() => {
    running.delete(kept);
    if (running.size === 0) keeping.delete(root);
  });
  return [...kept];
}

/** Opens the way to the hosts that a command may reach, with the variables by which programs find it. */
async function openWay(
  own: OwnFolders,
  allowed: readonly string[],
  cleanup: AsyncDisposableStack,
): Promise<{
  readonly socket: string;
  readonly port: number | undefined;
  readonly environment: Readonly<Record<string, string>>;
}> {
  const onSocket = process.platform === "linux";
  const socket = join(own.sockets, randomUUID().slice(0, 8));
  // Beyond this machine's wall everybody reaches the loopback interface, so the proxy asks who it is.
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
      // Node's own fetch asks for it.
      NODE_USE_ENV_PROXY: "1",
    },
  };
}
