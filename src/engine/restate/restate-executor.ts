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
  /** `host:port` where this node serves Restate. */
  readonly listen: string;
  /** Where Restate reaches the nodes: a balancer, or the only node; default: where this node listens. */
  readonly address?: string | undefined;
  /** Only calls that are signed with its private key are answered. */
  readonly identityKeys: readonly string[];
}

/** Calls on their way to Restate at a time. */
const abreast = 16;
/** Before Restate is asked again, after it did not take a call. */
const retryMs = 500;
/** Calls that wait to be handed over; further ones are found in the rows. */
const mostWaiting = 10_000;
/** A call for what was found is the same one for so long. */
const sameMs = 10_000;
/** How long a node that stops tries to hand over what waits. */
const lastWordsMs = 1_000;
/** Restate may be away, as while it starts again, for so long before that is a problem. */
const patienceMs = 5_000;
/** A call that was refused is spoken of for so long. */
const refusalMs = 60_000;

/** Has Restate call the nodes: each instance and each run is an object of Restate, and its turns are calls of it. */
export class RestateExecutor implements Executor {
  readonly name = "restate";
  readonly #options: RestateExecutorOptions;
  readonly #client: RestateClient;
  readonly #stopped = new AbortController();
  /** Calls that wait to be handed over, by handler and key: the newest call stands for the earlier ones. */
  readonly #waiting = new Map<string, Call>();
  #sending: Promise<void> | undefined;
  readonly #registration = new Trouble();
  readonly #handing = new Trouble();
  readonly #refusals = new Trouble(refusalMs);
  #endpoint: RestateEndpoint | undefined;
  #registering: Promise<void> | undefined;

  constructor(options: RestateExecutorOptions) {
    this.#options = options;
    this.#client = new RestateClient(options);
  }

  wake(keys: readonly Owned[], why: Wake = "new"): void {
    if (this.#stopped.signal.aborted) return;
    for (const owned of keys) {
      if (this.#waiting.size >= mostWaiting) break;
      const call = toCall(owned, why);
      this.#waiting.set(`${call.handler} ${call.key}`, call);
    }
    if (this.#waiting.size > 0) this.#sending ??= this.#sendAll().finally(() => this.#rest());
  }

  /**
   * Serves Restate and tells it where. Where Restate is away it is told later: nothing that is accepted waits for it. Throws
   * `invalid_request` for an address that cannot be listened on, or where Restate answers that it will not call it.
   */
  async start(turn: Turn): Promise<void> {
    const { service, listen, identityKeys } = this.#options;
    const called: Turn = async (key, lost) => {
      this.#refusals.end();
      return await turn(key, lost);
    };
    const onRefused = (): void => this.#refusals.note(badSignature(listen));
    this.#endpoint = await serveRestate({ service, listen, identityKeys, turn: called, onRefused });
    try {
      await this.#register(this.#endpoint);
    } catch (error) {
      if (!mayPass(error)) {
        await this.#endpoint.close();
        throw error;
      }
      this.#registerLater();
    }
  }

  problem(): KitError | undefined {
    return this.#registration.lasting ?? this.#handing.lasting ?? this.#refusals.lasting;
  }

  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#stopped.abort(), lastWordsMs);
    await this.#endpoint?.close();
    await this.#sending;
    clearTimeout(timer);
    this.#stopped.abort();
    await this.#registering;
  }

  /** A call that came while the last ones were on their way has begun no sending of its own. */
  #rest(): void {
    this.#sending = undefined;
    if (!this.#stopped.signal.aborted) this.wake([]);
  }

  async #sendAll(): Promise<void> {
    const { signal } = this.#stopped;
    while (this.#waiting.size > 0 && !signal.aborted) {
      const calls = [...this.#waiting].slice(0, abreast);
      for (const [name] of calls) this.#waiting.delete(name);
      const failed = await Promise.all(calls.map((entry) => this.#send(entry)));
      if (failed.includes(true)) await sleep(retryMs, signal);
    }
  }

  /** Gives whether it failed, and is to be tried again. */
  async #send([name, call]: readonly [string, Call]): Promise<boolean> {
    try {
      await this.#client.send(call, this.#stopped.signal);
      this.#handing.end();
      return false;
    } catch (error) {
      if (this.#stopped.signal.aborted) return true;
      this.#handing.note(error);
      // Restate has lost its data, or is another one than before.
      if (isNotRegistered(error)) this.#registerLater();
      // The keeper calls again for work whose call Restate refuses; the registration says why.
      if (mayPass(error) && !this.#waiting.has(name)) this.#waiting.set(name, call);
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

  /** Until Restate knows this node, or the node stops. Nothing in a process that only accepts. */
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
        // An operator is told by `problem`.
      }
    }
  }
}

/** A call that fails again and again, from its first failure to its first success. */
class Trouble {
  readonly #forgottenMs: number;
  #error: KitError | undefined;
  #since = 0;
  #notedAt = 0;

  /** `forgottenMs`: it is over, too, when it was not noted for so long. */
  constructor(forgottenMs = Number.POSITIVE_INFINITY) {
    this.#forgottenMs = forgottenMs;
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

  /** The last error, once it has lasted for longer than a moment. */
  get lasting(): KitError | undefined {
    const now = performance.now();
    return now - this.#since > patienceMs && !this.#isForgotten(now) ? this.#error : undefined;
  }

  #isForgotten(now: number): boolean {
    return now - this.#notedAt > this.#forgottenMs;
  }
}

function badSignature(listen: string): KitError {
  return new KitError({
    code: "unavailable",
    message: `Calls have come to ${listen} that are not signed with the identity key set here: they were refused.`,
    hint: "If they are Restate's, set KIT_RESTATE_IDENTITY_KEY to the publickeyv1_… that restate-server logs at its start; else others can reach that address.",
  });
}

function toCall(owned: Owned, why: Wake): Call {
  const key = toRestateKey(owned);
  if (why === "new") return { key, handler: "turn" };
  return { key, handler: "takeOver", idempotencyKey: `${key} ${Math.floor(Date.now() / sameMs)}` };
}

function mayPass(error: unknown): boolean {
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
