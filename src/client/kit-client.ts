import type { AgentEntry, PromptReply, PromptRequest } from "../protocol/prompt.ts";
import type { WorkflowEntry } from "../protocol/run.ts";
import type { Health } from "../protocol/service.ts";
import { type AgentsClient, createAgentsClient } from "./agents-client.ts";
import { type ApprovalsClient, createApprovalsClient } from "./approvals-client.ts";
import type { CallOptions, KitClientOptions, WorkOptions } from "./call-options.ts";
import { createDispatchesClient, type DispatchesClient } from "./dispatches-client.ts";
import { createGuidelinesClient, type GuidelinesClient } from "./guidelines-client.ts";
import { type PromptStream, promptReply, promptStream } from "./prompt-stream.ts";
import { createRunsClient, type RunsClient } from "./runs-client.ts";
import { createSessionsClient, type SessionsClient } from "./sessions-client.ts";
import { createSpecsClient, type SpecsClient } from "./specs-client.ts";
import { createTransport, type Transport } from "./transport.ts";
import { createWorkflowsClient, type WorkflowsClient } from "./workflows-client.ts";

/** A message, or a message with how it is to be answered. */
export type DefaultPrompt = string | (PromptRequest & { readonly session?: string });

/**
 * A kit server, from a browser, Node or any other place with `fetch`, `ReadableStream` and, for
 * `connect`, `WebSocket`. Records are those of the wire. What fails throws a `KitError` whose code is the
 * type of the server's envelope, with `meta.status`, and `meta.retry_after_s` where the server named it;
 * a server that cannot be reached, or does not answer in time, is `unavailable`; an aborted signal throws
 * its reason.
 */
export class KitClient {
  readonly agents: AgentsClient;
  readonly workflows: WorkflowsClient;
  readonly runs: RunsClient;
  readonly dispatches: DispatchesClient;
  readonly approvals: ApprovalsClient;
  readonly sessions: SessionsClient;
  readonly guidelines: GuidelinesClient;
  readonly specs: SpecsClient;
  readonly #transport: Transport;

  constructor(options: KitClientOptions) {
    const transport = createTransport(options);
    this.#transport = transport;
    this.agents = createAgentsClient(transport);
    this.workflows = createWorkflowsClient(transport);
    this.runs = createRunsClient(transport);
    this.dispatches = createDispatchesClient(transport);
    this.approvals = createApprovalsClient(transport);
    this.sessions = createSessionsClient(transport);
    this.guidelines = createGuidelinesClient(transport);
    this.specs = createSpecsClient(transport);
  }

  /** Whether the server is there; needs no key. */
  health(options: CallOptions = {}): Promise<Health> {
    return this.#transport.request({ method: "GET", path: ["health"], options });
  }

  /** The agents and workflows that the server has. */
  async routes(options: CallOptions = {}): Promise<{
    readonly agents: readonly AgentEntry[];
    readonly workflows: readonly WorkflowEntry[];
  }> {
    const [agents, workflows] = await Promise.all([this.agents.list(options), this.workflows.list(options)]);
    return { agents, workflows };
  }

  /** Prompts the project's default agent, and waits for its answer as long as it takes. */
  prompt(prompt: DefaultPrompt, options: WorkOptions = {}): Promise<PromptReply> {
    return promptReply(this.#transport, { ...read(prompt), options });
  }

  /** Prompts the project's default agent, and gives its events as they are made; see `agents.stream`. */
  stream(prompt: DefaultPrompt, options: WorkOptions = {}): PromptStream {
    return promptStream(this.#transport, { ...read(prompt), options });
  }
}

function read(prompt: DefaultPrompt): { readonly path: readonly string[]; readonly body: PromptRequest } {
  const { session = "default", ...body } = typeof prompt === "string" ? { message: prompt } : prompt;
  return { path: ["prompt", session, "events"], body };
}
