import type { z } from "zod";
import type { ServiceAction } from "../access.ts";
import type { ErrorCode } from "../error-code.ts";
import type { Infer } from "../fields.ts";

/**
 * A route as data: what it takes, what it gives, and which access it asks for. The server binds a handler to it, the
 * client calls it by its key, and `/openapi.json` describes it.
 */
export interface RouteSpec {
  /** Names the route for generated clients: `listSpecs`. */
  readonly operation: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** The meaning of each parameter of the path, by name. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Headers that it reads. */
  readonly headers?: readonly ("Idempotency-Key" | "Last-Event-ID")[];
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  /** The size of a body where it may be larger than that of other routes. */
  readonly bodyBytes?: number;
  readonly reply: z.ZodType;
  /** The status of a reply that is not an error; default 200. */
  readonly status?: 202;
  /** The 200 of a route that answers 202, where the client waits for the end of the work. */
  readonly replyAtEnd?: z.ZodType;
  /** Whether the reply can be a stream of events: where `Accept` asks for it, or always. */
  readonly stream?: "asked" | "always";
  /** Whether a browser gets a page in its place. */
  readonly hasPage?: true;
  /** Whether the project's own code may answer with a status and a body of its own. */
  readonly hasOwnReply?: true;
  /** Error codes besides those that any route can answer. */
  readonly errors?: readonly ErrorCode[];
  /** The action that `authorize` is asked about before the work; absent where it is asked about each item alone. */
  readonly action?: ServiceAction;
  /** The action that `authorize` is asked about for each item of a list, or for the part of the work that writes. */
  readonly itemAction?: ServiceAction;
  /** Whether a POST done twice is a POST done once, so that the client may try it again without an idempotency key. */
  readonly repeatable?: true;
}

export type RouteMethod = "GET" | "POST" | "DELETE";

/** The method and the path, in the notation of OpenAPI: `GET /api/specs/{id}`. */
export type RouteKey = `${RouteMethod} /${string}`;

/** The names of the parameters in a path: `"name" | "id"` of `POST /agents/{name}/{id}`. */
export type ParameterOf<Key> = Key extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterOf<Rest>
  : never;

type Checked<Table> = {
  readonly [Key in keyof Table]: RouteSpec &
    ([ParameterOf<Key>] extends [never]
      ? unknown
      : { readonly parameters: Readonly<Record<ParameterOf<Key>, string>> });
};

/** Checks a table of routes: each parameter of a path is described. */
export function defineRoutes<const Table extends Readonly<Record<RouteKey, RouteSpec>>>(
  table: Table & Checked<Table>,
): Table {
  return table;
}

type SchemaOf<Spec, Part extends string> = Spec extends { readonly [Name in Part]: infer Schema }
  ? Schema extends z.ZodType
    ? Infer<Schema>
    : undefined
  : undefined;

/** The query of a route once it is checked; `undefined` for a route that takes none. */
export type QueryOf<Spec> = SchemaOf<Spec, "query">;
/** The body of a request once it is checked; `undefined` for a route that takes none. */
export type BodyOf<Spec> = SchemaOf<Spec, "body">;
export type ReplyOf<Spec> = SchemaOf<Spec, "reply">;
export type ReplyAtEndOf<Spec> = SchemaOf<Spec, "replyAtEnd">;
