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
export interface ServerLink {
  readonly name: string;
  readonly settings: ServerSettings;
  /**
   * Returns the server's tools: the last known ones while it is down, `undefined` if it never answered. Waits a limited
   * time for a slow server, and not at all for one that failed just now.
   */
  catalogue(signal?: AbortSignal): Promise<Catalogue | undefined>;
  /** The last known tools, without asking the server. */
  known(): Catalogue | undefined;
  /**
   * Calls a tool. After a broken connection the call is repeated only if nothing was done or the tool is repeatable.
   * Rejects with `ServerFailure`, whose `outcome` tells whether the call may have been done.
   */
  call(call: ToolRequest, signal: AbortSignal): Promise<unknown>;
  /** Why the server cannot be used now; `undefined` if it can be used or was not tried yet. */
  failure(): ServerFailure | undefined;
  /** Consecutive failures, and the time until the next attempt; `undefined` if the configuration is invalid. */
  retries(): { readonly failures: number; readonly againInMs: number } | undefined;
  /** Why changes of its tools go unnoticed; `undefined` if they are noticed or never reported. */
  unheard(): ServerFailure | undefined;
  close(): Promise<void>;
  kill(): void;
}

export function createServerLink(settings: ServerSettings, clock: Clock): ServerLink {
  const backoff = createBackoff(clock.now);
  const protocol: NegotiatedProtocol = { isOld: false };
  const ending = new AbortController();
  let connection: Connection | undefined;
  let opening: Promise<Connection> | undefined;
  let refreshing: Promise<Catalogue> | undefined;
  let catalogue: Catalogue | undefined;
  let isStale = true;
  let unheard: ServerFailure | undefined;
  let failure =
    settings.fault === undefined ? undefined : new ServerFailure(settings.fault, { outcome: "not_sent" });

  const lost = (reason: ServerFailure): void => {
    failure = reason;
    backoff.failed(reason);
  };
  const drop = (useless: Connection, reason: ServerFailure): void => {
    if (!useless.isOpen) return;
    useless.kill();
    lost(reason);
  };
  // After a slow call, disconnect the server only if it does not answer at all: it may be working on other calls.
  const checkLife = (slow: Connection): void => {
    const gone = new ServerFailure("It no longer answers.", { outcome: "unknown" });
    const limit = { ms: times.lifeSign, onTimeout: () => gone };
    withDeadline(slow.list(), limit).catch(() => drop(slow, gone));
  };
  const open = async (): Promise<Connection> => {
    const wait = backoff.remainingMs();
    if (wait > 0) await clock.sleep(wait, ending.signal);
    unheard = undefined;
    try {
      const opened = await openConnection(settings, protocol, {
        onToolsChanged: () => {
          isStale = true;
        },
        onUnheard: (why) => {
          unheard = why;
        },
        onLost: lost,
        clock,
        signal: ending.signal,
      });
      if (ending.signal.aborted) {
        opened.kill();
        throw closed();
      }
      // A new process may be another version with other tools.
      isStale = true;
      failure = undefined;
      connection = opened;
      return opened;
    } catch (error) {
      if (error instanceof ServerFailure && !ending.signal.aborted) lost(error);
      throw error;
    }
  };
  const connect = async (signal?: AbortSignal): Promise<Connection> => {
    if (settings.fault !== undefined && failure !== undefined) throw failure;
    if (ending.signal.aborted) throw closed();
    if (connection?.isOpen) return connection;
    if (opening === undefined) {
      const wait = backoff.remainingMs();
      if (wait > times.reconnectWait) throw later(failure, wait);
      opening = open().finally(() => {
        opening = undefined;
      });
    }
    // Callers share the connection attempt: if one caller stops waiting, the attempt continues.
    const ms = settings.connectTimeoutMs + times.reconnectWait;
    return withDeadline(opening, { ms, signal, onTimeout: () => failure ?? closed() });
  };
  const refresh = async (): Promise<Catalogue> => {
    const connected = await connect();
    isStale = false;
    try {
      catalogue = readCatalogue(await connected.list(), { ...settings, server: settings.name });
      return catalogue;
    } catch (error) {
      isStale = true;
      // A server that cannot list its tools may be stuck, so the next call starts a new connection.
      if (error instanceof ServerFailure) drop(connected, error);
      throw error;
    }
  };

  return {
    name: settings.name,
    settings,
    known: () => catalogue,
    failure: () => (connection?.isOpen ? undefined : failure),
    retries: () =>
      settings.fault === undefined
        ? { failures: backoff.failures, againInMs: backoff.remainingMs() }
        : undefined,
    unheard: () => (connection?.isOpen ? unheard : undefined),
    async catalogue(signal) {
      const isOpen = connection?.isOpen === true;
      if (isOpen && !isStale && catalogue !== undefined) return catalogue;
      if (settings.fault !== undefined || (!isOpen && backoff.remainingMs() > 0)) return catalogue;
      const ms = backoff.failures > 0 ? times.shortPatience : times.patience;
      refreshing ??= refresh().finally(() => {
        refreshing = undefined;
      });
      try {
        return await withDeadline(refreshing, {
          ms,
          signal,
          onTimeout: () => new ServerFailure("It did not start in time.", { outcome: "not_sent" }),
        });
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof ServerFailure)) throw error;
        failure ??= error;
        return catalogue;
      }
    },
    async call(call, signal) {
      const attempt = async (connected: Connection): Promise<unknown> => {
        const result = await connected.call(call, signal);
        backoff.succeeded();
        return result;
      };
      const connected = await connect(signal);
      try {
        return await attempt(connected);
      } catch (error) {
        if (!(error instanceof ServerFailure)) throw error;
        if (error.isLost) drop(connected, error);
        if (error.isTimeout) checkLife(connected);
        if (connected.isOpen || (error.outcome === "unknown" && !call.tool.repeatable)) throw error;
      }
      return attempt(await connect(signal));
    },
    async close() {
      ending.abort(closed());
      await connection?.close();
      await opening?.then(
        (late) => late.close(),
        () => undefined,
      );
    },
    kill() {
      ending.abort(closed());
      connection?.kill();
    },
  };
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

/** Decides when a server is tried again. */
interface Backoff {
  /** Milliseconds until the next attempt; 0 if it is due. */
  remainingMs(): number;
  /** Failures since the last successful call. */
  readonly failures: number;
  /** Records that the server could not be reached, was lost or disconnected (`isFlood`), or asks for a pause. */
  failed(how?: { readonly isFlood: boolean; readonly retryAfterMs: number | undefined }): void;
  /** Records a successful call. */
  succeeded(): void;
}

/**
 * Waits longer after each consecutive failure: 1, 2, 4, … 60 seconds. A server that was lost after a successful call is
 * tried again at once, unless it was disconnected for a flood.
 */
function createBackoff(now: () => number): Backoff {
  let failures = 0;
  let notBefore = 0;
  let worked = false;
  return {
    remainingMs: () => Math.max(0, notBefore - now()),
    get failures() {
      return failures;
    },
    failed(how) {
      failures += 1;
      const doubled = times.firstBackoff * 2 ** Math.min(failures - 1, 10);
      const pause = worked && how?.isFlood !== true ? 0 : Math.min(doubled, times.maxBackoff);
      notBefore = now() + Math.max(pause, Math.min(how?.retryAfterMs ?? 0, times.maxRetryAfter));
      worked = false;
    },
    succeeded() {
      failures = 0;
      worked = true;
    },
  };
}
