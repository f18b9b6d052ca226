import http from "node:http";
import type { AddressInfo } from "node:net";
import { createFakeMachine, type FakeMachine, type FakeMachineOptions } from "./fake-machine.ts";

/** A local server with a vendor's protocol, and its machines. */
export interface FakeVendor {
  readonly url: string;
  readonly machines: ReadonlyMap<string, FakeMachine>;
  /** Method and path of each request, oldest first. */
  readonly requests: readonly string[];
  /** The command lines that the vendor saw. */
  readonly lines: readonly string[];
  /** Deletes a machine without a request. */
  lose(id: string): void;
  /** Faults to simulate. */
  readonly trouble: FakeTrouble;
  /** The bodies of requests that create a machine, oldest first. */
  readonly created: readonly Readonly<Record<string, unknown>>[];
  close(): Promise<void>;
}

export interface FakeTrouble {
  /** Answers every request, except those to running machines, with this status and text. */
  refuse?: { readonly status: number; readonly message: string } | undefined;
  /** Closes the connection of the next command after its start. */
  cutNext?: boolean;
  /** Delay of each request in milliseconds. */
  delayMs?: number | undefined;
  /** The folder with the programs of new machines. */
  path?: string | undefined;
}

export interface FakeRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  json(): Record<string, unknown>;
}

/** A fake vendor with an HTTP/1 API. */
export interface HttpFakeVendor extends FakeVendor {
  readonly server: http.Server;
}

/** Answers a request; returns `undefined` for an unknown one. */
export type FakeHandler = (
  request: FakeRequest,
  response: http.ServerResponse,
) => Promise<true | undefined> | true | undefined;

/** The state behind the HTTP interface of a fake. */
export interface FakeVendorState {
  readonly machines: Map<string, FakeMachine>;
  readonly trouble: FakeTrouble;
  readonly requests: string[];
  readonly lines: readonly string[];
  readonly created: readonly Readonly<Record<string, unknown>>[];
  make(
    options: Omit<FakeMachineOptions, "id" | "path">,
    asked: Readonly<Record<string, unknown>>,
  ): FakeMachine;
  lose(id: string): void;
  /** Waits for the simulated network delay. */
  arrive(): Promise<void>;
}

export function createFakeVendorState(): FakeVendorState {
  const machines = new Map<string, FakeMachine>();
  const lines: string[] = [];
  const created: Readonly<Record<string, unknown>>[] = [];
  const trouble: FakeTrouble = {};
  return {
    machines,
    trouble,
    requests: [],
    lines,
    created,
    make(options, request) {
      created.push(request);
      const id = `fake${process.pid}n${created.length}x${Math.random().toString(36).slice(2, 8)}`;
      const machine = createFakeMachine({
        ...options,
        id,
        path: trouble.path,
        onLine: (line) => lines.push(line),
      });
      machines.set(id, machine);
      return machine;
    },
    lose(id) {
      machines.get(id)?.destroy();
      machines.delete(id);
    },
    async arrive() {
      if (trouble.delayMs !== undefined) await new Promise((done) => setTimeout(done, trouble.delayMs));
    },
  };
}

export async function startFakeVendor(
  handlerOf: (state: FakeVendorState) => FakeHandler,
): Promise<HttpFakeVendor> {
  const state = createFakeVendorState();
  const handle = handlerOf(state);
  // A client of a busy machine must not send on a connection that this server closes at the same moment.
  const server = http.createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    void answerRequest(request, response);
  });
  const answerRequest = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const { method = "", headers } = request;
    const url = new URL(request.url ?? "/", "http://fake");
    state.requests.push(`${method} ${url.pathname}`);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    await state.arrive();
    const json = (): Record<string, unknown> => JSON.parse(body.toString() || "{}");
    const handled = await handle(
      { method, path: url.pathname, query: url.searchParams, headers, body, json },
      response,
    );
    if (handled === undefined)
      sendJson(response, 501, { message: `The fake knows no ${method} ${url.pathname}.` });
  };
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    ...state,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    async close() {
      for (const machine of state.machines.values()) machine.destroy();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

export function sendJson(response: http.ServerResponse, status: number, value?: unknown): true {
  response.writeHead(status, value === undefined ? {} : { "content-type": "application/json" });
  response.end(value === undefined ? "" : JSON.stringify(value));
  return true;
}

/** The text fields of an unknown message. */
export function textsOf(value: unknown): Readonly<Record<string, string>> {
  return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}
