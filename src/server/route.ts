import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { z } from "zod";
import { KitError } from "../base/kit-error.ts";
import { isRecord } from "../base/record.ts";
import type { Principal } from "../protocol/access.ts";
import type {
  BodyOf,
  ParameterOf,
  QueryOf,
  ReplyAtEndOf,
  ReplyOf,
  RouteKey,
  RouteMethod,
  RouteSpec,
} from "../protocol/routes/route.ts";
import type { ServerLimits } from "./limits.ts";
import { eventStreamHeaders, jsonReply } from "./reply.ts";
import {
  type BodySource,
  checkInput,
  locateIssues,
  readJsonBody,
  readQuery,
  readSegment,
} from "./request/read-request.ts";

/** The addresses of a request without a socket, as far as the platform reports them. */
export interface Connection {
  /** The local address; with one that other machines can reach, such as `0.0.0.0`, a guarded server answers to any host name. */
  readonly localAddress: string;
  /** The sender's address, for the rate limit; "" if it is unknown. */
  readonly remoteAddress: string;
}

/** The context of a request in Hono. */
export interface ServerEnv {
  Bindings: HttpBindings & { readonly connection?: Connection | undefined };
  Variables: { principal?: Principal };
}

export type ServerContext = Context<ServerEnv>;

/** A request before its body is read. `Parameter` is the names in its path, `Spec` its route in the table. */
export interface RouteRequest<Parameter extends string = string, Spec = RouteSpec> extends BodySource {
  /** The sender; undefined if the server requires no key. */
  readonly principal: Principal | undefined;
  /** The action of the route, for `authorize`. */
  readonly action: ActionOf<Spec, "action">;
  readonly itemAction: ActionOf<Spec, "itemAction">;
  readonly url: string;
  readonly accept: string;
  header(name: string): string | undefined;
  /** Returns a part of the path by its name, decoded and checked. Throws `invalid_request`. */
  segment(name: Parameter, options?: { readonly maxBytes?: number }): string;
  /**
   * Returns a signal that fires if the client disconnects before it has the reply. `silent` removes the connection's
   * idle timeout for a reply that takes long.
   */
  clientGone(options?: { readonly silent: boolean }): AbortSignal;
  /** When the request came, in ms by `performance.now()`. */
  readonly receivedAt: number;
}

type ActionOf<Spec, Name extends "action" | "itemAction"> = Name extends keyof Spec ? Spec[Name] : undefined;

/** The checked input of a handler. */
export interface RouteInput<Key, Spec> extends RouteRequest<ParameterOf<Key>, Spec> {
  readonly query: QueryOf<Spec>;
  readonly body: BodyOf<Spec>;
}

/** The 200 of a route that answers 202 unless the client waits for the end of the work. */
export class EndReply<Reply> {
  readonly value: Reply;
  constructor(value: Reply) {
    this.value = value;
  }
}

/** The JSON value of the reply, or a whole `Response` if the table names a reply other than JSON. */
type Answer<Spec> = Spec extends { readonly stream: "always" }
  ? Response
  :
      | ReplyOf<Spec>
      | (Spec extends { readonly replyAtEnd: z.ZodType } ? EndReply<ReplyAtEndOf<Spec>> : never)
      | (Spec extends
          | { readonly stream: "asked" }
          | { readonly hasPage: true }
          | { readonly hasOwnReply: true }
          ? Response
          : never);

type Handle<Key, Spec> = (input: RouteInput<Key, Spec>) => Answer<Spec> | Promise<Answer<Spec>>;

/** Refuses a request before its body is read. */
export type Guard = (request: RouteRequest) => Promise<void>;

interface Binding<Key, Spec> {
  /** Other names that clients can send for a wire value, by query parameter or body field. */
  readonly aliases: Aliases;
  readonly handle: Handle<Key, Spec>;
}

type Aliases = Readonly<Record<string, (name: string) => string | undefined>>;

/** A handler for each route of a table. */
export type Handlers<Table> = {
  readonly [Key in keyof Table]: Handle<Key, Table[Key]> | Binding<Key, Table[Key]>;
};

/** A route of the table with its handler, ready to be mounted and described. */
export interface Route extends RouteSpec {
  readonly method: RouteMethod;
  /** In OpenAPI's notation: `/api/specs/{id}`. */
  readonly path: string;
  answer(context: ServerContext, server: RouteServer): Promise<Response>;
}

/** The parts of the server that every route needs. */
export interface RouteServer {
  readonly limits: ServerLimits;
  /** Masks the application's secrets in a value before it is sent. */
  readonly masked: <Value>(value: Value) => Value;
}

/** Binds the routes of a table to their handlers. Every route that names an action is guarded. */
export function bindRoutes<Table extends Readonly<Record<RouteKey, RouteSpec>>>(
  table: Table,
  handlers: Handlers<Table>,
  guard?: Guard,
): readonly Route[] {
  return Object.entries<RouteSpec>(table).map(([key, spec]) => {
    // The mapped type ties each handler to its route; `Object.entries` loses that type.
    const bound = handlers[key as keyof Table & RouteKey] as unknown as
      | BoundHandler
      | Binding<RouteKey, RouteSpec>;
    const { handle, aliases } = typeof bound === "function" ? { handle: bound, aliases: undefined } : bound;
    const [method, path = ""] = key.split(" ") as [RouteMethod, string];
    return toRoute({ ...spec, method, path }, { handle: handle as BoundHandler, aliases, guard });
  });
}

