import type { ClusterState } from "../protocol/cluster.ts";
import type { AgentEntry, PromptReply, PromptRequest } from "../protocol/prompt.ts";
import type { WorkflowEntry } from "../protocol/run.ts";
import type { Health, Overview, ServerState } from "../protocol/service.ts";
import { type AgentsClient, createAgentsClient } from "./agents-client.ts";
import type { CallOptions, KitClientOptions, WorkOptions } from "./call-options.ts";
import {
  createFilesClient,
  createGuidelinesClient,
  createSpecsClient,
  type FilesClient,
  type GuidelinesClient,
  type SpecsClient,
} from "./project-clients.ts";
import type { AnyProject, ProjectTypes, Startable } from "./project-types.ts";
import { type PromptStream, promptReply, promptStream } from "./result-stream.ts";
import { type Call, route } from "./route-call.ts";
import { createRunsClient, type RunsClient } from "./runs-client.ts";
import { createTransport, type Transport } from "./transport.ts";
import {
  type ApprovalsClient,
  createApprovalsClient,
  createDeliveriesClient,
  createDispatchesClient,
  createSessionsClient,
  createWaitingClient,
  type DeliveriesClient,
  type DispatchesClient,
  type SessionsClient,
  type WaitingClient,
} from "./work-clients.ts";
import { createWorkflowsClient, type WorkflowsClient } from "./workflows-client.ts";

/** A message, or a message with options. */
export type DefaultPrompt = string | (PromptRequest & { readonly session?: string | undefined });

/**
 * A client of a kit server, for browsers, Node and every runtime with `fetch`, `ReadableStream` and, for `connect`,
 * `WebSocket`. It returns the records of the wire. A failed call throws a `KitError` whose code is the type in the
 * server's error envelope, with `meta.status` and, if the server sent it, `meta.retry_after_s`. If the server cannot be
 * reached or does not answer in time, the code is `unavailable`. An aborted call throws the signal's reason.
 *
 * `KitClient<typeof import("./kit.types.ts")>` knows the agents and workflows of a project: `kit types` writes that file.
 *
 * @example
 * import { KitClient } from "kit/client";
 *
 * const client = new KitClient({ baseUrl: "http://127.0.0.1:2024" });
 * const { text } = await client.agents.invoke("reviewer", { id: "pr-7", message: "Review the change." });
 * console.log(text);
 */
export class KitClient<Project extends ProjectTypes = AnyProject> {
  readonly agents: AgentsClient<Project["agents"]>;
  readonly workflows: WorkflowsClient<Startable<Project["workflows"]>>;
  readonly runs: RunsClient;
  readonly dispatches: DispatchesClient;
  readonly approvals: ApprovalsClient;
  readonly waiting: WaitingClient;
  readonly deliveries: DeliveriesClient;
  readonly sessions: SessionsClient;
  readonly guidelines: GuidelinesClient;
  readonly specs: SpecsClient;
  readonly files: FilesClient;
  readonly #transport: Transport;

  constructor(options: KitClientOptions) {
    const transport = createTransport(options);
    this.#transport = transport;
    // The project's types describe the same calls more precisely.
    this.agents = createAgentsClient(transport) as unknown as AgentsClient<Project["agents"]>;
    this.workflows = createWorkflowsClient(transport) as unknown as WorkflowsClient<
      Startable<Project["workflows"]>
    >;
    this.runs = createRunsClient(transport);
    this.dispatches = createDispatchesClient(transport);
    this.approvals = createApprovalsClient(transport);
    this.waiting = createWaitingClient(transport);
    this.deliveries = createDeliveriesClient(transport);
    this.sessions = createSessionsClient(transport);
    this.guidelines = createGuidelinesClient(transport);
    this.specs = createSpecsClient(transport);
    this.files = createFilesClient(transport);
  }

  /** Resolves if the server answers and works; needs no key. */
  health(options: CallOptions = {}): Promise<Health> {
    return this.#transport.request("GET /health", { options });
  }

  /** Returns the counts of specs and guidelines, and the names of agents and workflows. */
  overview(options: CallOptions = {}): Promise<Overview> {
    return this.#transport.request("GET /", { options });
  }

  /** Returns the nodes of the cluster, their work and their problems; one node if one process does all work. */
  cluster(options: CallOptions = {}): Promise<ClusterState> {
    return this.#transport.request("GET /cluster", { options });
  }

  /** Returns the settings of the server without its secrets, and the findings of the doctor. */
  server(options: CallOptions = {}): Promise<ServerState> {
    return this.#transport.request("GET /server", { options });
  }

  /** Returns the agents and workflows of the server. */
  async routes(options: CallOptions = {}): Promise<{
    readonly agents: readonly AgentEntry[];
    readonly workflows: readonly WorkflowEntry[];
  }> {
    const [agents, workflows] = await Promise.all([this.agents.list(options), this.workflows.list(options)]);
    return { agents, workflows };
  }

  /** Prompts the project's default agent and waits for its answer, as long as it takes. */
  prompt(prompt: DefaultPrompt, options: WorkOptions = {}): Promise<PromptReply> {
    return promptReply(this.#transport, toCall(prompt, options));
  }

  /** Prompts the project's default agent and yields its events as they are emitted; see `agents.stream`. */
  stream(prompt: DefaultPrompt, options: WorkOptions = {}): PromptStream {
    return promptStream(this.#transport, toCall(prompt, options));
  }
}

function toCall(prompt: DefaultPrompt, options: WorkOptions): Call {
  const { session = "default", ...body } = typeof prompt === "string" ? { message: prompt } : prompt;
  return route("POST /prompt/{session}/events", { params: { session }, body, options });
}
