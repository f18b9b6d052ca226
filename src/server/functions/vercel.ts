import type { ApplicationData } from "../../app/service/open-application.ts";
import { KitError } from "../../base/kit-error.ts";
import { createKeyCheck } from "../access/access.ts";
import { type Invocation, ServedFunction, toResponse } from "./serve-function.ts";

/** The path that Vercel's cron calls. */
const workPath = "/_kit/work";

/** The part of Vercel's context of a request that kit uses; the package `@vercel/functions` finds it in the same place. */
interface RequestContext {
  readonly waitUntil?: Invocation["waitUntil"];
}

const contextKey = Symbol.for("@vercel/request-context");

/** Creates the default export of a Vercel function that serves an application; `limit` is the time limit of one call. */
export function vercelFunction(
  data: () => ApplicationData,
  limit: { readonly seconds: number },
): { fetch(request: Request): Promise<Response> } {
  const served = new ServedFunction(data, limit);
  return {
    async fetch(request) {
      if (new URL(request.url).pathname === workPath) {
        const refusal = refusalOf(request);
        return refusal === undefined ? await served.work() : toResponse(refusal);
      }
      const sender = request.headers.get("x-real-ip") ?? "";
      const context = contextOf();
      const waitUntil = context?.waitUntil?.bind(context);
      return await served.fetch(request, { sender, waitUntil });
    },
  };
}

function contextOf(): RequestContext | undefined {
  const holder = (globalThis as { readonly [contextKey]?: { get?(): RequestContext | undefined } })[
    contextKey
  ];
  return holder?.get?.();
}

/** Returns the error for a scheduled call without the `CRON_SECRET` that Vercel sends. */
function refusalOf({ headers }: Request): KitError | undefined {
  const secret = process.env.CRON_SECRET?.trim() ?? "";
  if (secret === "")
    return new KitError({
      code: "unavailable",
      message: "CRON_SECRET is not set, and without it the scheduled call is refused.",
    });
  const isKnown = createKeyCheck([secret])(headers.get("authorization") ?? undefined) !== undefined;
  return isKnown ? undefined : new KitError({ code: "unauthorized", message: "The secret is not valid." });
}
