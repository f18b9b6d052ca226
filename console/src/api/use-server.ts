import { type UseQueryResult, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { type KitClient, KitError } from "../../../src/client/index.ts";
import { session } from "./server.ts";

/** The client of this page; a new one after each sign-in. */
export function useClient(): KitClient {
  return useSyncExternalStore(session.subscribe, () => session.current.client);
}

/** Whether the server asks for a key, or another one. */
export function useIsRefused(): boolean {
  return useSyncExternalStore(session.subscribe, () => session.current.isRefused);
}

export interface ServerQuery<Value> {
  /** The key of the answer in the cache: the request with its parameters. */
  readonly key: readonly unknown[];
  readonly ask: (client: KitClient, signal: AbortSignal) => Promise<Value>;
  /** Repeats the request after this many ms, while the tab is visible. */
  readonly everyMs?: number | false | undefined;
  readonly enabled?: boolean | undefined;
}

/** A cached answer of the server. A 401 opens the sign-in. */
export function useServer<Value>({
  key,
  ask,
  everyMs,
  enabled = true,
}: ServerQuery<Value>): UseQueryResult<Value> {
  const client = useClient();
  return useQuery({
    queryKey: key,
    queryFn: ({ signal }) => asked(client, () => ask(client, signal)),
    refetchInterval: everyMs ?? false,
    enabled,
  });
}

/** A change of the server's state; afterwards the cached answers in `stale` are loaded again. */
export function useChange<Input, Value>(
  change: (client: KitClient, input: Input) => Promise<Value>,
  stale: readonly string[],
) {
  const client = useClient();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (input: Input) => asked(client, () => change(client, input)),
    onSettled: () => Promise.all(stale.map((name) => queries.invalidateQueries({ queryKey: [name] }))),
  });
}

/** Calls the server; if it refuses the key, the sign-in opens. */
export async function asked<Value>(client: KitClient, call: () => Promise<Value>): Promise<Value> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof KitError && error.code === "unauthorized") session.refuse(client);
    throw error;
  }
}
