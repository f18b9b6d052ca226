/** `kit/agents`: the types of agents: profiles, tools, hooks, policies, sessions and their options. */

export type { StandardSchemaV1 } from "@standard-schema/spec";
export type { DeepPartial } from "../base/record.ts";
export type { ApprovalFilter, Approvals, ApprovalsOptions, ApprovalWait } from "./approvals/approvals.ts";
export type {
  AgentPolicy,
  AgentProfile,
  AllowedCommand,
  ApprovalRules,
  Role,
  Skill,
} from "./define/agent-profile.ts";
export type { AgentContext, AgentDefinition, AgentSource, InstanceContext } from "./define/create-agent.ts";
export type {
  AgentHooks,
  HookCall,
  ModelHookAnswer,
  ModelHookCall,
  Refusal,
  ToolHookCall,
  ToolHookResult,
} from "./define/hooks.ts";
export type {
  Budget,
  BuiltInToolName,
  CompactionSettings,
  ModelSettings,
  ModelSource,
  ProfileModel,
} from "./define/profile-settings.ts";
export type { Answer, AskPerson, Question } from "./define/question.ts";
export type {
  AnyTool,
  CommandAction,
  JsonSchema,
  KitCommand,
  ToolContext,
  ToolDef,
  ToolDefinition,
  ToolOutput,
  ToolPlace,
  ToolReturn,
} from "./define/tool.ts";
export type { EventListener } from "./events.ts";
export type { Agent } from "./harness.ts";
export type {
  PromptOptions,
  PromptResult,
  ShellOptions,
  SkillOptions,
  TaskOptions,
} from "./operations/options.ts";
export type { OutputSchema, TypedOutputAttempt } from "./output/typed-output.ts";
export type { FileInput, ImageInput } from "./prompt/input-files.ts";
export type { Session, SessionStream } from "./session/session.ts";
