import { withDeadline } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import { times } from "../limits.ts";
import type { Catalogue } from "../tools/listed-tool.ts";
import { readCatalogue } from "../tools/read-catalogue.ts";
import {
  type Connection,
  type NegotiatedProtocol,
  openConnection,
  type ToolRequest,
} from "./server-connection.ts";
import { ServerFailure } from "./server-failure.ts";
import type { ServerSettings } from "./server-settings.ts";

/** A configured server, connected on first use and reconnected after a loss. */
export class ServerLink {
  readonly name: string;
  readonly settings: ServerSettings;
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #protocol: NegotiatedProtocol = { isOld: false };
  readonly #ending = new AbortController();
  #connection: Connection | undefined;
  #opening: Promise<Connection> | undefined;
  #refreshing: Promise<Catalogue> | undefined;
  #catalogue: Catalogue | undefined;
  #isStale = true;
  #unheard: ServerFailure | undefined;
  #failure: ServerFailure | undefined;

  constructor(settings: ServerSettings, clock: Clock) {
    const { name, fault } = settings;
    this.name = name;
    this.settings = settings;
    this.#clock = clock;
    this.#backoff = new Backoff(clock.now);
    this.#failure = fault === undefined ? undefined : new ServerFailure(fault, { outcome: "not_sent" });
  }

  /** The last known tools, without asking the server. */
  lastCatalogue(): Catalogue | undefined {
    return this.#catalogue;
  }

  /** Why the server cannot be used now; `undefined` if it can be used or was not tried yet. */
  failure(): ServerFailure | undefined {
    return this.#isConnected() ? undefined : this.#failure;
  }

  /** Consecutive failures, and the time until the next attempt; `undefined` if the configuration is invalid. */
  retries(): { readonly failures: number; readonly againInMs: number } | undefined {
    if (this.settings.fault !== undefined) return undefined;
    return { failures: this.#backoff.failures, againInMs: this.#backoff.remainingMs() };
  }

  /** Why changes of its tools go unnoticed; `undefined` if they are noticed or never reported. */
  unheard(): ServerFailure | undefined {
    return this.#isConnected() ? this.#unheard : undefined;
  }

  /**
   * Returns the server's tools: the last known ones while it is down, `undefined` if it never answered. Waits a limited
   * time for a slow server, and not at all for one that failed just now.
   */
  async catalogue(signal?: AbortSignal): Promise<Catalogue | undefined> {
    const isOpen = this.#isConnected();
    if (isOpen && !this.#isStale && this.#catalogue !== undefined) return this.#catalogue;
    const isDown = this.settings.fault !== undefined || (!isOpen && this.#backoff.remainingMs() > 0);
    if (isDown) return this.#catalogue;
    const ms = this.#backoff.failures > 0 ? times.shortPatience : times.patience;
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    try {
      return await withDeadline(this.#refreshing, {
        ms,
        signal,
        onTimeout: () => new ServerFailure("It did not start in time.", { outcome: "not_sent" }),
      });
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof ServerFailure)) throw error;
      this.#failure ??= error;
      return this.#catalogue;
    }
  }

  /**
   * Calls a tool. After a broken connection the call is repeated only if nothing was done or the tool is repeatable.
   * Rejects with `ServerFailure`, whose `outcome` tells whether the call may have been done.
   */
  async call(call: ToolRequest, signal: AbortSignal): Promise<unknown> {
    const attempt = async (connected: Connection): Promise<unknown> => {
      const result = await connected.call(call, signal);
      this.#backoff.succeeded();
      return result;
    };
    const connected = await this.#connect(signal);
    try {
      return await attempt(connected);
    } catch (error) {
      if (!(error instanceof ServerFailure)) throw error;
      if (error.isLost) this.#drop(connected, error);
      if (error.isTimeout) this.#checkLife(connected);
      if (connected.isOpen || (error.outcome === "unknown" && !call.tool.repeatable)) throw error;
    }
    return attempt(await this.#connect(signal));
  }

  async close(): Promise<void> {
    this.#ending.abort(closed());
    await this.#connection?.close();
    await this.#opening?.then(
      (late) => late.close(),
      () => undefined,
    );
    const { endpoint } = this.settings;
    if (endpoint.kind === "address") await endpoint.login?.settled();
  }

  /** Tries the server again with the next use: the cause of its failure is over. */
  retryNow(): void {
    this.#backoff.forget();
  }

  kill(): void {
    this.#ending.abort(closed());
    this.#connection?.kill();
  }

