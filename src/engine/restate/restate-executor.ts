import { KitError } from "../../base/kit-error.ts";
import type { Owned } from "../cluster.ts";
import type { Executor, Turn, Wake } from "../postgres/called-work.ts";
import {
  type Call,
  isNotRegistered,
  RestateClient,
  type RestateClientOptions,
  toRestateKey,
} from "./restate-client.ts";
import { type RestateEndpoint, serveRestate } from "./restate-endpoint.ts";

export interface RestateExecutorOptions extends RestateClientOptions {
  /** `host:port` on which this node serves Restate. */
  readonly listen: string;
  /** The URL under which Restate reaches the nodes: a balancer, or the only node; default: `listen` of this node. */
  readonly address?: string | undefined;
  /** Restate's public keys: calls that are not signed with one of their private keys are refused. */
  readonly identityKeys: readonly string[];
}

/** The most concurrent requests to Restate. */
const maxConcurrent = 16;
/** The pause after Restate did not accept a call. */
const retryMs = 500;
/** The most calls that wait to be sent; the keeper finds the work of further calls in the rows. */
const maxWaiting = 10_000;
/** The period in which calls for found work have the same idempotency key. */
const sameKeyMs = 10_000;
/** How long a stopping node tries to send the waiting calls. */
const stopMs = 1_000;
/** How long Restate can be unavailable, for example during a restart, before that counts as a problem. */
const patienceMs = 5_000;
/** How long a refused call counts as a problem. */
const refusalMs = 60_000;

/** Makes Restate call the nodes: each instance and each run is an object in Restate, and its turns are calls of the object. */
export class RestateExecutor implements Executor {
  readonly name = "restate";
  readonly #options: RestateExecutorOptions;
  readonly #client: RestateClient;
  readonly #stopped = new AbortController();
  /** Calls that wait to be sent, by handler and key: the newest call replaces earlier ones. */
  readonly #waiting = new Map<string, Call>();
  #sending: Promise<void> | undefined;
  readonly #registration = new RepeatedFailure();
  readonly #sends = new RepeatedFailure();
  readonly #refusals = new RepeatedFailure(refusalMs);
  #endpoint: RestateEndpoint | undefined;
  #registering: Promise<void> | undefined;

  constructor(options: RestateExecutorOptions) {
    this.#options = options;
    this.#client = new RestateClient(options);
  }

