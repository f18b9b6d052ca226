import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { z } from "zod";
import { KitError } from "../base/kit-error.ts";
import type { Principal } from "../protocol/access.ts";
import type { ErrorCode } from "../protocol/error-code.ts";
import type { ServerLimits } from "./limits.ts";
import { eventStreamReply, jsonReply } from "./reply.ts";
import { checkInput, locateIssues } from "./request/check-input.ts";
import { type BodySource, readJsonBody } from "./request/read-body.ts";
import { readQuery } from "./request/read-query.ts";
import { readSegment } from "./request/read-segment.ts";

/** What a server's routes find in their context. */
export interface ServerEnv {
  Bindings: HttpBindings;
  Variables: { principal?: Principal };
}

export type ServerContext = Context<ServerEnv>;

/** What is known of a request before its body is read. */
export interface RouteRequest extends BodySource {
  /** Who asks; undefined where nobody is asked for a key. */
  readonly principal: Principal | undefined;
  readonly url: string;
  readonly accept: string;
  header(name: string): string | undefined;
  /** A part of the path by its name, decoded and checked. Throws `invalid_request`. */
  segment(name: string, options?: { readonly maxBytes?: number }): string;
  /**
   * Fires when the client goes away before its reply is out. `silent` says that the reply takes its time:
   * the connection may then be silent for as long as it takes.
   */
  untilGone(options?: { readonly silent: boolean }): AbortSignal;
}

/** What a handler gets: everything checked. */
export interface RouteInput<Query, Body> extends RouteRequest {
  readonly query: Query;
  readonly body: Body;
}

/** A route as data: what it takes, what it gives, and how it answers. The source of `/openapi.json`. */
export interface RouteSpec<Query, Body> {
  /** Names the route for generated clients: `listSpecs`. */
  readonly operation: string;
  readonly method: "GET" | "POST" | "DELETE";
  /** In OpenAPI's notation: `/api/specs/{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** What the parameters of the path mean, by name. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Headers that it reads. */
  readonly headers?: readonly ("Idempotency-Key" | "Last-Event-ID")[];
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  /** Names that clients may write instead of a wire value, by query parameter or body field. */
  readonly aliases?: Readonly<Record<string, (name: string) => string | undefined>>;
  readonly reply: z.ZodType;
  /** The status of a reply that is no error; default 200. */
  readonly status?: 202;
  /** What a route that answers 202 answers with 200, where the client waits for the end of the work. */
  readonly replyAtEnd?: z.ZodType;
  /** Whether the reply can be a stream of events: where `Accept` asks for it, or always. */
  readonly stream?: "asked" | "always";
  /** Whether a browser gets a page in its place. */
  readonly hasPage?: true;
  /** Error codes besides those that any route can answer. */
  readonly errors?: readonly ErrorCode[];
  /** Refuses a request before its body is read. */
  readonly guard?: (request: RouteRequest) => Promise<void>;
  /** The reply's JSON value, or a whole reply. */
  readonly handle: (input: RouteInput<Query, Body>) => unknown;
}

/** A route with its types forgotten, ready to be mounted and described. */
export interface Route extends Omit<RouteSpec<never, never>, "handle" | "query" | "body"> {
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  answer(context: ServerContext, server: RouteServer): Promise<Response>;
}

/** What every route takes from its server. */
export interface RouteServer {
  readonly limits: ServerLimits;
  /** Takes the application's keys out of a value that is sent. */
  readonly masked: <Value>(value: Value) => Value;
}

/** Ties a route's schemas to its handler. */
export function defineRoute<Query = undefined, Body = undefined>(spec: RouteSpec<Query, Body>): Route {
  const names = spec.path.split("/");
  return {
    ...spec,
    async answer(context, { limits, masked }) {
      const request = toRouteRequest(context, names);
      await spec.guard?.(request);
      // A stream that nobody reads would stay open.
      if (spec.stream === "always" && request.raw.method === "HEAD") return eventStreamReply(null);
      const query = spec.query && checkInput("query", toQuery(readQuery(request.url), spec), spec.query);
      const body =
        spec.body && checkInput("body", toBody(await readJsonBody(request, limits), spec), spec.body);
      // Absent exactly where the type says `undefined`: a route without a schema has none.
      const input: RouteInput<Query, Body> = { ...request, query: query as Query, body: body as Body };
      try {
        const value = await spec.handle(input);
        return value instanceof Response ? value : jsonReply(masked(value), spec.status);
      } catch (error) {
        throw locateIssues(error, spec.body === undefined ? "query" : "body");
      }
    },
  };
}

function toRouteRequest(context: ServerContext, names: readonly string[]): RouteRequest {
  const { req, env } = context;
  let parts: readonly string[] | undefined;
  return {
    principal: context.get("principal"),
    raw: req.raw,
    incoming: env?.incoming,
    url: req.url,
    accept: req.header("accept") ?? "",
    header: (name) => req.header(name),
    segment(name, options = {}) {
      parts ??= req.path.split("/");
      return readSegment(parts[names.indexOf(`{${name}}`)] ?? "", { name, ...options });
    },
    untilGone({ silent } = { silent: false }) {
      // Requests that come without a socket have no connection to keep.
      if (silent) env?.incoming?.socket.setTimeout(0);
      const controller = new AbortController();
      const gone = (): void =>
        controller.abort(new KitError({ code: "aborted", message: "The client has gone." }));
      const outgoing = env?.outgoing;
      if (outgoing === undefined) {
        if (req.raw.signal.aborted) gone();
        else req.raw.signal.addEventListener("abort", gone, { once: true });
      } else if (outgoing.destroyed) gone();
      // The connection itself, and not the request's signal, which costs a request of its own to make.
      else
        outgoing.once("close", () => {
          if (!outgoing.writableFinished) gone();
        });
      return controller.signal;
    },
  };
}

type Reading = Pick<Route, "aliases">;

// In a URL every value is text; the schemas say which are numbers.
function toQuery(query: Record<string, unknown>, spec: Reading): Record<string, unknown> {
  for (const name of ["limit", "after"]) {
    const given = query[name];
    if (typeof given === "string" && /^\d{1,15}$/.test(given)) query[name] = Number(given);
  }
  if (query.rules === "true" || query.rules === "false") query.rules = query.rules === "true";
  return withAliases(query, spec);
}

/** A body of one key, `payload`, stands for what is in it. */
function toBody(body: Record<string, unknown>, spec: Reading): Record<string, unknown> {
  const { payload } = body;
  const wraps = isObject(payload) && Object.keys(body).length === 1;
  return withAliases(wraps ? payload : body, spec);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function withAliases(input: Record<string, unknown>, spec: Reading): Record<string, unknown> {
  for (const [field, resolve] of Object.entries(spec.aliases ?? {})) {
    const given = input[field];
    if (typeof given === "string") input[field] = resolve(given) ?? given;
  }
  return input;
}
