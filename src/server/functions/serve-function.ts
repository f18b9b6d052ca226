import { setTimeout as delay } from "node:timers/promises";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import {
  type ApplicationData,
  type ApplicationProject,
  openApplicationProject,
} from "../../app/service/open-application.ts";
import { KitError } from "../../base/kit-error.ts";
import { toErrorReply } from "../reply.ts";
import { type OpenedShift, openShift, Shifts } from "./shifts.ts";

/** The platform's data about one call of a function. */
export interface Invocation {
  /** The address of the sender; "" if the platform does not report it. */
  readonly sender: string;
  /** Keeps the process running after the reply; undefined on a platform that freezes it at once. */
  readonly waitUntil: ((work: Promise<unknown>) => void) | undefined;
}

/** How long before the end of a call the function hands its work over: a drain takes up to eight seconds if handlers ignore their signal. */
const handOnMs = 10_000;
/** How long running work can still finish when a call's time is up. */
const patienceMs = 3_000;
/** How long before that handover a stream ends. */
const streamMarginMs = 2_000;
/** How long a request can take to answer with its own error when its time is up. */
const lateMs = 1_000;

/**
 * An application in a function of a platform, which freezes the process between calls and can discard it. Sessions and accepted work are
 * in Postgres; after its last call, the process holds no connection, lock or work.
 */
export class ServedFunction {
  readonly #data: () => ApplicationData;
  readonly #workMs: number;
  readonly #shifts: Shifts;
  #project: Promise<ApplicationProject> | undefined;

  /** `seconds` is the time limit of a call. */
  constructor(data: () => ApplicationData, { seconds }: { readonly seconds: number }) {
    const ms = seconds * 1_000;
    this.#data = data;
    this.#workMs = Math.max(ms - handOnMs, ms / 2);
    this.#shifts = new Shifts(async () => openShift(await this.#open(), this.#data().modules));
  }

  /** Answers a request, then runs the work that it started until the work rests or the call's time is up. */
  async fetch(request: Request, invocation: Invocation): Promise<Response> {
    const limit = limitAfter(this.#workMs);
    let shift: OpenedShift;
    try {
      shift = await this.#shifts.enter();
    } catch (error) {
      limit.end();
      return toResponse(error);
    }
    const replySent = Promise.withResolvers<void>();
    const over = this.#finish(shift, { answered: replySent.promise, limit, ...invocation });
    invocation.waitUntil?.(over);
    // Without `waitUntil`, the platform can freeze the process after the last byte of the reply.
    const untilOver = invocation.waitUntil === undefined ? over : undefined;
    const signal = AbortSignal.any([request.signal, limit.signal]);
    const late = limit.passed.then(() => delay(lateMs)).then(() => toResponse(overTime()));
    try {
      const reply = await Promise.race([
        shift.fetch(new Request(request, { signal }), invocation.sender),
        late,
      ]);
      return await untilSent(reply, { onSent: replySent.resolve, untilOver });
    } catch (error) {
      replySent.resolve();
      await untilOver;
      return toResponse(error);
    }
  }

  /** The scheduled call: runs the due work in the database until it rests or the call's time is up. */
  async work(): Promise<Response> {
    const limit = limitAfter(this.#workMs);
    let shift: OpenedShift;
    try {
      shift = await this.#shifts.enter();
    } catch (error) {
      limit.end();
      return toResponse(error);
    }
    let failure: unknown;
    const dueTaken = shift.takeDue().catch((error: unknown) => {
      failure = error;
    });
    await this.#finish(shift, { answered: dueTaken, limit, waitUntil: () => undefined });
    return failure === undefined ? Response.json({ ok: true }) : toResponse(failure);
  }

  /** Resolves at the end of a call: when its work has ended, or when its time is up and the work is handed over. */
  async #finish(
    shift: OpenedShift,
    call: Pick<Invocation, "waitUntil"> & { readonly answered: Promise<void>; readonly limit: Limit },
  ): Promise<void> {
    const { answered, limit, waitUntil } = call;
    await Promise.race([answered, limit.passed.then(() => delay(lateMs))]);
    // On a platform that freezes the process after the reply, the scheduled call runs accepted work.
    if (waitUntil !== undefined) await Promise.race([shift.atRest(), limit.passed]);
    const timeoutMs = limit.signal.aborted ? patienceMs : 0;
    limit.end();
    await this.#shifts.leave(timeoutMs);
  }

  /** Opens the project once: its files do not change, and it holds resources of this process only. */
  #open(): Promise<ApplicationProject> {
    this.#project ??= openApplicationProject(this.#data(), {}).then(
      (opened) => {
        process.chdir(opened.project.root);
        return { ...opened, loaded: withinLimit(checkGuarded(opened.loaded), this.#workMs) };
      },
      (error: unknown) => {
        this.#project = undefined;
        throw error;
      },
    );
    return this.#project;
  }
}

/** Throws if no key is set: a function is reachable from everywhere. */
function checkGuarded(loaded: LoadedConfig): LoadedConfig {
  const { api_keys = [], auth } = loaded.config.server ?? {};
  if (api_keys.length > 0 || auth !== undefined) return loaded;
  throw new KitError({
    code: "unavailable",
    message: "No key is set, and anybody could use this server: set KIT_API_KEYS, or server.auth.",
  });
}

/** Ends streams that readers can resume before the work of the call ends. */
function withinLimit(loaded: LoadedConfig, workMs: number): LoadedConfig {
  const { config } = loaded;
  const longest = Math.max(1, Math.floor((workMs - streamMarginMs) / 1_000));
  const max_stream_seconds = Math.min(config.server?.max_stream_seconds ?? longest, longest);
  return { ...loaded, config: { ...config, server: { ...config.server, max_stream_seconds } } };
}

interface Limit {
  /** Fires with the error that the sender gets. */
  readonly signal: AbortSignal;
  readonly passed: Promise<void>;
  end(): void;
}

/** The time at which the work of a call is handed over. */
function limitAfter(ms: number): Limit {
  const controller = new AbortController();
  const passed = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    controller.abort(overTime());
    passed.resolve();
  }, ms);
  return { signal: controller.signal, passed: passed.promise, end: () => clearTimeout(timer) };
}

function overTime(): KitError {
  return new KitError({
    code: "unavailable",
    message:
      "The answer takes longer than the platform lets a request run. Send it with an Idempotency-Key and ask again, or dispatch it: the work then goes on.",
    meta: { retry_after_s: 1 },
  });
}

/** Creates the error reply that routes send. */
export function toResponse(error: unknown): Response {
  const { body, ...rest } = toErrorReply(error, { dev: false });
  return new Response(body, rest);
}

/** The reply, which says when its last byte is on its way; with `untilOver`, that byte waits for it. */
async function untilSent(
  reply: Response,
  { onSent, untilOver }: { readonly onSent: () => void; readonly untilOver: Promise<void> | undefined },
): Promise<Response> {
  if (reply.body === null) {
    onSent();
    await untilOver;
    return reply;
  }
  const reader = reply.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          onSent();
          await untilOver;
          controller.close();
        } catch (error) {
          onSent();
          controller.error(error);
        }
      },
      async cancel(reason) {
        onSent();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, reply);
}
