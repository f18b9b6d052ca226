import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import type { ObjectContext, ObjectSharedContext } from "@restatedev/restate-sdk/node";
import { KitError } from "../../base/kit-error.ts";
import type { Turn } from "../postgres/called-work.ts";
import { fromRestateKey } from "./restate-client.ts";

export interface RestateEndpoint {
  /** `http://host:port`. */
  readonly address: string;
  /** Ends all connections: Restate repeats the calls at other nodes. */
  close(): Promise<void>;
}

export interface ServeRestateOptions {
  readonly service: string;
  readonly listen: string;
  readonly identityKeys: readonly string[];
  readonly turn: Turn;
  /** Called when a call of Restate's protocol was refused because of its signature. */
  onRefused(): void;
}

/** Restate retries a call until a node accepts it; Restate must never give up. */
const manyAttempts = 1_000_000_000;
/** The longest delay that Restate gets; for longer waits it calls again in between. */
const longestDelayMs = 24 * 3_600_000;
/** Restate's time limits for calls; a turn ends long before. */
const inactivityMs = 120_000;
const abortMs = 600_000;
/** How long Restate remembers an idempotency key after the end of the call. */
const rememberMs = 60_000;

/**
 * Serves kit's object over HTTP/2; each instance and each run is a key of it. `turn` is exclusive: one call per key runs at a
 * time, the others wait in Restate. `takeOver` is not exclusive, because it replaces turns that are stuck at a dead node.
 */
export async function serveRestate({
  service,
  listen,
  identityKeys,
  turn,
  onRefused,
}: ServeRestateOptions): Promise<RestateEndpoint> {
  const { host, port } = readListen(listen);
  if (identityKeys.length === 0 && !isLoopback(host)) throw openEndpoint(listen);
  const sdk = await loadSdk();

  async function perform(ctx: ObjectContext | ObjectSharedContext): Promise<void> {
    const owned = fromRestateKey(ctx.key);
    if (owned === undefined) throw new sdk.TerminalError("This is not a key of kit.", { errorCode: 400 });
    const { attemptCompletedSignal } = ctx.request();
    // Restate records the result, so a retry after a crash returns the same as the first attempt.
    const next = await ctx.run("turn", async () => (await turn(owned, attemptCompletedSignal)) ?? null);
    if (next === null) return;
    const delay = Math.min(Math.ceil(next), longestDelayMs);
    ctx.genericSend({ service, method: "turn", key: ctx.key, parameter: new Uint8Array(), delay });
  }

  const object = sdk.object({
    name: service,
    handlers: {
      turn: sdk.handlers.object.exclusive(async (ctx: ObjectContext) => await perform(ctx)),
      takeOver: sdk.handlers.object.shared(async (ctx: ObjectSharedContext) => await perform(ctx)),
    },
    options: {
      inactivityTimeout: inactivityMs,
      abortTimeout: abortMs,
      journalRetention: 0,
      idempotencyRetention: rememberMs,
      retryPolicy: {
        initialInterval: 50,
        exponentiationFactor: 2,
        maxInterval: 1_000,
        maxAttempts: manyAttempts,
        onMaxAttempts: "kill",
      },
    },
  });
  const handler = sdk.createEndpointHandler({
    services: [object],
    bidirectional: true,
    logger: () => undefined,
    ...(identityKeys.length === 0 ? {} : { identityKeys: [...identityKeys] }),
  });
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer((request, response) => {
    if (request.url === "/health") response.end("ok");
    else {
      if (/^\/(invoke|discover)\b/.test(request.url ?? ""))
        response.once("finish", () => response.statusCode === 401 && onRefused());
      handler(request, response);
    }
  });
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    session.on("error", () => undefined);
  });
  await new Promise<void>((resolve, reject) => {
    // Stays: without descriptors, the system reports each connection that it cannot hand over.
    server.on("error", (error) => reject(cannotListen(listen, error)));
    server.listen(port, host, resolve);
  });
  const bound = server.address() as AddressInfo;
  return {
    address: `http://${host.includes(":") ? `[${host}]` : host}:${bound.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.destroy();
      }),
  };
}

function readListen(listen: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(listen) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port) > 65_535) {
    throw new KitError({
      code: "invalid_request",
      message: `engine.restate.listen is not a host and port: ${JSON.stringify(listen)}.`,
      hint: "Write 127.0.0.1:9080, or 0.0.0.0:9080 with an identity key.",
    });
  }
  return { host, port: Number(port) };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function openEndpoint(listen: string): KitError {
  return new KitError({
    code: "forbidden",
    message: `engine.restate.listen is ${listen}, which other machines can reach, but there is no identity key: anyone could call this node.`,
    hint: "Set KIT_RESTATE_IDENTITY_KEY to the publickeyv1_… that restate-server logs at its start, or listen on 127.0.0.1.",
  });
}

function cannotListen(listen: string, error: Error & { readonly code?: string }): KitError {
  return new KitError({
    code: "invalid_request",
    message: `The address engine.restate.listen (${listen}) cannot be used: ${error.code ?? "unknown"}.`,
    hint: "Another process may use this address: set a different port for each node on a machine.",
    cause: error,
  });
}

async function loadSdk(): Promise<typeof import("@restatedev/restate-sdk/node")> {
  try {
    return await import("@restatedev/restate-sdk/node");
  } catch (error) {
    throw missingPackage(error);
  }
}

function missingPackage(cause: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "engine.kind = restate needs the package @restatedev/restate-sdk, which is missing.",
    hint: "Run: npm install @restatedev/restate-sdk",
    cause,
  });
}
