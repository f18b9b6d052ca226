import type { ApplicationData } from "../../app/service/open-application.ts";
import { ServedFunction } from "./serve-function.ts";

/** The part of the context of a Netlify function that kit uses. */
interface NetlifyContext {
  readonly ip?: string;
  waitUntil?(work: Promise<unknown>): void;
}

/** Creates the default export of a Netlify function that serves an application; `limit` is the time limit of one call. */
export function netlifyFunction(
  data: () => ApplicationData,
  limit: { readonly seconds: number },
): (request: Request, context: NetlifyContext) => Promise<Response> {
  const served = new ServedFunction(data, limit);
  return async (request, context) => {
    const waitUntil = context.waitUntil === undefined ? undefined : context.waitUntil.bind(context);
    return await served.fetch(request, { sender: context.ip ?? "", waitUntil });
  };
}

/** Creates the default export of a scheduled Netlify function; it has no address, so only its schedule calls it. */
export function netlifySchedule(
  data: () => ApplicationData,
  limit: { readonly seconds: number },
): () => Promise<Response> {
  const served = new ServedFunction(data, limit);
  return async () => await served.work();
}
