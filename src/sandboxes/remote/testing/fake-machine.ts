import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A vendor's machine for tests: a folder, which its commands see as `/home/user` or `/home/daytona`, and real processes.
 * Its processes are not isolated from this computer, so no hostile code runs on it.
 */
export interface FakeMachine {
  readonly id: string;
  /** The folder that its commands see as `/home/user`. */
  readonly home: string;
  readonly createdAt: Date;
  readonly labels: Readonly<Record<string, string>>;
  state: "running" | "paused";
  start(program: FakeProgram): ChildProcess;
  /** Converts a path of the machine to one of this computer. */
  placeOf(path: string): string;
  /** Ends all its processes. */
  stop(): void;
  destroy(): void;
}

export interface FakeProgram {
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface FakeMachineOptions {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** The folder with its programs; default: the system's. */
  readonly path?: string | undefined;
  /** Called with every line that it runs. */
  readonly onLine?: (line: string) => void;
}

const knownFolders = /\/home\/(?:user|daytona)|\/tmp\/(?=\.kit-in-)/g;

export function createFakeMachine({ id, labels, env, path, onLine }: FakeMachineOptions): FakeMachine {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "kit-fake-machine-")));
  mkdirSync(join(home, "tmp"));
  const placed = (text: string): string =>
    text.replaceAll(knownFolders, (place) => (place === "/tmp/" ? `${home}/tmp/` : home));
  const programs = new Set<ChildProcess>();
  const stop = (): void => {
    for (const { pid } of programs) endGroup(pid);
    for (const pid of descendants(id)) end(pid);
  };
  return {
    id,
    home,
    labels,
    createdAt: new Date(),
    state: "running",
    start({ words, env: variables = {} }) {
      onLine?.(words.join(" "));
      const [program = "", ...args] = words.map(placed);
      const child = spawn(program, args, {
        cwd: home,
        env: {
          PATH: path ?? "/usr/local/bin:/usr/bin:/bin",
          HOME: home,
          TMPDIR: join(home, "tmp"),
          LANG: "C.UTF-8",
          ...env,
          ...variables,
          KIT_FAKE_MACHINE: id,
        },
        detached: true,
        stdio: ["pipe", "pipe", "pipe"],
      });
      child.stdin?.on("error", () => undefined);
      programs.add(child);
      child.once("close", () => programs.delete(child));
      return child;
    },
    placeOf: placed,
    stop,
    destroy() {
      stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** All processes that descend from the machine's, found by their environment. */
function descendants(id: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(`KIT_FAKE_MACHINE=${id}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

function endGroup(pid: number | undefined): void {
  if (pid !== undefined) end(-pid);
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended meanwhile.
  }
}
