import type { z } from "zod";
import type { ServiceAction } from "../access.ts";
import type { ErrorCode } from "../error-code.ts";
import type { Infer } from "../fields.ts";

/** The reply header with the id of an instance's event stream. A client that resumes the stream repeats it. */
export const streamHeader = "kit-stream";

/**
 * A route as data: its input, its reply and the action that it requires. The server binds a handler to the route, the
 * client calls it by its key, and `/openapi.json` describes it.
 */
export interface RouteSpec {
  /** The name of the route in generated clients: `listSpecs`. */
  readonly operation: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** The meaning of each parameter of the path, by name. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** The request headers that the route reads. */
  readonly headers?: readonly ("Idempotency-Key" | "Last-Event-ID" | "Kit-Stream")[];
  readonly query?: z.ZodType;
  /** Whether other parameters of the query belong to the project's code, which reads them from the request. */
  readonly hasOwnQuery?: true;
  readonly body?: z.ZodType;
  /** The limit for the body, if it is higher than that of other routes. */
  readonly bodyBytes?: number;
  readonly reply: z.ZodType;
  /** The status of a reply that is not an error; default 200. */
  readonly status?: 202;
  /** The 200 reply of a route that replies 202 by default: for a client that waits for the end of the work. */
  readonly replyAtEnd?: z.ZodType;
  /** Whether the reply is a stream of events: if the client's `Accept` asks for it, or always. */
  readonly stream?: "asked" | "always";
  /** The meaning of the stream's frames, if they are not kit's events. */
  readonly frames?: string;
  /** Whether errors are sentences of plain text, which a client of another protocol shows as they are. */
  readonly hasPlainErrors?: true;
  /** Whether errors are those of JSON-RPC, also for the other methods of the path; `a2a`: with the codes and details of A2A. */
  readonly hasRpcErrors?: true | "a2a";
  /** Whether errors have the form of OpenAI's interfaces. */
  readonly hasOpenAiErrors?: true;
  /** Whether a reader of the stream that reconnects after its last event gets 204. */
  readonly hasEnd?: true;
  /** Whether a browser gets a page instead. */
  readonly hasPage?: true;
  /** Whether the project's code can choose the status and the body of the reply. */
  readonly hasOwnReply?: true;
  /** The route's error codes, in addition to those of every route. */
  readonly errors?: readonly ErrorCode[];
  /** The action that `authorize` checks before the work; absent if it checks only each item. */
  readonly action?: ServiceAction;
  /** The action that `authorize` checks for each item of a list, or for the part of the work that writes. */
  readonly itemAction?: ServiceAction;
  /** Whether a POST is idempotent, so that the client can retry it without an idempotency key. */
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

/** The checked query of a route; `undefined` for a route without a query. */
export type QueryOf<Spec> = SchemaOf<Spec, "query">;
/** The checked body of a request; `undefined` for a route without a body. */
export type BodyOf<Spec> = SchemaOf<Spec, "body">;
export type ReplyOf<Spec> = SchemaOf<Spec, "reply">;
export type ReplyAtEndOf<Spec> = SchemaOf<Spec, "replyAtEnd">;
