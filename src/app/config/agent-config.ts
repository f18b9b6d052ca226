import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import type { ApprovalRules } from "../../agents/define/approval-rules.ts";
import type { CompactionSettings } from "../../agents/define/limits.ts";
import { defined } from "../../base/defined.ts";
import type { AgentConfig, ApprovalsConfig, CompactionConfig } from "./config-schema.ts";

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
    hooks: agent.hooks,
    ...(Object.keys(budget).length > 0 ? { budget } : {}),
    ...(Object.keys(settings).length > 0 ? { compaction: settings } : {}),
  });
}

function toApprovals({ tools, timeout_seconds }: ApprovalsConfig): ApprovalRules {
  return { tools, ...(timeout_seconds === undefined ? {} : { timeoutMs: timeout_seconds * 1_000 }) };
}