  #isConnected(): boolean {
    return this.#connection?.isOpen === true;
  }

  async #connect(signal?: AbortSignal): Promise<Connection> {
    if (this.settings.fault !== undefined && this.#failure !== undefined) throw this.#failure;
    if (this.#ending.signal.aborted) throw closed();
    if (this.#connection?.isOpen) return this.#connection;
    if (this.#opening === undefined) {
      const wait = this.#backoff.remainingMs();
      if (wait > times.reconnectWait) throw later(this.#failure, wait);
      this.#opening = this.#open().finally(() => {
        this.#opening = undefined;
      });
    }
    // Callers share the connection attempt: if one caller stops waiting, the attempt continues.
    const ms = this.settings.connectTimeoutMs + times.reconnectWait;
    return withDeadline(this.#opening, { ms, signal, onTimeout: () => this.#failure ?? closed() });
  }

  async #open(): Promise<Connection> {
    const { signal } = this.#ending;
    const wait = this.#backoff.remainingMs();
    if (wait > 0) await this.#clock.sleep(wait, signal);
    this.#unheard = undefined;
    try {
      const opened = await openConnection(this.settings, this.#protocol, {
        onToolsChanged: () => {
          this.#isStale = true;
        },
        onUnheard: (why) => {
          this.#unheard = why;
        },
        onLost: (reason) => this.#recordFailure(reason),
        clock: this.#clock,
        signal,
      });
      if (signal.aborted) {
        opened.kill();
        throw closed();
      }
      // A new process may be another version with other tools.
      this.#isStale = true;
      this.#failure = undefined;
      this.#connection = opened;
      return opened;
    } catch (error) {
      if (error instanceof ServerFailure && !signal.aborted) this.#recordFailure(error);
      throw error;
    }
  }

  async #refresh(): Promise<Catalogue> {
    const connected = await this.#connect();
    this.#isStale = false;
    try {
      this.#catalogue = readCatalogue(await connected.list(), { ...this.settings, server: this.name });
      return this.#catalogue;
    } catch (error) {
      this.#isStale = true;
      // A server that cannot list its tools may be stuck, so the next call starts a new connection.
      if (error instanceof ServerFailure) this.#drop(connected, error);
      throw error;
    }
  }

  /** After a slow call, disconnects the server only if it does not answer at all: it may be working on other calls. */
  #checkLife(slow: Connection): void {
    const failure = new ServerFailure("It no longer answers.", { outcome: "unknown" });
    const limit = { ms: times.lifeSign, onTimeout: () => failure };
    withDeadline(slow.list(), limit).catch(() => this.#drop(slow, failure));
  }

  #drop(useless: Connection, reason: ServerFailure): void {
    if (!useless.isOpen) return;
    useless.kill();
    this.#recordFailure(reason);
  }

  #recordFailure(reason: ServerFailure): void {
    this.#failure = reason;
    this.#backoff.failed(reason);
  }
}

function closed(): ServerFailure {
  return new ServerFailure("It was closed together with the agents.", { outcome: "not_sent" });
}

function later(failure: ServerFailure | undefined, waitMs: number): ServerFailure {
  const reason = failure?.message ?? "It failed.";
  return new ServerFailure(`${reason} kit tries again in ${Math.ceil(waitMs / 1000)} seconds.`, {
    outcome: "not_sent",
  });
}

/**
 * Decides when a server is tried again. The pause grows with each consecutive failure: 1, 2, 4, … 60 seconds. A server that
 * was lost after a successful call is tried again at once, unless it was disconnected for a flood.
 */
class Backoff {
  readonly #now: () => number;
  #failures = 0;
  #notBefore = 0;
  #hasWorked = false;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Failures since the last successful call. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds until the next attempt; 0 if it is due. */
  remainingMs(): number {
    return Math.max(0, this.#notBefore - this.#now());
  }

  /** Records that the server could not be reached, was lost or disconnected (`isFlood`), or asks for a pause. */
  failed({ isFlood, retryAfterMs = 0 }: Pick<ServerFailure, "isFlood" | "retryAfterMs">): void {
    this.#failures += 1;
    const doubled = times.firstBackoff * 2 ** Math.min(this.#failures - 1, 10);
    const pause = this.#hasWorked && !isFlood ? 0 : Math.min(doubled, times.maxBackoff);
    this.#notBefore = this.#now() + Math.max(pause, Math.min(retryAfterMs, times.maxRetryAfter));
    this.#hasWorked = false;
  }

  /** Records a successful call. */
  succeeded(): void {
    this.#failures = 0;
    this.#hasWorked = true;
  }

  /** Makes the next attempt due, as if none had failed. */
  forget(): void {
    this.#failures = 0;
    this.#notBefore = 0;
  }
}
