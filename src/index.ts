/**
 * `kit`: agents and workflows, what runs them, and a project's specs and guidelines. The other types of each area are in
 * `kit/agents`, `kit/workflows`, `kit/app`, `kit/contracts`, `kit/protocol`, `kit/project`, `kit/specs` and `kit/guidelines`.
 */
import "./base/require-node.ts";

export { type Approvals, createApprovals } from "./agents/approvals/approvals.ts";
export type { AgentProfile, Role } from "./agents/define/agent-profile.ts";
export { defineSkill, type Skill } from "./agents/define/agent-profile.ts";
export {
  type AgentContext,
  type AgentDefinition,
  createAgent,
  defineAgentProfile,
  mergeProfiles,
  profileToRole,
  roleToProfile,
} from "./agents/define/create-agent.ts";
export type { AgentHooks } from "./agents/define/hooks.ts";
export {
  defineCommand,
  defineTool,
  type KitCommand,
  type ToolContext,
  type ToolDef,
  type ToolDefinition,
} from "./agents/define/tool.ts";
export type { Agent } from "./agents/harness.ts";
export type { PromptOptions, PromptResult } from "./agents/operations/options.ts";
export { TypedOutputError } from "./agents/output/typed-output.ts";
export type { Session, SessionStream } from "./agents/session/session.ts";
export type { KitConfig } from "./app/config/config-schema.ts";
export type { Agents, App } from "./app/service/app.ts";
export { defineConfig, initAgent, loadSkill, openAgents, openService } from "./app/service/open-service.ts";
export type { ProjectService, Service } from "./app/service/service.ts";
export type { AgentBackend } from "./backends/contract.ts";
export { KitError } from "./base/kit-error.ts";
export { version } from "./base/own-package.ts";
export type { DeepPartial } from "./base/record.ts";
export { openProject } from "./project/open-project.ts";
export type { Project } from "./project/project.ts";
export type { DispatchReceipt } from "./protocol/dispatch.ts";
export { type ThinkingLevel, thinkingLevels } from "./protocol/enums.ts";
export { type ErrorCode, errorCodes } from "./protocol/error-code.ts";
export type { KitEvent } from "./protocol/event.ts";
export type { Guideline } from "./protocol/guideline.ts";
export type { Message, Usage } from "./protocol/message.ts";
export type { RunHandle } from "./protocol/run-calls.ts";
export type { SpecBlock } from "./protocol/spec-block.ts";
export type { Sandbox, SandboxFactory } from "./sandboxes/contract.ts";
export type { SessionStore } from "./stores/contract.ts";
export { InMemorySessionStore } from "./stores/memory/memory-store.ts";
export { SqliteSessionStore } from "./stores/sqlite/sqlite-store.ts";
export {
  defineWorkflow,
  type WorkflowDefinition,
  type WorkflowOutput,
  type WorkflowPayload,
} from "./workflows/define-workflow.ts";
export type { KitContext, WorkflowContext } from "./workflows/workflow-context.ts";
