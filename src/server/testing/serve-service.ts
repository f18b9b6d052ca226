import type { Service } from "../../app/service/service.ts";
import type { EngineLimits } from "../../engine/shared/engine-base.ts";
import { createTestService } from "../../testing/test-service.ts";
import { createServer, type KitServer, type ServerOptions } from "../create-server.ts";
import { createEchoModel, type EchoModel } from "./echo-model.ts";
import { serviceFiles } from "./service-files.ts";
import { temporaryProject } from "./temporary-project.ts";

export interface ServedService {
  readonly root: string;
  readonly port: number;
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly server: KitServer;
  readonly service: Service;
  readonly echo: EchoModel;
  /** The errors that became `internal_error`. */
  readonly errors: readonly unknown[];
  /** Sends JSON and reads JSON; the method is POST where there is a body. */
  send(path: string, request?: SentJson): Promise<JsonReply>;
  /** The same with `Accept: text/event-stream`; gives the reply as it begins. */
  stream(path: string, request?: SentJson): Promise<Response>;
  close(): Promise<void>;
}

export interface SentJson {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface JsonReply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent.
  readonly body: any;
}

/** A server on a free port, with the agents and workflows of `serviceFiles` and `files`, and everything in memory. */
export async function serveService({
  files = {},
  host,
  env = {},
  engine = {},
  openService,
  ...options
}: Omit<ServerOptions, "project" | "service" | "onError"> & {
  /** By path; `null` leaves one of `serviceFiles` out. */
  readonly files?: Readonly<Record<string, string | null>>;
  readonly host?: string;
  /** The environment of agents and workflows. */
  readonly env?: Readonly<Record<string, string>>;
  readonly engine?: Partial<EngineLimits>;
  /** Default: everything in memory. */
  readonly openService?: (options: {
    readonly root: string;
    readonly model: EchoModel["model"];
  }) => Promise<ServedService["service"] & { close(): Promise<void> }>;
} = {}): Promise<ServedService> {
  const temporary = await temporaryProject(
    Object.fromEntries(
      Object.entries({ ...serviceFiles, ...files }).flatMap(([path, text]) =>
        text === null ? [] : [[path, text]],
      ),
    ),
  );
  const echo = createEchoModel();
  const from = { root: temporary.root, model: echo.model };
  const service = await (openService?.(from) ?? createTestService({ ...from, env }, engine));
  const errors: unknown[] = [];
  const server = createServer({
    ...options,
    // Client and server share a thread. When it is busy for long, both find an idle connection too old at the
    // same time, and the client may use it just before it sees it closed.
    // A test that leaves a reply unread need not wait for it at its end.
    limits: { keepAliveTimeoutMs: 600_000, closeGraceMs: 500, ...options.limits },
    project: temporary.project,
    service,
    onError: (error) => errors.push(error),
  });
  const { port } = await server.listen({ port: 0, ...(host === undefined ? {} : { host }) });
  const url = `http://127.0.0.1:${port}`;
  const request = (path: string, { body, headers, method, signal }: SentJson = {}): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  return {
    async send(path, sent) {
      const reply = await request(path, sent);
      return { status: reply.status, headers: reply.headers, body: JSON.parse(await reply.text()) };
    },
    stream: (path, sent = {}) =>
      request(path, { ...sent, headers: { accept: "text/event-stream", ...sent.headers } }),
    root: temporary.root,
    port,
    url,
    server,
    service,
    echo,
    errors,
    async close() {
      await server.close();
      await service.close();
      await temporary.remove();
    },
  };
}
