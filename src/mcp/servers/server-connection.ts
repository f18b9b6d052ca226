import type { Client, StandardSchemaV1 } from "@modelcontextprotocol/client";
import { onAbort, withDeadline } from "../../base/abort.ts";
import { type Clock, longestTimerMs } from "../../base/clock.ts";
import { version } from "../../base/own-package.ts";
import { isRecord } from "../../base/record.ts";
import type { TraceContext } from "../../protocol/tracing.ts";
import { limits, times } from "../limits.ts";
import type { ListedTool } from "../tools/listed-tool.ts";
import type { Listing } from "../tools/read-catalogue.ts";
import { type AddressTransport, createAddressTransport } from "./address-transport.ts";
import { toServerFailure } from "./explain-failure.ts";
import { loadSdk, type McpSdk } from "./load-mcp-sdk.ts";
import { createProcessTransport, type ProcessTransport } from "./process-transport.ts";
import { closedTooOften, ServerFailure, timedOut } from "./server-failure.ts";
import { type AskForServer, answerInputs, OpenCalls } from "./server-questions.ts";
import type { ServerSettings } from "./server-settings.ts";

export interface ToolRequest {
  readonly tool: ListedTool;
  readonly args: Readonly<Record<string, unknown>>;
  /** The trace of the call, sent in `_meta`. */
  readonly trace?: TraceContext | undefined;
  /** Default: the server cannot ask a person. */
  readonly ask?: AskForServer | undefined;
}

/** A connected server. Its calls reject with `ServerFailure`. */
export interface Connection {
  /** False after either side closed the connection. */
  readonly isOpen: boolean;
  /** A process with the protocol from before 2026. */
  readonly isOld: boolean;
  list(): Promise<Listing>;
  /** Returns the server's result unchecked. */
  call(call: ToolRequest, signal: AbortSignal): Promise<unknown>;
  close(): Promise<void>;
  /** Ends the connection at once, without notifying the server. */
  kill(): void;
}

export interface ConnectionListeners {
  readonly onToolsChanged: () => void;
  /** kit no longer waits for notifications, so changes of the tools go unnoticed. */
  readonly onUnheard: (why: ServerFailure) => void;
  /** The server closed the connection, or it broke. */
  readonly onLost: (failure: ServerFailure) => void;
  readonly clock: Clock;
  /** Aborts connecting and waiting for a retry. */
  readonly signal: AbortSignal;
}

/** The server's protocol, remembered for the next connection. */
export interface NegotiatedProtocol {
  isOld: boolean;
}

/** Connects to a server with the newest protocol that it supports. A failure leaves no process and no connection. */
export async function openConnection(
  settings: ServerSettings,
  protocol: NegotiatedProtocol,
  listeners: ConnectionListeners,
): Promise<Connection> {
  const { signal } = listeners;
  const sdk = await loadSdk();
  const started = performance.now();
  const connect = async (isOld: boolean): Promise<Connection> => {
    const attempt = createAttempt(sdk, settings, listeners);
    try {
      return await attempt.connect(isOld, {
        timeoutMs: Math.max(1, settings.connectTimeoutMs - (performance.now() - started)),
        signal,
      });
    } catch (error) {
      // Some servers with the old protocol exit when they do not know the first message.
      if (!isOld && attempt.hasEnded()) return connect(true);
      signal.throwIfAborted();
      throw toServerFailure(sdk, error, settings.connectTimeoutMs);
    }
  };
  const connection = await connect(protocol.isOld);
  protocol.isOld = connection.isOld;
  return connection;
}

