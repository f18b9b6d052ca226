import type { AgentProfile, AllowedCommand } from "../../agents/define/agent-profile.ts";
import type { ApprovalRules } from "../../agents/define/approval-rules.ts";
import type { CompactionSettings } from "../../agents/define/limits.ts";
import type { BackendChoice } from "../../backends/contract.ts";
import { defined } from "../../base/defined.ts";
import type { ThinkingLevel } from "../../protocol/enums.ts";
import type { ModelChoice } from "../../protocol/prompt.ts";
import type { SandboxChoice } from "./sandbox-config.ts";

/** The `agent` table: laid under the profile of every agent of the project. */
export interface AgentConfig {
  /**
   * `provider/model`, or a list: where one fails for good, the next one answers. Default: of the first provider
   * with a key, else offline/guide.
   */
  readonly model?: ModelChoice;
  /** What decides the turns; default `typed`: kit's own loop. One of your own only in `kit.config.ts`. */
  readonly backend?: BackendChoice;
  readonly instructions?: string;
  readonly thinking_level?: ThinkingLevel;
  /** Where agents work that name no sandbox; default: virtual, and for `kit run` the project itself. */
  readonly sandbox?: SandboxChoice;
  /** Working folder inside the sandbox. */
  readonly cwd?: string;
  readonly allow_write?: boolean;
  readonly allow_shell?: boolean;
  /** Commands that may run: `["git", "npm test", { command = "make", unsafe = true }]`. */
  readonly allowed_commands?: readonly AllowedCommand[];
  readonly allow_compound_commands?: boolean;
  readonly allow_protected_paths?: readonly string[];
  /** Hosts that commands may reach: `["registry.npmjs.org", "*.example.com:443"]`; default: none. */
  readonly allow_network?: readonly string[];
  /** Calls that wait until somebody approves them, of every agent. */
  readonly approvals?: ApprovalsConfig;
  /** Default 8. */
  readonly max_task_depth?: number;
  /** Default 3. */
  readonly typed_retries?: number;
  /** Seconds without any part of an answer before a call of the model is given up; default 120. */
  readonly model_idle_seconds?: number;
  /** Model calls of one operation; default 100. */
  readonly max_turns?: number;
  /** Tokens of one operation. */
  readonly max_tokens?: number;
  /** US dollars of one operation. */
  readonly max_cost?: number;
  /** Inputs that may wait for one session; default 100. */
  readonly max_waiting?: number;
  /** Instances that stay alive while nobody uses them; default 1,000. */
  readonly max_idle_instances?: number;
  /** How long they stay alive; default 300. */
  readonly idle_seconds?: number;
  readonly specs?: boolean;
  readonly guidelines?: boolean;
  readonly project_instructions?: boolean;
}

/** The `agent.approvals` table. */
export interface ApprovalsConfig {
  /** Names of tools and commands; `*` stands for any characters: `["bash", "mcp__github__*"]`. */
  readonly tools: readonly string[];
  /** Before a call that nobody decided on is denied; default: it waits as long as it takes. */
  readonly timeout_seconds?: number;
}

/** The `compaction` table. */
export interface CompactionConfig {
  readonly enabled?: boolean;
  readonly context_window_tokens?: number;
  readonly reserve_tokens?: number;
  readonly keep_recent_tokens?: number;
  readonly model?: string;
}

/** The profile that the configuration describes. */
export function toProfile(agent: AgentConfig = {}, compaction: CompactionConfig = {}): AgentProfile {
  const budget = defined({ maxTurns: agent.max_turns, maxTokens: agent.max_tokens, maxCost: agent.max_cost });
  const settings: Partial<CompactionSettings> = defined({
    enabled: compaction.enabled,
    contextWindowTokens: compaction.context_window_tokens,
    reserveTokens: compaction.reserve_tokens,
    keepRecentTokens: compaction.keep_recent_tokens,
    model: compaction.model,
  });
  return defined({
    model: agent.model,
    backend: agent.backend,
    instructions: agent.instructions,
    thinkingLevel: agent.thinking_level,
    cwd: agent.cwd,
    allowWrite: agent.allow_write,
    allowShell: agent.allow_shell,
    allowedCommands: agent.allowed_commands,
    allowCompoundCommands: agent.allow_compound_commands,
    allowProtectedPaths: agent.allow_protected_paths,
    allowNetwork: agent.allow_network,
    approvals: agent.approvals === undefined ? undefined : toApprovals(agent.approvals),
    maxTaskDepth: agent.max_task_depth,
    typedRetries: agent.typed_retries,
    modelIdleTimeoutMs: agent.model_idle_seconds === undefined ? undefined : agent.model_idle_seconds * 1_000,
    specs: agent.specs,
    guidelines: agent.guidelines,
    projectInstructions: agent.project_instructions,
    ...(Object.keys(budget).length > 0 ? { budget } : {}),
    ...(Object.keys(settings).length > 0 ? { compaction: settings } : {}),
  });
}

function toApprovals({ tools, timeout_seconds }: ApprovalsConfig): ApprovalRules {
  return { tools, ...(timeout_seconds === undefined ? {} : { timeoutMs: timeout_seconds * 1_000 }) };
}
