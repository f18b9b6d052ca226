import { loadPeer, oncePerProject } from "../load-peer.ts";

/** The part of `@google/adk` 2.0.0 that kit uses, so that its types need not be installed. */
export interface GoogleAdkSdk {
  readonly LlmAgent: new (config: LlmAgentConfig) => AdkAgent;
  readonly BaseLlm: new (config: { readonly model: string }) => object;
  readonly BaseTool: new (config: { readonly name: string; readonly description: string }) => object;
  readonly Runner: new (config: {
    readonly appName: string;
    readonly agent: AdkAgent;
    readonly sessionService: AdkSessions;
  }) => AdkRunner;
  readonly InMemorySessionService: new () => AdkSessions;
  isLlmAgent(value: unknown): value is AdkAgent;
  createEvent(event: { readonly author: string; readonly content: AdkContent }): AdkEvent;
  isFinalResponse(event: AdkEvent): boolean;
  getLogger(): object;
  /** Null for none. */
  setLogger(logger: null): void;
}

export interface AdkAgent {
  readonly name: string;
  readonly description: string;
  readonly tools: readonly object[];
  readonly subAgents: readonly object[];
  readonly parentAgent?: AdkAgent;
  readonly disallowTransferToParent: boolean;
  readonly disallowTransferToPeers: boolean;
  readonly includeContents: "default" | "none";
  readonly outputSchema?: AdkSchema;
  /** The configuration that the agent was created from. */
  readonly config: Readonly<Record<string, unknown>>;
  clone(overrides: Partial<LlmAgentConfig>): AdkAgent;
  findAgent(name: string): AdkAgent | undefined;
}

interface LlmAgentConfig {
  readonly name: string;
  readonly model: object;
  readonly tools: readonly object[];
  readonly subAgents?: readonly AdkAgent[];
  readonly outputSchema?: undefined;
  readonly disallowTransferToParent: boolean;
  readonly disallowTransferToPeers: boolean;
}

/** OpenAPI's kind of schema: types in capitals, counts as text. */
export type AdkSchema = Readonly<Record<string, unknown>>;

export interface AdkContent {
  readonly role: "user" | "model";
  readonly parts: readonly AdkPart[];
}

export interface AdkPart {
  readonly text?: string;
  readonly functionCall?: {
    readonly id: string;
    readonly name: string;
    readonly args: Readonly<Record<string, unknown>>;
  };
  readonly functionResponse?: {
    readonly id: string;
    readonly name: string;
    readonly response: Readonly<Record<string, unknown>>;
  };
}

export interface AdkEvent {
  readonly author?: string;
  readonly content?: { readonly parts?: readonly { readonly text?: string }[] };
  readonly errorCode?: string;
  readonly errorMessage?: string;
}

/** The model request that an agent's processors have composed. */
export interface AdkRequest {
  readonly config?: { readonly systemInstruction?: unknown };
  /** The tools that calls of the answer are looked up in. */
  readonly toolsDict: Record<string, object>;
}

/** The context that a tool gets for its call. */
export interface AdkToolRun {
  readonly args: Readonly<Record<string, unknown>>;
  readonly toolContext: {
    readonly functionCallId?: string;
    readonly actions: { transferToAgent?: string };
  };
}

interface AdkSession {
  readonly id: string;
}

interface AdkSessions {
  createSession(request: { readonly appName: string; readonly userId: string }): Promise<AdkSession>;
  appendEvent(request: { readonly session: AdkSession; readonly event: AdkEvent }): Promise<unknown>;
}

interface AdkRunner {
  runAsync(request: {
    readonly userId: string;
    readonly sessionId: string;
    readonly newMessage: AdkContent;
    readonly abortSignal: AbortSignal;
    readonly runConfig: { readonly maxLlmCalls: number };
  }): AsyncIterable<AdkEvent>;
}

/** The package, and what keeps it out of traces. */
export interface LoadedAdk {
  readonly sdk: GoogleAdkSdk;
  /** Calls `work` so that no span is recorded in it: those of the package hold whole prompts. */
  readonly untraced: <Value>(work: () => Value) => Value;
}

/** Loads the package from the project, else from kit's dependencies. */
export const loadGoogleAdk: (projectRoot: string | undefined) => Promise<LoadedAdk> = oncePerProject(
  async (projectRoot): Promise<LoadedAdk> => {
    const use = { from: projectRoot, what: "The backend google_adk", packages: ["@google/adk"] };
    const sdk = await loadPeer<GoogleAdkSdk>("@google/adk", use);
    // Its own logger writes to standard output, which is the answer's; a project's own stays.
    if (sdk.getLogger().constructor.name.endsWith("SimpleLogger")) sdk.setLogger(null);
    const untraced = await loadPeer<OpenTelemetryApi>("@opentelemetry/api", use).then(
      ({ context }): LoadedAdk["untraced"] =>
        (work) =>
          context.with(context.active().setValue(suppressed, true), work),
      // Without the API in reach, no provider of spans is there either.
      (): LoadedAdk["untraced"] => (work) => work(),
    );
    return { sdk, untraced };
  },
);

interface OpenTelemetryApi {
  readonly context: {
    active(): OpenTelemetryContext;
    with<Value>(active: OpenTelemetryContext, work: () => Value): Value;
  };
}

interface OpenTelemetryContext {
  setValue(key: symbol, value: unknown): OpenTelemetryContext;
}

/** As OpenTelemetry's SDKs name it. */
const suppressed = Symbol.for("OpenTelemetry SDK Context Key SUPPRESS_TRACING");
