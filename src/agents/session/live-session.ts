import { raceSignal } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Message } from "../../protocol/message.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { OpenSessionKey } from "../../protocol/session-name.ts";
import type { Sandbox, SandboxFactory, SandboxOwner } from "../../sandboxes/contract.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type {
  Harness,
  LiveSession,
  LiveSessionOptions,
  Operation,
  OperationRequest,
  Toolkit,
} from "../agent-runtime.ts";
import type { AgentProfile } from "../define/agent-profile.ts";
import { loadState, type SessionState } from "../log/session-state.ts";
import { Suspension } from "../log/suspension.ts";
import { SessionToolkit } from "../operations/toolkit.ts";
import { folderAt, type Workplace } from "../project-context.ts";
import { SessionPrompt } from "../prompt/system-prompt.ts";
import { RunningOperation, runOperation } from "./run-operation.ts";

interface SessionSandbox {
  readonly opening: Promise<Sandbox>;
  opened: Sandbox | undefined;
}

/** A class, because there may be thousands: their methods are shared. */
export class SessionInMemory implements LiveSession {
  readonly key: SessionKey;
  readonly profile: AgentProfile;
  readonly depth: number;
  readonly queue: OperationQueue;
  readonly prompt: SessionPrompt = new SessionPrompt();
  readonly #harness: Harness;
  readonly #options: LiveSessionOptions;
  #state: SessionState | undefined;
  #loading: Promise<SessionState> | undefined;
  #sandbox: SessionSandbox | undefined;
  #workplace: Workplace | undefined;
  #toolkit: Toolkit | undefined;
  #running: RunningOperation | undefined;

  constructor(harness: Harness, name: string, options: LiveSessionOptions) {
    this.key = new OpenSessionKey({ agent: harness.name, instance_id: harness.id }, name);
    this.profile = options.profile ?? harness.profile;
    this.depth = options.depth ?? 0;
    this.queue = new OperationQueue(harness, this);
    this.#harness = harness;
    this.#options = options;
  }

  get current(): Operation | undefined {
    return this.#running?.operation;
  }

  toolkit(): Toolkit {
    this.#toolkit ??= new SessionToolkit(this.#harness, this);
    return this.#toolkit;
  }

