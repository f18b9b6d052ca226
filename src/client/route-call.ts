import type { BodyOf, ParameterOf, QueryOf } from "../protocol/routes/route.ts";
import type { Routes } from "../protocol/routes/routes.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";

/** One call of a route. */
export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  /** The segments of the path, not encoded. */
  readonly path: readonly string[];
  /** Parameters that are undefined are left out, lists joined by commas. */
  readonly query?: object | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly options?: (CallOptions & WorkOptions) | undefined;
  /** Whether repeating the call is safe. Default: for GET and DELETE, and with an idempotency key. */
  readonly repeatable?: boolean | undefined;
}

/** The input of a call, from the table of routes. */
export type CallInput<Key extends keyof Routes> = ([ParameterOf<Key>] extends [never]
  ? unknown
  : { readonly params: Readonly<Record<ParameterOf<Key>, string>> }) &
  ("query" extends keyof Routes[Key] ? { readonly query?: QueryOf<Routes[Key]> } : unknown) &
  ("body" extends keyof Routes[Key] ? { readonly body: BodyOf<Routes[Key]> } : unknown) &
  ("repeatable" extends keyof Routes[Key]
    ? { readonly repeatable: true }
    : { readonly repeatable?: boolean }) & {
    readonly options?: ("headers" extends keyof Routes[Key] ? WorkOptions : CallOptions) | undefined;
  };

/**
 * Creates a call of a route by its key in the table. The types come from the table; at run time the key is enough, so
 * that browsers load no schema.
 */
export function route<Key extends keyof Routes>(key: Key, input: CallInput<Key>): Call {
  const { params = {}, ...call } = input as Omit<Call, "method" | "path"> & {
    readonly params?: Readonly<Record<string, string>>;
  };
  const [method, path = ""] = key.split(" ") as [Call["method"], string];
  const segments = path === "/" ? [] : path.slice(1).split("/");
  return {
    ...call,
    method,
    path: segments.map((segment) =>
      segment.startsWith("{") ? (params[segment.slice(1, -1)] ?? "") : segment,
    ),
  };
}
