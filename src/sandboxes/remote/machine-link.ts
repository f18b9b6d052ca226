import { KitError } from "../../base/kit-error.ts";
import type { SandboxOwner } from "../contract.ts";
import type { MachineSpec, RemoteDriver, RemoteMachine, RemoteRun } from "./driver.ts";
import type { MachineRecords } from "./records.ts";
import { reasonOf, remoteError } from "./remote-error.ts";
import { scripts } from "./scripts.ts";

/** The connection to a session's machine, which is started on first use. */
export interface MachineLink {
  /** Starts the machine if it does not run. */
  open(): Promise<OpenMachine>;
  /** The workspace's path on the machine, with links resolved (known after `open`) and as configured. */
  paths(): { readonly root: string; readonly calledRoot: string };
  /** Runs a script with the root of the workspace as its first argument. */
  run(request: ScriptRun): Promise<ScriptResult>;
  /** Pauses the machine, if the vendor can; it keeps its files. */
  pause(): Promise<void>;
}

export interface OpenMachine {
  readonly machine: RemoteMachine;
  /** The workspace, with links resolved. */
  readonly root: string;
  /** The program that makes paths read-only for commands; "" if the machine has none that works. */
  readonly wall: string;
}

export interface ScriptRun
  extends Pick<RemoteRun, "script" | "args" | "stdin" | "env" | "isCommand" | "signal"> {
  /** Whether the script can run twice, so that it is retried after a lost connection. */
  readonly repeatable?: boolean;
  /** Called with the output, which is otherwise collected in the result. */
  readonly onOutput?: RemoteRun["onOutput"];
}

export interface ScriptResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface MachineLinkOptions {
  readonly driver: RemoteDriver;
  readonly records: MachineRecords;
  readonly owner: SandboxOwner;
  readonly env: Readonly<Record<string, string>>;
  readonly network?: readonly string[] | undefined;
  /** Milliseconds without a script after which the machine is paused. */
  readonly idleMs: number;
  /** Called once to fill the workspace of a new machine. */
  readonly seed: (open: OpenMachine) => Promise<void>;
}

/** Added to `idleMs` for the vendor's own pause, which takes effect if kit has ended. */
const spareMs = 120_000;

export function labelsOf(project: string, owner: SandboxOwner): Readonly<Record<string, string>> {
  return {
    kit_project: project,
    kit_agent: owner.agent,
    kit_instance: owner.instance_id,
    kit_session: owner.session,
  };
}