type BoundHandler = (input: RouteRequest & { readonly query: unknown; readonly body: unknown }) => unknown;

interface BoundRoute {
  readonly handle: BoundHandler;
  readonly aliases: Aliases | undefined;
  readonly guard: Guard | undefined;
}

function toRoute(
  spec: RouteSpec & Pick<Route, "method" | "path">,
  { handle, aliases, guard }: BoundRoute,
): Route {
  const names = spec.path.split("/");
  const { query: known } = spec;
  const isKnown =
    spec.hasOwnQuery && known instanceof z.ZodObject
      ? (name: string): boolean => Object.hasOwn(known.shape, name)
      : undefined;
  return {
    ...spec,
    async answer(context, { limits, masked }) {
      const request = toRouteRequest(context, names, spec);
      if (spec.action !== undefined) await guard?.(request);
      // A stream without a reader would stay open.
      if (spec.stream === "always" && request.raw.method === "HEAD")
        return new Response(null, { headers: eventStreamHeaders });
      const query =
        spec.query && checkInput("query", toQuery(readQuery(request.url, isKnown), aliases), spec.query);
      const bodyBytes = Math.max(limits.bodyBytes, spec.bodyBytes ?? 0);
      const body =
        spec.body &&
        checkInput("body", toBody(await readJsonBody(request, { ...limits, bodyBytes }), aliases), spec.body);
      try {
        const value = await handle({ ...request, query, body });
        if (value instanceof Response) return value;
        if (value instanceof EndReply) return jsonReply(masked(value.value));
        return jsonReply(masked(value), spec.status);
      } catch (error) {
        throw locateIssues(error, spec.method === "POST" ? "body" : "query");
      }
    },
  };
}

/** When each request came that came over a connection of this process. */
export const arrivals: WeakMap<IncomingMessage, number> = new WeakMap();

/** The requests of live signals: a request without a reference is garbage-collected, and its signal then never fires. */
const requestsOf = new WeakMap<AbortSignal, Request>();

function toRouteRequest(context: ServerContext, names: readonly string[], spec: RouteSpec): RouteRequest {
  const { req, env } = context;
  let parts: readonly string[] | undefined;
  return {
    principal: context.get("principal"),
    action: spec.action,
    itemAction: spec.itemAction,
    raw: req.raw,
    incoming: env?.incoming,
    receivedAt: (env?.incoming && arrivals.get(env.incoming)) ?? performance.now(),
    url: req.url,
    accept: req.header("accept") ?? "",
    header: (name) => req.header(name),
    segment(name, options = {}) {
      parts ??= req.path.split("/");
      return readSegment(parts[names.indexOf(`{${name}}`)] ?? "", { name, ...options });
    },
    clientGone({ silent } = { silent: false }) {
      // Requests without a socket have no connection.
      if (silent) env?.incoming?.socket.setTimeout(0);
      const controller = new AbortController();
      const abort = (reason?: unknown): void =>
        controller.abort(
          reason instanceof KitError
            ? reason
            : new KitError({ code: "aborted", message: "The client has disconnected." }),
        );
      const outgoing = env?.outgoing;
      if (outgoing === undefined) {
        const { signal } = req.raw;
        requestsOf.set(controller.signal, req.raw);
        // If a platform's time limit ends the request, its reason is a `KitError`, which the client gets.
        if (signal.aborted) abort(signal.reason);
        else signal.addEventListener("abort", () => abort(signal.reason), { once: true });
      } else if (outgoing.destroyed) abort();
      // Listen to the connection: reading the request's signal would create a whole `Request`.
      else
        outgoing.once("close", () => {
          if (!outgoing.writableFinished) abort();
        });
      return controller.signal;
    },
  };
}

// In a URL every value is text; the schemas say which are numbers.
function toQuery(query: Record<string, unknown>, aliases: Aliases | undefined): Record<string, unknown> {
  for (const name of [
    "limit",
    "after",
    "before",
    "first_index",
    "event_index",
    "starting_after",
    "start_line",
    "end_line",
  ]) {
    const text = query[name];
    if (typeof text === "string" && /^\d{1,15}$/.test(text)) query[name] = Number(text);
  }
  for (const name of ["rules", "count", "parents_only"])
    if (query[name] === "true" || query[name] === "false") query[name] = query[name] === "true";
  return aliases === undefined ? query : withAliases(query, aliases);
}

/** Unwraps a body whose only key is `payload`. */
function toBody(body: Record<string, unknown>, aliases: Aliases | undefined): Record<string, unknown> {
  const { payload } = body;
  const wraps = isRecord(payload) && Object.keys(body).length === 1;
  const input = wraps ? payload : body;
  return aliases === undefined ? input : withAliases(input, aliases);
}

function withAliases(input: Record<string, unknown>, aliases: Aliases): Record<string, unknown> {
  for (const [field, resolve] of Object.entries(aliases)) {
    const given = input[field];
    if (typeof given === "string") input[field] = resolve(given) ?? given;
  }
  return input;
}
