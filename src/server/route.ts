import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { z } from "zod";
import type { ErrorCode } from "../protocol/error-code.ts";
import type { ServerLimits } from "./limits.ts";
import { jsonReply } from "./reply.ts";
import { checkInput, locateIssues } from "./request/check-input.ts";
import { readJsonBody } from "./request/read-body.ts";
import { readQuery } from "./request/read-query.ts";

export type ServerContext = Context<{ Bindings: HttpBindings }>;

/** What a handler gets: everything checked. */
export interface RouteInput<Query, Body> {
  readonly query: Query;
  readonly body: Body;
  /** The last segment of the path, as sent; only for paths that end in a parameter. */
  readonly segment: string;
  readonly accept: string;
  readonly url: string;
}

/** A route as data: what it takes, what it gives, and how it answers. The source of `/openapi.json`. */
export interface RouteSpec<Query, Body> {
  /** Names the route for generated clients: `listSpecs`. */
  readonly operation: string;
  readonly method: "GET" | "POST";
  /** In OpenAPI's notation: `/api/specs/{id}`. A parameter is always the last segment. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** What the parameter of the path means. */
  readonly parameter?: string;
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  /** Names that clients may write instead of a wire value, by query parameter or body field. */
  readonly aliases?: Readonly<Record<string, (name: string) => string | undefined>>;
  readonly reply: z.ZodType;
  /** Whether a browser gets a page in its place. */
  readonly hasPage?: true;
  /** Error codes besides those that any route can answer. */
  readonly errors?: readonly ErrorCode[];
  /** The reply's JSON value, or a whole reply. */
  readonly handle: (input: RouteInput<Query, Body>) => unknown;
}

/** A route with its types forgotten, ready to be mounted and described. */
export interface Route extends Omit<RouteSpec<never, never>, "handle" | "query" | "body"> {
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  answer(context: ServerContext, limits: ServerLimits): Promise<Response>;
}

/** Ties a route's schemas to its handler. */
export function defineRoute<Query = undefined, Body = undefined>(spec: RouteSpec<Query, Body>): Route {
  return {
    ...spec,
    async answer(context, limits) {
      const { raw, path, url } = context.req;
      const query = spec.query && checkInput("query", toQuery(readQuery(url), spec), spec.query);
      const body =
        spec.body && checkInput("body", withAliases(await readJsonBody(raw, limits), spec), spec.body);
      const input: RouteInput<Query, Body> = {
        // Absent exactly where the type says `undefined`: a route without a schema has none.
        query: query as Query,
        body: body as Body,
        segment: path.slice(path.lastIndexOf("/") + 1),
        accept: context.req.header("accept") ?? "",
        url,
      };
      try {
        const value = await spec.handle(input);
        return value instanceof Response ? value : jsonReply(value);
      } catch (error) {
        throw locateIssues(error, spec.body === undefined ? "query" : "body");
      }
    },
  };
}

// In a URL every value is text; the schemas say `limit` is a number.
function toQuery(query: Record<string, unknown>, spec: Pick<Route, "aliases">): Record<string, unknown> {
  if (typeof query.limit === "string" && /^\d{1,9}$/.test(query.limit)) query.limit = Number(query.limit);
  return withAliases(query, spec);
}

function withAliases(input: Record<string, unknown>, spec: Pick<Route, "aliases">): Record<string, unknown> {
  for (const [field, resolve] of Object.entries(spec.aliases ?? {})) {
    const given = input[field];
    if (typeof given === "string") input[field] = resolve(given) ?? given;
  }
  return input;
}