interface Attempt {
  connect(
    isOld: boolean,
    limit: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<Connection>;
  /** Whether the server itself ended the connection. */
  hasEnded(): boolean;
}

function createAttempt(sdk: McpSdk, settings: ServerSettings, listeners: ConnectionListeners): Attempt {
  const { endpoint } = settings;
  const isProcess = endpoint.kind === "process";
  const client = new sdk.Client(
    { name: "kit", version },
    {
      // Without it, servers do not ask.
      capabilities: settings.canAsk ? { elicitation: { form: {} } } : {},
      // kit validates results itself, and never compiles a server's schema.
      jsonSchemaValidator: {
        getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
      },
      inputRequired: { autoFulfill: false },
      versionNegotiation: {
        mode: "auto",
        // After half of the time, a process that does not answer gets a request in the old protocol.
        ...(isProcess ? { probe: { timeoutMs: settings.connectTimeoutMs / 2 } } : {}),
      },
    },
  );
  acceptAnyResult(client);
  const calls = new OpenCalls();
  if (settings.canAsk) answerQuestions(client, calls);
  const onUnheard = (why: unknown): void => {
    // Other servers send no notifications about their tools.
    if (client.getServerCapabilities()?.tools?.listChanged !== true) return;
    listeners.onUnheard(toServerFailure(sdk, why, settings.connectTimeoutMs));
  };
  const transport = isProcess
    ? createProcessTransport(sdk, endpoint)
    : createAddressTransport(sdk, endpoint, { clock: listeners.clock, onUnheard });
  const kill = (): void => {
    if ("kill" in transport) transport.kill();
    void transport.close().catch(() => undefined);
  };
  let ended = false;
  return {
    hasEnded: () => ended,
    async connect(isOld, { timeoutMs, signal }) {
      const connecting = client.connect(transport, {
        timeout: timeoutMs,
        ...(isOld ? { prior: { kind: "legacy" as const } } : {}),
      });
      // Kill the process synchronously on abort, because kit may be exiting.
      const stop = onAbort(signal, kill);
      try {
        await withDeadline(connecting, {
          ms: timeoutMs,
          signal,
          onTimeout: () =>
            timedOut("answer", settings.connectTimeoutMs, {
              outcome: "not_sent",
              details: "stderrEnd" in transport ? transport.stderrEnd() : "",
            }),
        });
      } catch (error) {
        const failure = failureOf(transport);
        const reason = failure ?? error;
        ended = failure !== undefined && failure !== error && !failure.isFlood;
        kill();
        throw reason;
      } finally {
        stop();
      }
      return toConnection(sdk, { client, calls, transport, settings, listeners, onUnheard, kill });
    },
  };
}

/** The SDK would refuse a result because of one unknown part. */
function acceptAnyResult(client: Client): void {
  const request = client.request.bind(client);
  client.request = (({ method, ...rest }: Parameters<Client["request"]>[0], ...options: [never, never?]) =>
    method === "tools/call"
      ? request({ method, ...rest }, anySchema, options[0])
      : request({ method, ...rest }, ...options)) as Client["request"];
}

/** The protocol from before 2026 has questions as requests of the server. */
function answerQuestions(client: Client, calls: OpenCalls): void {
  client.setRequestHandler("elicitation/create", async ({ params }, { mcpReq }) => {
    try {
      return await calls.ask(params, mcpReq.signal);
    } catch (error) {
      // The server reads the message.
      if (error instanceof ServerFailure) throw error;
      throw new ServerFailure("The question was not asked.", { outcome: "refused", cause: error });
    }
  });
}

interface Opened {
  readonly client: Client;
  readonly calls: OpenCalls;
  readonly transport: ProcessTransport | AddressTransport;
  readonly settings: ServerSettings;
  readonly listeners: ConnectionListeners;
  readonly onUnheard: (why: unknown) => void;
  readonly kill: () => void;
}

function toConnection(sdk: McpSdk, opened: Opened): Connection {
  const { client, transport, settings, listeners } = opened;
  let isOpen = true;
  client.onclose = () => {
    if (!isOpen) return;
    isOpen = false;
    listeners.onLost(
      failureOf(transport) ?? new ServerFailure("It closed the connection.", { outcome: "unknown" }),
    );
  };
  watchTools(client, { ...listeners, onUnheard: opened.onUnheard });
  return {
    get isOpen() {
      return isOpen;
    },
    isOld: settings.endpoint.kind === "process" && client.getProtocolEra() === "legacy",
    async list() {
      // Servers without tools need not support the request.
      if (client.getServerCapabilities()?.tools === undefined) return { tools: [], isCut: false };
      return await withDeadline(listPages(client, settings.listTimeoutMs), {
        ms: settings.listTimeoutMs,
        onTimeout: () => timedOut("list its tools", settings.listTimeoutMs, { outcome: "refused" }),
      }).catch((error: unknown) => {
        throw failureOf(transport) ?? toServerFailure(sdk, error, settings.listTimeoutMs);
      });
    },
    call: (request, signal) => callTool(sdk, opened, { ...request, signal }),
    async close() {
      isOpen = false;
      if (!("terminateSession" in transport)) return client.close();
      const goodbye = transport.terminateSession();
      await withDeadline(goodbye, { ms: times.grace, onTimeout: () => new Error("No answer.") }).catch(
        () => undefined,
      );
      await client.close();
    },
    kill() {
      isOpen = false;
      opened.kill();
    },
  };
}

/** Calls a tool, and again with each answer that its server needs from a person. */
async function callTool(
  sdk: McpSdk,
  { client, calls, transport, settings, listeners }: Opened,
  { tool, args, trace, ask, signal }: ToolRequest & { readonly signal: AbortSignal },
): Promise<unknown> {
  const call = async (
    answers: object,
    limit: { readonly timeout: number; readonly signal: AbortSignal },
  ): Promise<unknown> => {
    try {
      return await client.callTool(
        { name: tool.name, arguments: { ...args }, ...answers, ...(trace && { _meta: { ...trace } }) },
        {
          ...limit,
          toolDefinition: { name: tool.name, inputSchema: tool.definition as never },
          allowInputRequired: ask !== undefined,
        },
      );
    } catch (error) {
      signal.throwIfAborted();
      throw failureOf(transport) ?? toServerFailure(sdk, error, settings.callTimeoutMs);
    }
  };
  const ms = settings.callTimeoutMs;
  if (ask !== undefined && client.getProtocolEra() === "legacy") {
    const onTimeout = (): Error => new sdk.SdkError(sdk.SdkErrorCode.RequestTimeout, "Request timed out");
    return await calls.run({ ask, ms, signal, onTimeout }, (ended) =>
      call({}, { signal: ended, timeout: longestTimerMs }),
    );
  }
  let answers: Record<string, unknown> = {};
  for (let round = 0; round <= limits.questions; round += 1) {
    const result: unknown = await call(answers, { signal, timeout: ms });
    if (ask === undefined || !sdk.isInputRequiredResult(result)) return result;
    answers = await answerInputs(result, ask);
    if (answers.inputResponses === undefined) await listeners.clock.sleep(times.inputPause, signal);
  }
  throw new ServerFailure(`It asked for input more than ${limits.questions} times.`, { outcome: "refused" });
}

function failureOf(transport: Opened["transport"]): ServerFailure | undefined {
  return transport.failure;
}

interface ToolsListener {
  readonly onToolsChanged: () => void;
  /** kit no longer waits for changes. */
  readonly onUnheard: (why: unknown) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Watches for changes of the tools: the old protocol sends notifications unasked, the new one needs a subscription. */
function watchTools(client: Client, { onToolsChanged, onUnheard, clock, signal }: ToolsListener): void {
  client.setNotificationHandler("notifications/tools/list_changed", () => onToolsChanged());
  if (client.getServerCapabilities()?.tools?.listChanged !== true || client.getProtocolEra() !== "modern")
    return;
  const isOver = (): boolean => client.transport === undefined || signal.aborted;
  const listen = async (): Promise<void> => {
    for (let short = 0; short <= limits.reconnects; ) {
      const started = clock.now();
      const { closed } = await client.listen({ toolsListChanged: true });
      const how = await closed;
      if (how === "local" || isOver()) return;
      // Changes in the meantime may have been missed.
      onToolsChanged();
      short = clock.now() - started >= times.steadyStream ? 0 : short + 1;
      await clock.sleep(times.maxBackoff, signal);
      if (isOver()) return;
    }
    onUnheard(closedTooOften());
  };
  listen().catch((error: unknown) => {
    if (!isOver()) onUnheard(error);
  });
}

/** Accepts every answer, because kit checks it: the SDK's schema would refuse it for one invalid part. */
const anySchema: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "kit", validate: (value) => ({ value }) },
};

