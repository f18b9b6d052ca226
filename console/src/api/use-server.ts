import { type UseQueryResult, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { type KitClient, KitError } from "../../../src/client/index.ts";
import { session } from "./server.ts";

/** The client of this page; another one after each sign-in. */
export function useClient(): KitClient {
  return useSyncExternalStore(session.subscribe, () => session.current.client);
}

/** Whether the server asks for a key, or another one. */
export function useIsRefused(): boolean {
  return useSyncExternalStore(session.subscribe, () => session.current.isRefused);
}

export interface ServerQuery<Value> {
  /** Names the answer in the cache: what is asked, with its parameters. */
  readonly key: readonly unknown[];
  readonly ask: (client: KitClient, signal: AbortSignal) => Promise<Value>;
  /** Asks again after so many ms, as long as the tab is seen. */
  readonly everyMs?: number | false | undefined;
  readonly enabled?: boolean | undefined;
}

/** An answer of the server, kept while it is current. A 401 opens the sign-in. */
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

/** A change of the server's state; what the page knows of `stale` is asked for again afterwards. */
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

/** Calls the server; its refusal of the key opens the sign-in. */
export async function asked<Value>(client: KitClient, call: () => Promise<Value>): Promise<Value> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof KitError && error.code === "unauthorized") session.refuse(client);
    throw error;
  }
}