  sandbox(): Promise<Sandbox> {
    if (this.#options.sandbox !== undefined) return this.#options.sandbox.sandbox();
    if (this.#sandbox === undefined) {
      const created: SessionSandbox = { opening: this.#openSandbox(), opened: undefined };
      this.#sandbox = created;
      created.opening.then(
        (sandbox) => {
          created.opened = sandbox;
        },
        () => {
          // The next caller tries again.
          if (this.#sandbox === created) this.#sandbox = undefined;
        },
      );
    }
    return this.#sandbox.opening;
  }

  async #openSandbox(): Promise<Sandbox> {
    const { cwd } = this.profile;
    const opened = await this.#factory.open(this.#owner);
    return cwd === undefined ? opened : opened.at(cwd);
  }

  async workplace(signal: AbortSignal): Promise<Workplace> {
    const known = this.located() ?? (await this.#options.sandbox?.workplace(signal));
    if (known !== undefined) return known;
    // Asks the open sandbox. If opening fails, the tools report it.
    const sandbox = await raceSignal(this.sandbox(), signal).catch(() => undefined);
    const { cwd = this.profile.cwd ?? "", hostRoot } = sandbox ?? {};
    // A workspace that was just created may know its location.
    const location =
      hostRoot === undefined ? this.#factory.locate?.(this.#owner) : { folder: hostRoot, shared: true };
    return location === undefined ? { cwd, sandbox } : { cwd, location };
  }

  located(): Workplace | undefined {
    if (this.#options.sandbox !== undefined) return this.#options.sandbox.located();
    if (this.#workplace !== undefined) return this.#workplace;
    const location = this.#factory.locate?.(this.#owner);
    if (location === undefined) return undefined;
    const { cwd } = this.profile;
    this.#workplace = { location, cwd: cwd === undefined ? "" : folderAt({ location, cwd: "" }, cwd) };
    return this.#workplace;
  }

  get #factory(): SandboxFactory {
    return this.profile.sandbox ?? this.#harness.runtime.sandbox;
  }

  get #owner(): SandboxOwner {
    const { projectRoot, isolation } = this.#harness.runtime;
    const { skills, allowNetwork: network } = this.profile;
    const { agent, instance_id, session } = this.key;
    const owner = { agent, instance_id, session, network, project_root: projectRoot, isolation };
    const folders = skills?.flatMap(({ folder }) => folder ?? []) ?? none;
    return folders.length === 0 ? owner : { ...owner, skill_folders: folders };
  }

  operate<Value>(request: OperationRequest, work: (operation: Operation) => Promise<Value>): Promise<Value> {
    // No `async`: its frame would live as long as the operation.
    try {
      this.#harness.liveSessions.markBusy(this);
      // A task's origin is that of its parent.
      const { runtime, events } = this.#harness;
      const origin =
        request.parent === undefined ? (runtime.origins?.getStore() ?? events.tracing?.active()) : undefined;
      const turn = this.queue.enter(request.signal);
      return turn === undefined
        ? this.#run({ request, origin }, work)
        : turn.then(() => this.#run({ request, origin }, work));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #run<Value>(
    call: ConstructorParameters<typeof RunningOperation>[2],
    work: (operation: Operation) => Promise<Value>,
  ): Promise<Value> {
    this.#running = new RunningOperation(this.#harness, this, call);
    return runOperation(this.#running, work);
  }

  ended(running: RunningOperation): void {
    this.#running = undefined;
    // History and tools are loaded again when the operation resumes.
    const { aborted, reason } = running.controller.signal;
    if (aborted && reason instanceof Suspension) this.evict();
    for (const onEnd of running.ended ?? none) onEnd();
    this.queue.leave();
  }

  load(): MaybePromise<SessionState> {
    // While an operation runs, its state is the current one.
    const state = this.#running?.operation?.state ?? this.#state;
    if (state !== undefined && (!state.stale || state !== this.#state)) return state;
    // Callers during the read get the same state: two states would diverge.
    if (this.#loading !== undefined) return this.#loading;
    const loaded = loadState(this.#harness.store, this.key, this.#options.parent);
    if (!(loaded instanceof Promise)) {
      this.#state = loaded;
      return loaded;
    }
    this.#loading = loaded.then(
      (read) => {
        this.#loading = undefined;
        this.#state = read;
        return read;
      },
      (error: unknown) => {
        this.#loading = undefined;
        throw error;
      },
    );
    return this.#loading;
  }

  async history(): Promise<readonly Message[]> {
    // The operation itself reports a failed write.
    await Promise.resolve(this.current?.log.stored()).catch(() => undefined);
    const state = await this.load();
    const info = await this.#harness.store.info(this.key);
    const { position, messages } = state;
    if (info?.position === position || (info === undefined && position === 0)) return messages;
    // Another process has appended. A running operation updates its own state: it may be about to append.
    state.stale = true;
    return (await loadState(this.#harness.store, this.key)).messages;
  }

  get maySuspend(): boolean {
    const { current, profile } = this;
    if (current === undefined || current.tasks.length > 0 || this.depth > 0 || this.queue.waiting > 0)
      return false;
    // A private store, files and variables would be lost with the idle instance.
    if (profile.store !== undefined || (profile.python !== undefined && profile.python !== false))
      return false;
    return this.#sandbox === undefined || this.#sandbox.opened?.capabilities.persistent === true;
  }

  async abort(): Promise<boolean> {
    const running = this.#running;
    if (running === undefined) return false;
    running.emit({ type: "abort_requested" });
    running.controller.abort(new KitError({ code: "aborted", message: "The operation was aborted." }));
    await new Promise<void>((resolve) => {
      running.ended ??= [];
      running.ended.push(resolve);
    });
    return true;
  }

  evict(): boolean {
    const sandbox = this.#sandbox;
    this.#state = undefined;
    this.#toolkit = undefined;
    this.#workplace = undefined;
    if (sandbox === undefined) return true;
    // A sandbox that is being opened, or would lose its files, must stay.
    if (sandbox.opened?.capabilities.persistent !== true) return false;
    this.#sandbox = undefined;
    // A failed close is ignored: opening the sandbox again reports the fault.
    sandbox.opened.close().catch(() => undefined);
    return true;
  }

  async close(): Promise<void> {
    this.queue.close(() => new KitError({ code: "aborted", message: "The session was closed." }));
    await this.abort();
    const sandbox = this.#sandbox;
    this.#sandbox = undefined;
    this.#state = undefined;
    const opened = await sandbox?.opening.catch(() => undefined);
    await opened?.close();
  }
}

const none: readonly never[] = [];

interface Waiting {
  start(): void;
  refuse(reason: unknown): void;
}

/**
 * Runs one operation at a time, in the order of the calls. Throws `too_many_requests` when `maxWaitingOperations` callers wait;
 * a caller whose signal fires while it waits leaves the queue with `signal.reason`.
 */
class OperationQueue {
  readonly #harness: Harness;
  readonly #live: LiveSession;
  #line: Waiting[] | undefined;
  #busy = false;
  #closed: (() => unknown) | undefined;

  constructor(harness: Harness, live: LiveSession) {
    this.#harness = harness;
    this.#live = live;
  }

  get waiting(): number {
    return this.#line?.length ?? 0;
  }

  get busy(): boolean {
    return this.#busy;
  }

  /** Waits for all earlier callers; returns nothing if there are none. A caller that has entered must `leave`. */
  enter(signal?: AbortSignal): Promise<void> | undefined {
    if (this.#closed !== undefined) throw this.#closed();
    if (this.#busy) {
      const { maxWaitingOperations: limit } = this.#harness.runtime;
      if (this.waiting >= limit) throw queueFull(limit);
      return this.#place(signal);
    }
    this.#busy = true;
    return undefined;
  }

  /** Refuses waiting and later callers with `reason()`. The running operation continues. */
  close(reason: () => unknown): void {
    this.#closed = reason;
    for (const waiting of this.#line?.splice(0) ?? []) waiting.refuse(reason());
  }

  /** Resolves when all operations enqueued until now have ended. */
  async drained(): Promise<void> {
    if (!this.#busy) return;
    await new Promise<void>((resolve) => {
      const start = (): void => {
        resolve();
        this.leave();
      };
      // A refused caller need not wait either.
      this.#wait({ start, refuse: () => resolve() });
    });
  }

  /** Lets the next caller enter. */
  leave(): void {
    const first = this.#line?.shift();
    if (first !== undefined) first.start();
    else {
      this.#busy = false;
      this.#harness.liveSessions.markIdle(this.#live);
    }
  }

  /** Creates the queue on first use: most sessions never have two callers at once. */
  #wait(waiting: Waiting): void {
    this.#line ??= [];
    this.#line.push(waiting);
  }

  #place(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        const index = this.#line?.indexOf(waiting) ?? -1;
        if (index === -1) return;
        this.#line?.splice(index, 1);
        reject(signal?.reason);
      };
      const waiting: Waiting = {
        start: () => {
          signal?.removeEventListener("abort", leave);
          resolve();
        },
        refuse: (reason) => {
          signal?.removeEventListener("abort", leave);
          reject(reason);
        },
      };
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      signal?.addEventListener("abort", leave, { once: true });
      this.#wait(waiting);
    });
  }
}

function queueFull(limit: number): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `${limit} operations are already waiting for this session.`,
    hint: "Wait for some to finish, or spread the work over several sessions.",
    meta: { scope: "session", retry_after_s: 5 },
  });
}
