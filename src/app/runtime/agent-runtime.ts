import type { AgentRuntime, ToolSource } from "../../agents/agent-runtime.ts";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import type { ProfileModel } from "../../agents/define/model-settings.ts";
import type { SecretMask } from "../../agents/secrets.ts";
import { defaultRetryPolicy, type RetryPolicy } from "../../agents/turn/retry.ts";
import { resolveBackend } from "../../backends/resolve-backend.ts";
import { systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import type { McpClient } from "../../mcp/create-mcp-client.ts";
import type { ModelResolver } from "../../models/contract.ts";
import type { PythonRunner } from "../../python/contract.ts";
import type { IsolationOptions, SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { SourceProblem } from "../sources/discover-sources.ts";
import type { InstanceLimits } from "./instances.ts";
import { origins } from "./origins.ts";
import type { OpenProjectContext } from "./project-context.ts";
import { createJsonValidator } from "./validate-json.ts";

/** The parts that the agents of a service are made with. `openParts` opens what a configuration names. */
export interface RuntimeParts {
  readonly root: string;
  readonly store: SessionStore;
  readonly sandbox: SandboxFactory;
  readonly isolation?: IsolationOptions | undefined;
  readonly resolveModel: ModelResolver;
  readonly defaultModel: ProfileModel;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly project?: OpenProjectContext | undefined;
  /** MCP servers whose tools every agent has. */
  readonly mcp?: McpClient | undefined;
  /** Python for the sessions of every agent. */
  readonly python?: PythonRunner | undefined;
  /** Laid under every agent's own profile: the `agent` table of the configuration. */
  readonly defaults?: AgentProfile | undefined;
  /** Laid over every agent's own profile: options of a command line. */
  readonly overrides?: AgentProfile | undefined;
  /** False for a program that brings its agent along: no file of the project is run. Default true. */
  readonly code?: boolean | undefined;
  /** Takes the application's keys out of what tools return and workflows log. */
  readonly mask?: SecretMask | undefined;
  /** Whether the next process is to know which files models have written. Default true. */
  readonly keepsWrites?: boolean | undefined;
  /** Whether commands find their place in a trace in their environment. Default false. */
  readonly tracesCommands?: boolean | undefined;
  /** How failing model calls are repeated. */
  readonly retry?: RetryPolicy | undefined;
  readonly onListenerError?: ((error: unknown) => void) | undefined;
  /** Operations that may wait in one session; default 100. */
  readonly maxWaiting?: number | undefined;
  /** Where calls of tools that need approval wait for it; without it they are denied. */
  readonly approvals?: Approvals | undefined;
  /** How many idle instances stay alive, and how long. */
  readonly instances?: InstanceLimits | undefined;
  /** Closes what was opened for the service: called once its agents are closed. */
  close(): Promise<void>;
}

/** The service's own share of the runtime. */
export type ServiceParts = Required<
  Pick<AgentRuntime, "observers" | "causeOf" | "sources" | "callsOf" | "principal">
> & {
  readonly approvals: Approvals | undefined;
};

export function toAgentRuntime(parts: RuntimeParts, given: ServiceParts): AgentRuntime {
  const { mcp, mask, isolation, project, python, onListenerError } = parts;
  const { approvals, ...others } = given;
  return {
    store: parts.store,
    resolveModel: parts.resolveModel,
    resolveBackend,
    defaultModel: parts.defaultModel,
    sandbox: parts.sandbox,
    projectRoot: parts.root,
    clock: systemClock,
    retry: parts.retry ?? defaultRetryPolicy,
    modelIdleTimeoutMs: 120_000,
    validateJson: createJsonValidator(),
    env: parts.env,
    origins,
    tracesCommands: parts.tracesCommands ?? false,
    maxWaitingOperations: parts.maxWaiting ?? 100,
    maxIdleSessions: 1_000,
    ...others,
    ...defined({ approvals, isolation, project, python, onListenerError }),
    ...(mcp === undefined ? {} : { toolSources: [createMcpToolSource(mcp)] }),
    ...(mask === undefined || mask.values.length === 0 ? {} : { mask }),
  };
}

/** The tools of MCP servers for every operation. A server that is missing is a warning in its log. */
function createMcpToolSource(client: McpClient): ToolSource {
  const tools: ToolSource = ({ signal, emit }) =>
    client.tools({
      signal,
      onProblem: ({ server, message }) =>
        emit({
          type: "log",
          level: "warning",
          message: `MCP server "${server}": ${message}`,
          data: { mcp_server: server },
        }),
    });
  return Object.assign(tools, { whyMissing: client.whyMissing });
}

/** Problems of the MCP servers, at their place in the configuration. */
export function serverProblems(client: McpClient | undefined): readonly SourceProblem[] {
  return (client?.problems() ?? []).map(({ server, message, details }) => ({
    path: `mcp.servers.${server}`,
    message: details === undefined ? message : `${message} It said last: ${details}`,
  }));
}
