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

/** One call of a function, as its platform describes it. */
export interface Invocation {
  /** The address of the sender; "" where the platform does not say it. */
  readonly sender: string;
  /** Keeps the process at work after the reply; undefined on a platform that freezes it at once. */
  readonly waitUntil: ((work: Promise<unknown>) => void) | undefined;
}

/** Before the end of a call, its work is handed on: a drain takes up to eight seconds where handlers ignore their signal. */
const handOnMs = 10_000;
/** Work that is under way when a call's time is up may end by itself for so long. */
const patienceMs = 3_000;
/** A stream ends so long before the work of its call is handed on. */
const streamMarginMs = 2_000;
/** After its time is up, a request may take so long to say so by itself. */
const lateMs = 1_000;

/**
 * An application in a function of a platform, whose process is frozen between calls and may vanish: sessions and accepted work lie
 * in Postgres, and the process holds nothing there once its last call has ended.
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

  /** Answers a request, then works on what it has brought until that rests or the call's time is up. */
  async fetch(request: Request, invocation: Invocation): Promise<Response> {
    const limit = limitAfter(this.#workMs);
    let shift: OpenedShift;
    try {
      shift = await this.#shifts.enter();
    } catch (error) {
      limit.end();
      return toResponse(error);
    }
    const answered = Promise.withResolvers<void>();
    const over = this.#finish(shift, { answered: answered.promise, limit, ...invocation });
    invocation.waitUntil?.(over);
    // Without it, the platform may freeze the process with the last byte of the reply.
    const held = invocation.waitUntil === undefined ? over : undefined;
    const signal = AbortSignal.any([request.signal, limit.signal]);
    const late = limit.passed.then(() => delay(lateMs)).then(() => toResponse(overTime()));
    try {
      const reply = await Promise.race([
        shift.fetch(new Request(request, { signal }), invocation.sender),
        late,
      ]);
      return await untilSent(reply, { answered: answered.resolve, held });
    } catch (error) {
      answered.resolve();
      await held;
      return toResponse(error);
    }
  }

  /** The scheduled call: takes up what is due in the database, until that rests or the call's time is up. */
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
    const answered = shift.takeDue().catch((error: unknown) => {
      failure = error;
    });
    await this.#finish(shift, { answered, limit, waitUntil: () => undefined });
    return failure === undefined ? Response.json({ ok: true }) : toResponse(failure);
  }

  /** The end of a call, once nothing of its work is under way, or its time is up: then the work is handed on. */
  async #finish(
    shift: OpenedShift,
    call: Pick<Invocation, "waitUntil"> & { readonly answered: Promise<void>; readonly limit: Limit },
  ): Promise<void> {
    const { answered, limit, waitUntil } = call;
    await Promise.race([answered, limit.passed.then(() => delay(lateMs))]);
    // On a platform that freezes the process with the reply, accepted work is the scheduled call's.
    if (waitUntil !== undefined) await Promise.race([shift.atRest(), limit.passed]);
    const timeoutMs = limit.signal.aborted ? patienceMs : 0;
    limit.end();
    await this.#shifts.leave(timeoutMs);
  }

  /** The project is opened once: it does not change, and what it holds is of this process alone. */
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

/** A function is reachable from everywhere, so it answers only senders with a key. */
function checkGuarded(loaded: LoadedConfig): LoadedConfig {
  const { api_keys = [], auth } = loaded.config.server ?? {};
  if (api_keys.length > 0 || auth !== undefined) return loaded;
  throw new KitError({
    code: "unavailable",
    message: "No key is set, and anybody could use this server: set KIT_API_KEYS, or server.auth.",
  });
}

/** Streams that their readers take up again end before the work of a call does. */
function withinLimit(loaded: LoadedConfig, workMs: number): LoadedConfig {
  const { config } = loaded;
  const longest = Math.max(1, Math.floor((workMs - streamMarginMs) / 1_000));
  const max_stream_seconds = Math.min(config.server?.max_stream_seconds ?? longest, longest);
  return { ...loaded, config: { ...config, server: { ...config.server, max_stream_seconds } } };
}

interface Limit {
  /** Fires with the reason that the sender is told. */
  readonly signal: AbortSignal;
  readonly passed: Promise<void>;
  end(): void;
}

/** The time at which the work of a call is handed on. */
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

/** An error as every route answers it. */
export function toResponse(error: unknown): Response {
  const { body, ...rest } = toErrorReply(error, { dev: false });
  return new Response(body, rest);
}

/** The reply, which says when its last byte is on its way; with `held`, that byte waits for it. */
async function untilSent(
  reply: Response,
  { answered, held }: { readonly answered: () => void; readonly held: Promise<void> | undefined },
): Promise<Response> {
  if (reply.body === null) {
    answered();
    await held;
    return reply;
  }
  const reader = reply.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          answered();
          await held;
          controller.close();
        } catch (error) {
          answered();
          controller.error(error);
        }
      },
      async cancel(reason) {
        answered();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, reply);
}
