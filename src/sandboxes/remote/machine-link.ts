import { randomUUID } from "node:crypto";
import { KitError } from "../../base/kit-error.ts";
import type { SandboxOwner } from "../contract.ts";
import type { RemoteDriver, RemoteMachine, RemoteRun } from "./driver.ts";
import type { MachineRecords } from "./records.ts";
import { reasonOf, remoteError } from "./remote-error.ts";
import { scripts } from "./scripts.ts";

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

/** How long a pause waits for an opening, in ms. */
const maxPauseWaitMs = 60_000;

export function labelsOf(project: string, owner: SandboxOwner): Readonly<Record<string, string>> {
  return {
    kit_project: project,
    kit_agent: owner.agent,
    kit_instance: owner.instance_id,
    kit_session: owner.session,
  };
}

/** The connection to a session's machine, which is started on first use. */
export class MachineLink {
  readonly #options: MachineLinkOptions;
  readonly #aliveMs: number;
  /** Distinguishes this link from others to the same machine, also of other processes. */
  readonly #user = randomUUID();
  #current: Promise<OpenMachine> | undefined;
  /** The machine that this link started, and that nothing has paused since; kept when the connection is lost. */
  #running: string | undefined;
  #pausing: Promise<void> | undefined;
  #aliveUntil = 0;
  #root: string;
  /** The number of running scripts. */
  #active = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: MachineLinkOptions) {
    this.#options = options;
    this.#aliveMs = options.idleMs + spareMs;
    this.#root = options.driver.folder;
  }

  /** Starts the machine if it does not run. */
  open(): Promise<OpenMachine> {
    if (this.#current === undefined) {
      const opening = this.#start();
      this.#current = opening;
      opening.catch(() => this.#forget(opening));
    }
    return this.#current;
  }

  /** The workspace's path on the machine, with links resolved (known after `open`) and as configured. */
  paths(): { readonly root: string; readonly calledRoot: string } {
    return { root: this.#root, calledRoot: this.#options.driver.folder };
  }

  /** Runs a script with the root of the workspace as its first argument. */
  async run(request: ScriptRun): Promise<ScriptResult> {
    this.#active += 1;
    clearTimeout(this.#idle);
    try {
      try {
        return await this.#attempt(request);
      } catch (error) {
        const reason = reasonOf(error);
        const canRetry = reason === "detached" || (reason === "lost" && request.repeatable === true);
        if (!canRetry || request.signal?.aborted === true) throw error;
        return await this.#attempt(request);
      }
    } finally {
      this.#active -= 1;
      const { driver, idleMs } = this.#options;
      if (this.#active === 0 && this.#running !== undefined && driver.pause !== undefined)
        this.#idle = setTimeout(() => void this.pause(), idleMs).unref();
    }
  }

  /** Pauses the machine, if the vendor can and no other link uses it; it keeps its files. */
  async pause(): Promise<void> {
    const { driver } = this.#options;
    clearTimeout(this.#idle);
    const previous = this.#current;
    this.#current = undefined;
    if ((previous === undefined && this.#running === undefined) || driver.pause === undefined)
      return await this.#pausing;
    const request = this.#pauseAfter(previous);
    this.#pausing = request;
    await request;
    if (this.#pausing === request) this.#pausing = undefined;
  }

  /** Ends this link, and leaves the machine running for the one that started it. */
  async leave(): Promise<void> {
    clearTimeout(this.#idle);
    this.#current = undefined;
    this.#running = undefined;
    await this.#options.records.leave(this.#options.owner, this.#user);
  }

  async #pauseAfter(opening: Promise<OpenMachine> | undefined): Promise<void> {
    const { driver, records, owner } = this.#options;
    await opening?.catch(() => undefined);
    const id = this.#running;
    this.#running = undefined;
    if (id === undefined) return;
    try {
      const pauseUnused = async (): Promise<void> => {
        await records.leave(owner, this.#user);
        if (!(await records.isUsed(owner, this.#aliveMs))) await driver.pause?.(id);
      };
      await records.exclusively(owner, pauseUnused, maxPauseWaitMs);
    } catch {
      // The vendor pauses the machine a little later.
    }
  }

  async #start(): Promise<OpenMachine> {
    const { records, owner } = this.#options;
    await this.#pausing;
    // If two callers open a new session at once, the second finds the machine of the first; and no other link pauses
    // the machine between its start and the note that this link uses it.
    return await records.exclusively(owner, () => this.#startMachine());
  }

  async #startMachine(): Promise<OpenMachine> {
    const { driver, records, owner, seed } = this.#options;
    await records.use(owner, this.#user);
    const { machine, isNew } = await this.#find();
    this.#running = machine.id;
    this.#aliveUntil = performance.now() + this.#aliveMs;
    try {
      const { isReady, ...prepared } = await prepare(driver, machine);
      const open = { machine, ...prepared };
      this.#root = open.root;
      if (!isReady) {
        await seed(open);
        await machine.run({ script: scripts.ready, args: [open.root], onOutput: () => undefined });
      }
      await records.write(owner, machine.id);
      return open;
    } catch (error) {
      // Without a record no session would use the machine, and it would cost money.
      if (isNew) {
        this.#running = undefined;
        await driver.destroy(machine.id).catch(() => undefined);
      }
      throw error;
    }
  }

  /** Finds or creates the session's machine; `isNew` if it was created now. */
  async #find(): Promise<{ readonly machine: RemoteMachine; readonly isNew: boolean }> {
    const { driver, records, owner, env, network } = this.#options;
    const recordedId = await records.read(owner);
    if (recordedId !== undefined) return { machine: await this.#attach(recordedId), isNew: false };
    const labels = labelsOf(await records.project(), owner);
    // A process that ended before writing its record, or another computer, may have created the machine.
    const [machine] = await driver.list(labels);
    if (machine !== undefined) return { machine: await this.#attach(machine.id), isNew: false };
    return { machine: await driver.create({ labels, env, aliveMs: this.#aliveMs, network }), isNew: true };
  }

  async #attach(id: string): Promise<RemoteMachine> {
    // The vendor may resume the machine although its answer gets lost.
    this.#running = id;
    try {
      return await this.#options.driver.attach(id, { aliveMs: this.#aliveMs });
    } catch (error) {
      if (reasonOf(error) === "gone") await this.#removeRecord();
      throw error;
    }
  }

  async #removeRecord(): Promise<void> {
    this.#running = undefined;
    await this.#options.records.remove(this.#options.owner);
  }

  #forget(opening: Promise<OpenMachine>): void {
    if (this.#current === opening) this.#current = undefined;
  }

  async #stayAlive(machine: RemoteMachine): Promise<void> {
    if (performance.now() < this.#aliveUntil - this.#aliveMs / 2) return;
    this.#aliveUntil = performance.now() + this.#aliveMs;
    const { records, owner } = this.#options;
    // If the machine stops too early, the command itself fails.
    const isKept = machine.keepAlive(this.#aliveMs);
    await Promise.allSettled([isKept, records.use(owner, this.#user)]);
  }

  async #attempt(request: ScriptRun): Promise<ScriptResult> {
    const opening = this.open();
    const { machine } = await opening;
    await this.#stayAlive(machine);
    const beat = setInterval(() => void this.#stayAlive(machine), this.#aliveMs / 4).unref();
    const output = { stdout: "", stderr: "" };
    try {
      const { exitCode } = await machine.run({
        ...request,
        args: [this.#root, ...request.args],
        onOutput:
          request.onOutput ??
          ((stream, text) => {
            output[stream] += text;
          }),
      });
      return { exitCode, ...output };
    } catch (error) {
      const reason = reasonOf(error);
      // A caller that aborts ends its own request: the connection works.
      const isBroken = reason === "lost" && request.signal?.aborted !== true;
      if (reason === "detached" || reason === "gone" || isBroken) this.#forget(opening);
      if (reason === "gone") await this.#removeRecord();
      throw error;
    } finally {
      clearInterval(beat);
    }
  }
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
