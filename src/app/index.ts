import "../base/require-node.ts";

/**
 * `kit/app`: the types of the configuration, and of the service that opens a project's agents and workflows; the judge of a change.
 */
export type { McpConfig, McpMode, McpServerConfig } from "../mcp/servers/mcp-config.ts";
export type { ProviderConfig, ProviderConfigs } from "../models/provider-config.ts";
export type { Verdict, VerdictCheck, VerdictEnd, VerdictReason } from "../protocol/verdict.ts";
export type {
  AgentConfig,
  ApprovalsConfig,
  CompactionConfig,
  EngineConfig,
  KitConfig,
  StoreConfig,
} from "./config/config-schema.ts";
export type { SandboxChoice, SandboxConfig, SandboxKind, SandboxOptions } from "./config/sandbox-schema.ts";
export type { AuthRequest, ServerConfig } from "./config/server-schema.ts";
export type { Agents, App, InitContext, RunOptions, WorkflowResult } from "./service/app.ts";
export type {
  ApplicationData,
  OpenApplicationOptions,
  OpenedApplication,
} from "./service/open-application.ts";
export type { InitAgentOptions, OpenAgentsOptions, OpenServiceOptions } from "./service/open-service.ts";
export type { InstanceTarget, ProjectService, PromptCall, Service } from "./service/service.ts";
export type {
  LoadedAgent,
  LoadedWorkflow,
  SourceFile,
  SourceModules,
  SourceProblem,
  Triggers,
} from "./sources/discover-sources.ts";
export type { VerifyOptions } from "./verify/verify-options.ts";
export { verifySpecs } from "./verify/verify-specs.ts";
