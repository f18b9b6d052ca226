import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import type { IsolationMode, IsolationOptions, SandboxIsolation } from "../../contract.ts";
import { enclosure, sealArguments } from "./bubblewrap.ts";
import { defaultLimits, describeLimits } from "./command-limits.ts";
import { systemParts } from "./system-folders.ts";

/** This machine's program to isolate commands, or the reason why there is none. */
export type FoundWall =
  | { readonly wall: "seatbelt"; readonly program: string }
  | { readonly wall: "bubblewrap"; readonly program: string; readonly canSeal: boolean }
  | { readonly wall: "none"; readonly reason: string; readonly hint: string };

const probeTimeoutMs = 5_000;
let found: Promise<FoundWall> | undefined;

/** Tests how this machine can isolate commands; the process caches the result. */
export function findWall(): Promise<FoundWall> {
  found ??= findWallOf(process.platform);
  return found;
}

/** Uses bubblewrap on Linux and seatbelt on macOS; elsewhere returns the reason why there is no isolation. */
export async function findWallOf(platform: NodeJS.Platform): Promise<FoundWall> {
  if (platform === "darwin") return await findSeatbelt();
  if (platform === "linux") return await findBubblewrap();
  return {
    wall: "none",
    reason: `kit cannot isolate commands on ${platform === "win32" ? "Windows" : platform}.`,
    hint: "Run agents that execute commands in a remote sandbox, or run kit on Linux (WSL 2 included) or macOS.",
  };
}

/** Describes the isolation of a sandbox's commands. */
export async function isolationOf(
  options: IsolationOptions,
  /** Why commands of this workspace cannot be isolated. */
  obstacle?: string,
): Promise<SandboxIsolation> {
  if (options.isolation === "off") {
    return { wall: "none", description: "Commands run without isolation: sandbox.isolation is off." };
  }
  const wall = await findWall();
  if (wall.wall === "none") {
    return { wall: "none", description: `Commands run without isolation: ${wall.reason}`, hint: wall.hint };
  }
  if (obstacle !== undefined)
    return { wall: "none", description: `Commands run without isolation: ${obstacle}` };
  const limits =
    wall.wall === "bubblewrap" ? `; ${describeLimits({ ...defaultLimits, ...options.limits })}` : "";
  return {
    wall: wall.wall,
    description: `Commands are walled in by ${wall.wall}: they see the workspace, programs and libraries, and reach no host that the agent is not granted${limits}.`,
  };
}

/** Throws `unavailable` if isolation is required and there is none. */
export function checkRequired(mode: IsolationMode | undefined, isolation: SandboxIsolation): void {
  if (mode !== "required" || isolation.wall !== "none") return;
  throw new KitError({
    code: "unavailable",
    message: `No command is run, because sandbox.isolation is "required". ${isolation.description}${isolation.hint === undefined ? "" : ` ${isolation.hint}`}`,
    hint: 'Or set sandbox.isolation to "auto".',
  });
}

/** `required` in the configuration always wins; otherwise the sandbox's option takes precedence. */
export function mergeIsolation(
  option: IsolationOptions,
  configured: IsolationOptions | undefined,
): IsolationOptions {
  const isolation =
    configured?.isolation === "required" ? "required" : (option.isolation ?? configured?.isolation);
  return { isolation: isolation ?? "auto", limits: { ...configured?.limits, ...option.limits } };
}

async function findBubblewrap(): Promise<FoundWall> {
  const program = findProgram("bwrap");
  if (program === undefined) {
    return {
      wall: "none",
      reason: "bubblewrap is not installed.",
      hint: "Install it: 'apt install bubblewrap', 'dnf install bubblewrap' or 'apk add bubblewrap'.",
    };
  }
  const [failure, options, noSeal] = await Promise.all([
    probe(program),
    optionsOf(program),
    probe(program, sealArguments(["/"])),
  ]);
  // kit mounts the workspace by descriptors, so that no link can lead a mount elsewhere.
  if (failure === undefined && !options.includes("--ro-bind-fd")) {
    return {
      wall: "none",
      reason: "this bubblewrap does not know --bind-fd.",
      hint: "Update it: version 0.10 has the option, and so have the security updates of Debian, Ubuntu and Red Hat for older versions.",
    };
  }
  if (failure === undefined) return { wall: "bubblewrap", program, canSeal: noSeal === undefined };
  return { wall: "none", reason: `bubblewrap does not work here: ${failure}.`, hint: hintFor(failure) };
}

/** Runs a trivial command with the options of every command. Returns bubblewrap's first error line, or `undefined`. */
async function probe(program: string, more: readonly string[] = []): Promise<string | undefined> {
  const system = systemParts().flatMap(({ path, linksTo }) =>
    linksTo === undefined ? ["--ro-bind", path, path] : ["--symlink", linksTo, path],
  );
  const args = [
    ...enclosure,
    ...system,
    "--proc",
    "/proc",
    "--remount-ro",
    "/proc",
    "--dev",
    "/dev",
    ...more,
    "--",
    "/bin/sh",
    "-c",
    ":",
  ];
  return await new Promise((resolve) => {
    execFile(
      program,
      args,
      { timeout: probeTimeoutMs, killSignal: "SIGKILL", env: {} },
      (error, _, stderr) => {
        if (error === null) resolve(undefined);
        else if (error.killed === true) resolve("it does not answer");
        else resolve(firstLine(stderr) ?? "it ends with an error");
      },
    );
  });
}

async function optionsOf(program: string): Promise<string> {
  return await new Promise((resolve) => {
    execFile(program, ["--help"], { timeout: probeTimeoutMs, killSignal: "SIGKILL", env: {} }, (_, stdout) =>
      resolve(stdout),
    );
  });
}

function firstLine(text: string): string | undefined {
  const line = text
    .split("\n", 1)[0]
    ?.replace(/^bwrap: /, "")
    .trim();
  return line === undefined || line === "" ? undefined : line;
}

function hintFor(failure: string): string {
  if (/namespace|permitted|denied|clone|uid map/i.test(failure)) {
    return "Allow user namespaces: in Docker with --security-opt seccomp=unconfined --security-opt systempaths=unconfined, on Ubuntu with an AppArmor profile for bwrap, elsewhere with sysctl user.max_user_namespaces.";
  }
  return "See docs/sandboxes.md.";
}

async function findSeatbelt(): Promise<FoundWall> {
  const program = "/usr/bin/sandbox-exec";
  const works = await new Promise<boolean>((resolve) => {
    const args = ["-p", "(version 1)(allow default)", "/usr/bin/true"];
    execFile(program, args, { timeout: probeTimeoutMs, killSignal: "SIGKILL" }, (error) =>
      resolve(error === null),
    );
  });
  if (works) return { wall: "seatbelt", program };
  return {
    wall: "none",
    reason: "sandbox-exec does not work here.",
    hint: "A process inside a sandbox cannot create another one: start kit outside of it.",
  };
}

/** Prefers folders that only root can write to over the search path. */
function findProgram(name: string): string | undefined {
  const folders = ["/usr/bin", "/bin", "/usr/local/bin", ...(process.env.PATH ?? "").split(delimiter)];
  return folders
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, name))
    .find(isRunnable);
}

function isRunnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