  wake(keys: readonly Owned[], why: Wake = "new"): void {
    if (this.#stopped.signal.aborted) return;
    for (const owned of keys) {
      if (this.#waiting.size >= maxWaiting) break;
      const call = toCall(owned, why);
      this.#waiting.set(`${call.handler} ${call.key}`, call);
    }
    if (this.#waiting.size > 0) this.#sending ??= this.#sendAll().finally(() => this.#endSending());
  }

  /**
   * Serves Restate, and registers the address of this node. If Restate is unavailable, registers later: accepting work does
   * not need Restate. Throws `invalid_request` if `listen` cannot be used, or if Restate refuses the registration.
   */
  async start(turn: Turn): Promise<void> {
    const { service, listen, identityKeys } = this.#options;
    const called: Turn = async (key, leaseSignal) => {
      this.#refusals.end();
      return await turn(key, leaseSignal);
    };
    const onRefused = (): void => this.#refusals.note(badSignature(listen));
    this.#endpoint = await serveRestate({ service, listen, identityKeys, turn: called, onRefused });
    try {
      await this.#register(this.#endpoint);
    } catch (error) {
      if (!isUnavailable(error)) {
        await this.#endpoint.close();
        throw error;
      }
      this.#registerLater();
    }
  }

  problem(): KitError | undefined {
    return this.#registration.lasting ?? this.#sends.lasting ?? this.#refusals.lasting;
  }

  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#stopped.abort(), stopMs);
    await this.#endpoint?.close();
    await this.#sending;
    clearTimeout(timer);
    this.#stopped.abort();
    await this.#registering;
  }

  /** Starts the next round of sending if calls were added at the end of the last one. */
  #endSending(): void {
    this.#sending = undefined;
    if (!this.#stopped.signal.aborted) this.wake([]);
  }

  async #sendAll(): Promise<void> {
    const { signal } = this.#stopped;
    while (this.#waiting.size > 0 && !signal.aborted) {
      const calls = [...this.#waiting].slice(0, maxConcurrent);
      for (const [name] of calls) this.#waiting.delete(name);
      const failed = await Promise.all(calls.map((entry) => this.#send(entry)));
      if (failed.includes(true)) await sleep(retryMs, signal);
    }
  }

  /** Returns whether the call failed. */
  async #send([name, call]: readonly [string, Call]): Promise<boolean> {
    try {
      await this.#client.send(call, this.#stopped.signal);
      this.#sends.end();
      return false;
    } catch (error) {
      if (this.#stopped.signal.aborted) return true;
      this.#sends.note(error);
      // Restate has lost its data, or was replaced by another installation.
      if (isNotRegistered(error)) this.#registerLater();
      // If Restate refuses the call for good, the keeper calls again for its work.
      if (isUnavailable(error) && !this.#waiting.has(name)) this.#waiting.set(name, call);
      return true;
    }
  }

  async #register(endpoint: RestateEndpoint): Promise<void> {
    try {
      await this.#client.register(this.#options.address ?? endpoint.address, this.#stopped.signal);
      this.#registration.end();
    } catch (error) {
      this.#registration.note(error);
      throw error;
    }
  }

  /** Tries to register until it succeeds or the node stops. Does nothing in a process that only accepts work. */
  #registerLater(): void {
    const endpoint = this.#endpoint;
    if (endpoint === undefined) return;
    this.#registering ??= this.#keepRegistering(endpoint).finally(() => {
      this.#registering = undefined;
    });
  }

  async #keepRegistering(endpoint: RestateEndpoint): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await sleep(retryMs, signal);
      try {
        if (!signal.aborted) await this.#register(endpoint);
        return;
      } catch {
        // `problem` reports the error.
      }
    }
  }
}

/** A failure that repeats, from the first one until a success. */
class RepeatedFailure {
  readonly #forgetMs: number;
  #error: KitError | undefined;
  #since = 0;
  #notedAt = 0;

  /** `forgetMs`: the failure also ends if it does not repeat for this time. */
  constructor(forgetMs = Number.POSITIVE_INFINITY) {
    this.#forgetMs = forgetMs;
  }

  note(error: unknown): void {
    if (!(error instanceof KitError)) return;
    const now = performance.now();
    if (this.#error === undefined || this.#isForgotten(now)) this.#since = now;
    this.#notedAt = now;
    this.#error = error;
  }

  end(): void {
    this.#error = undefined;
  }

  /** The last error, if the failure has lasted for longer than a moment. */
  get lasting(): KitError | undefined {
    const now = performance.now();
    return now - this.#since > patienceMs && !this.#isForgotten(now) ? this.#error : undefined;
  }

  #isForgotten(now: number): boolean {
    return now - this.#notedAt > this.#forgetMs;
  }
}

function badSignature(listen: string): KitError {
  return new KitError({
    code: "unavailable",
    message: `Calls to ${listen} were refused because they are not signed with the identity key set here.`,
    hint: "If they come from Restate, set KIT_RESTATE_IDENTITY_KEY to the publickeyv1_… that restate-server logs at its start. Otherwise other programs can reach that address.",
  });
}

function toCall(owned: Owned, why: Wake): Call {
  const key = toRestateKey(owned);
  if (why === "new") return { key, handler: "turn" };
  return { key, handler: "takeOver", idempotencyKey: `${key} ${Math.floor(Date.now() / sameKeyMs)}` };
}

function isUnavailable(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === "unavailable";
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
