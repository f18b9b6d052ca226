import { KitError } from "../../base/kit-error.ts";
import type { SandboxOwner } from "../contract.ts";
import type { MachineSpec, RemoteDriver, RemoteMachine, RemoteRun } from "./driver.ts";
import type { MachineRecords } from "./records.ts";
import { reasonOf, remoteError } from "./remote-error.ts";
import { scripts } from "./scripts.ts";

/** A session's machine, which is there when it is needed. */
export interface MachineLink {
  /** The machine as it was opened. Starts it when it does not run. */
  open(): Promise<OpenMachine>;
  /** Where the workspace lies on the machine, as far as is known by now: with links resolved, and as it is called. */
  place(): { readonly root: string; readonly calledRoot: string };
  /** Runs a script with the root of the workspace as its first argument. */
  run(request: ScriptRun): Promise<ScriptResult>;
  /** Lets the machine rest, with its files. */
  rest(): Promise<void>;
}

export interface OpenMachine {
  readonly machine: RemoteMachine;
  /** The workspace, with links resolved. */
  readonly root: string;
  /** The program by which files are kept from commands; empty where the machine has none that works. */
  readonly wall: string;
}

export interface ScriptRun
  extends Pick<RemoteRun, "script" | "args" | "stdin" | "env" | "isCommand" | "signal"> {
  /** Whether it may run twice: a connection that is lost is then tried again. */
  readonly repeatable?: boolean;
  /** Hears the output, which is otherwise collected. */
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
  /** How long nothing has to happen before the machine is paused, in milliseconds. */
  readonly idleMs: number;
  /** Fills the workspace of a new machine. */
  readonly seed: (open: OpenMachine) => Promise<void>;
}

/** Beyond kit's own pause: when kit itself is gone, the vendor pauses the machine a little later. */
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
  let resting: Promise<void> | undefined;
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
  /** The machine of this session, and whether it was made just now. */
  const find = async (): Promise<{ readonly machine: RemoteMachine; readonly isNew: boolean }> => {
    const known = await records.read(owner);
    if (known !== undefined) return { machine: await attach(known), isNew: false };
    const labels = labelsOf(await records.project(), owner);
    // It may have been made by a process that ended before it could note that, or on another computer.
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
    await resting;
    // When two callers open a new session at once, the second finds the machine of the first.
    return (await records.read(owner)) === undefined
      ? await records.alone(owner, startMachine)
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
      // A machine that no session can use would cost money for nothing.
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
  const rest = async (): Promise<void> => {
    clearTimeout(idle);
    const was = current;
    current = undefined;
    if (was === undefined || driver.pause === undefined) return await resting;
    const pausing = was
      .then(async ({ machine }) => await driver.pause?.(machine.id))
      // The vendor pauses it by itself, a little later.
      .catch(() => undefined);
    resting = pausing.finally(() => {
      if (resting === pausing) resting = undefined;
    });
    await pausing;
  };
  const stayAlive = async (machine: RemoteMachine): Promise<void> => {
    if (performance.now() < aliveUntil - aliveMs / 2) return;
    aliveUntil = performance.now() + aliveMs;
    // A command that outlives the machine's time says so by itself.
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
        const again = reason === "detached" || (reason === "lost" && request.repeatable === true);
        if (!again || request.signal?.aborted === true) throw error;
        return await attempt(request);
      }
    } finally {
      active -= 1;
      if (active === 0 && current !== undefined && driver.pause !== undefined)
        idle = setTimeout(() => void rest(), idleMs).unref();
    }
  };
  return { open, run, rest, place: () => ({ root, calledRoot: driver.folder }) };
}

/** Makes the workspace, and tries the tools. */
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
  const [lacks = "", wall = "", root = "", ready] = text.split("\n");
  if (lacks !== "") {
    throw new KitError({
      code: "unavailable",
      message: `The image of the ${driver.name} machine lacks what kit needs: ${lacks.replace(/^, /, "")}.`,
      hint: "Take an image with the GNU tools, such as Debian or Ubuntu. In Alpine: apk add coreutils findutils grep tar gzip util-linux.",
      meta: { reason: "image" },
    });
  }
  if (exitCode === 75) {
    const hint = `The user of the image has to be allowed to make ${driver.folder}; another folder can be set.`;
    throw new KitError({
      code: "unavailable",
      message: `The workspace cannot be made on the ${driver.name} machine.`,
      hint,
    });
  }
  if (exitCode !== 0 || !root.startsWith("/")) throw remoteError(driver.name, "detached");
  return { root, wall, isReady: ready === "ready" };
}