/** Reads the pages of a server's tools up to the limits. */
async function listPages(client: Client, timeoutMs: number): Promise<Listing> {
  const tools: unknown[] = [];
  const cursors = new Set<string>();
  let chars = 0;
  let cursor: string | undefined;
  for (let page = 0; page < limits.pages; page += 1) {
    const params = cursor === undefined ? {} : { params: { cursor } };
    const answer = await client.request({ method: "tools/list", ...params }, anySchema, {
      timeout: timeoutMs,
    });
    if (!isRecord(answer) || !Array.isArray(answer.tools)) {
      throw new ServerFailure("Its answer to tools/list is not a list of tools.", { outcome: "refused" });
    }
    for (const tool of answer.tools) {
      if (tools.length >= limits.listedTools || chars > limits.listedChars) return { tools, isCut: true };
      chars += lengthOf(tool);
      tools.push(tool);
    }
    const next: unknown = answer.nextCursor;
    // Without the second condition a server could return the same page for ever.
    if (typeof next !== "string" || cursors.has(next)) return { tools, isCut: false };
    cursors.add(next);
    cursor = next;
  }
  return { tools, isCut: true };
}

function lengthOf(tool: unknown): number {
  try {
    return JSON.stringify(tool).length;
  } catch {
    // Nested so deeply that the stack overflows, so count the maximum.
    return limits.messageBytes;
  }
}