export function createMachineLink(options: MachineLinkOptions): MachineLink {
  const { driver, records, owner, idleMs } = options;
  const aliveMs = idleMs + spareMs;
  let current: Promise<OpenMachine> | undefined;
  let pausing: Promise<void> | undefined;
  let aliveUntil = 0;
  let root = driver.folder;
  let active = 0;
  let idle: NodeJS.Timeout | undefined;

  const attach = async (id: string): Promise<RemoteMachine> => {
    try {
      return await driver.attach(id, { aliveMs });
    } catch (error) {
      if (reasonOf(error) === "gone") await records.remove(owner);
      throw error;
    }
  };
  /** Finds or creates the session's machine; `isNew` if it was created now. */
  const find = async (): Promise<{ readonly machine: RemoteMachine; readonly isNew: boolean }> => {
    const recordedId = await records.read(owner);
    if (recordedId !== undefined) return { machine: await attach(recordedId), isNew: false };
    const labels = labelsOf(await records.project(), owner);
    // A process that ended before writing its record, or another computer, may have created the machine.
    const [made] = await driver.list(labels);
    if (made !== undefined) return { machine: await attach(made.id), isNew: false };
    const spec: MachineSpec = {
      labels,
      env: options.env,
      aliveMs,
      network: options.network,
    };
    return { machine: await driver.create(spec), isNew: true };
  };
  const start = async (): Promise<OpenMachine> => {
    await pausing;
    // If two callers open a new session at once, the second finds the machine of the first.
    return (await records.read(owner)) === undefined
      ? await records.exclusively(owner, startMachine)
      : await startMachine();
  };
  const startMachine = async (): Promise<OpenMachine> => {
    const { machine, isNew } = await find();
    aliveUntil = performance.now() + aliveMs;
    try {
      const { isReady, ...prepared } = await prepare(driver, machine);
      const open = { machine, ...prepared };
      root = open.root;
      if (!isReady) {
        await options.seed(open);
        await machine.run({ script: scripts.ready, args: [open.root], onOutput: () => undefined });
      }
      await records.write(owner, machine.id);
      return open;
    } catch (error) {
      // Without a record no session would use the machine, and it would cost money.
      if (isNew) await driver.destroy(machine.id).catch(() => undefined);
      throw error;
    }
  };
  const open = (): Promise<OpenMachine> => {
    if (current === undefined) {
      const opening = start();
      current = opening;
      opening.catch(() => forget(opening));
    }
    return current;
  };
  const forget = (which: Promise<OpenMachine>): void => {
    if (current === which) current = undefined;
  };
  const pause = async (): Promise<void> => {
    clearTimeout(idle);
    const previous = current;
    current = undefined;
    if (previous === undefined || driver.pause === undefined) return await pausing;
    const request = previous
      .then(async ({ machine }) => await driver.pause?.(machine.id))
      // The vendor pauses the machine a little later.
      .catch(() => undefined);
    pausing = request;
    await request;
    if (pausing === request) pausing = undefined;
  };
  const stayAlive = async (machine: RemoteMachine): Promise<void> => {
    if (performance.now() < aliveUntil - aliveMs / 2) return;
    aliveUntil = performance.now() + aliveMs;
    // If the machine stops too early, the command itself fails.
    await machine.keepAlive(aliveMs).catch(() => undefined);
  };
  const attempt = async (request: ScriptRun): Promise<ScriptResult> => {
    const opening = open();
    const { machine } = await opening;
    await stayAlive(machine);
    const beat = setInterval(() => void stayAlive(machine), aliveMs / 4).unref();
    const output = { stdout: "", stderr: "" };
    try {
      const { exitCode } = await machine.run({
        ...request,
        args: [root, ...request.args],
        onOutput:
          request.onOutput ??
          ((stream, text) => {
            output[stream] += text;
          }),
      });
      return { exitCode, ...output };
    } catch (error) {
      const reason = reasonOf(error);
      if (reason === "detached" || reason === "gone" || reason === "lost") forget(opening);
      if (reason === "gone") await records.remove(owner);
      throw error;
    } finally {
      clearInterval(beat);
    }
  };
  const run = async (request: ScriptRun): Promise<ScriptResult> => {
    active += 1;
    clearTimeout(idle);
    try {
      try {
        return await attempt(request);
      } catch (error) {
        const reason = reasonOf(error);
        const canRetry = reason === "detached" || (reason === "lost" && request.repeatable === true);
        if (!canRetry || request.signal?.aborted === true) throw error;
        return await attempt(request);
      }
    } finally {
      active -= 1;
      if (active === 0 && current !== undefined && driver.pause !== undefined)
        idle = setTimeout(() => void pause(), idleMs).unref();
    }
  };
  return { open, run, pause, paths: () => ({ root, calledRoot: driver.folder }) };
}

/** Creates the workspace and checks the tools of the image. */
async function prepare(
  driver: RemoteDriver,
  machine: RemoteMachine,
): Promise<Pick<OpenMachine, "root" | "wall"> & { readonly isReady: boolean }> {
  let text = "";
  const { exitCode } = await machine.run({
    script: scripts.open,
    args: [driver.folder],
    onOutput(stream, chunk) {
      if (stream === "stdout") text += chunk;
    },
  });
  const [missingTools = "", wall = "", root = "", ready] = text.split("\n");
  if (missingTools !== "") {
    throw new KitError({
      code: "unavailable",
      message: `The image of the ${driver.name} machine lacks tools that kit needs: ${missingTools.replace(/^, /, "")}.`,
      hint: "Use an image with the GNU tools, such as Debian or Ubuntu. In Alpine: apk add coreutils findutils grep tar gzip util-linux.",
      meta: { reason: "image" },
    });
  }
  if (exitCode === 75) {
    const hint = `Let the user of the image create ${driver.folder}, or set the option folder of the sandbox.`;
    throw new KitError({
      code: "unavailable",
      message: `The workspace cannot be created on the ${driver.name} machine.`,
      hint,
    });
  }
  if (exitCode !== 0 || !root.startsWith("/")) throw remoteError(driver.name, "detached");
  return { root, wall, isReady: ready === "ready" };
}
