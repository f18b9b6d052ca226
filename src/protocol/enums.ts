/**
 * The closed lists of values on the wire. They are separate from the schemas, so that the command line and browsers
 * can read a list without loading a schema library.
 */

/** The kinds of waiting calls: one that an approver decides about, one whose caller runs it, and one that asks a person. */
export const callKinds = ["approval", "caller", "question"] as const;

/** The frameworks a spec block can come from, by wire value. Labels: `specs/frameworks.ts`. */
export const frameworks = ["fw_a", "fw_b", "fw_c", "fw_d", "fw_e", "custom"] as const;
export type Framework = (typeof frameworks)[number];

export const specTypes = ["requirement", "design", "task", "constraint"] as const;
export type SpecType = (typeof specTypes)[number];

export const lifecycles = ["active", "deprecated", "legacy", "obsolete"] as const;
export type Lifecycle = (typeof lifecycles)[number];

export const priorities = ["critical", "high", "medium", "low"] as const;
export type Priority = (typeof priorities)[number];

/**
 * The outcome of a webhook's delivery, by the status of its reply: 2xx, 4xx or 5xx. An `open` delivery has no reply yet, or its process
 * ended before the reply.
 */
export const deliveryOutcomes = ["accepted", "refused", "failed", "open"] as const;
export type DeliveryOutcome = (typeof deliveryOutcomes)[number];

/** The EARS forms (Mavin et al., "Easy Approach to Requirements Syntax"). */
export const earsPatterns = [
  "ubiquitous",
  "event_driven",
  "state_driven",
  "optional_feature",
  "unwanted_behavior",
  "complex",
] as const;
export type EarsPattern = (typeof earsPatterns)[number];

export const specEdgeKinds = [
  "defines",
  "code_ref",
  "test_ref",
  "related",
  "implements",
  "validates",
  "covered_by",
  "same_feature",
] as const;
export type SpecEdgeKind = (typeof specEdgeKinds)[number];

/**
 * The evidence that makes a test count for a criterion.
 *
 * - `path`: a requirement names the test file. A task that names one is a claim, which counts for nothing.
 * - `key`: the test contains the criterion's key, `auth#1.2`, or the id of its block.
 * - `number`: the test names the number (`Requirement 1.2`, `FR-003`) and belongs to the feature, or
 *   the number belongs to one feature only.
 */
export const coverageEvidence = ["path", "key", "number"] as const;
export type CoverageEvidence = (typeof coverageEvidence)[number];

/** The state of an acceptance criterion: the last results of the tests that name it. */
export const criterionStates = ["uncovered", "never_run", "partly_run", "passing", "failing"] as const;
export type CriterionState = (typeof criterionStates)[number];

/** The causes of a stale result: each can change after a test has run. */
export const staleCauses = ["test", "code", "criterion"] as const;

/**
 * The origin of a result: `observed`: the program that records it has run the tests itself; `submitted`: a person or a build server
 * handed in a report, which any program can write.
 */
export const resultSources = ["observed", "submitted"] as const;

/** A commit of Git, whole or shortened. */
export const commitPattern: RegExp = /^[0-9a-f]{7,64}$/;

/** The formats of test reports. */
export const reportFormats = ["junit", "vitest"] as const;
export type ReportFormat = (typeof reportFormats)[number];

/** The rules a diagnostic can name. The first five are the validation rules of a spec block. */
export const diagnosticRules = [
  "required-field",
  "enum",
  "timestamp",
  "summary-length",
  "duplicate-id",
  "unreadable-file",
  "encoding",
  "front-matter",
  "structure",
  "dangling-reference",
  "glob-no-match",
  "duplicate-guideline",
  "drift",
  "contradiction",
  "shadowed",
  "import",
  "limit",
  "skill-format",
] as const;
export type DiagnosticRule = (typeof diagnosticRules)[number];

/** The formats a guideline can come from. */
export const sourceTypes = [
  "fw_c",
  "fw_b",
  "steering",
  "agents",
  "copilot",
  "gemini",
  "windsurf",
  "cline",
  "zed",
  "sample",
] as const;
export type SourceType = (typeof sourceTypes)[number];

/** The formats that kit can convert a guideline to. */
export const conversionFormats = [
  "steering",
  "fw_c",
  "fw_b",
  "copilot",
  "gemini",
  "windsurf",
  "cline",
  "zed",
] as const;
export type ConversionFormat = (typeof conversionFormats)[number];

/** The formats that kit can export all guidelines to. */
export const exportFormats = ["fw_c", "fw_b"] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** The formats that a guideline sync can read as the source of truth, and those that it can write. */
export const syncFormats = [
  "agents",
  "fw_c",
  "fw_b",
  "steering",
  "copilot",
  "gemini",
  "windsurf",
  "cline",
  "zed",
] as const;
export type SyncFormat = (typeof syncFormats)[number];

/** The formats of rules that a sync can write, and the tools without a format that get skills and MCP servers. */
export const syncTargets = [...syncFormats, "codex", "junie"] as const;
export type SyncTarget = (typeof syncTargets)[number];

/** The tools that a sync can write skills and MCP servers for. */
export const toolTargets = ["fw_c", "steering", "codex", "junie", "fw_b", "copilot"] as const;
export type ToolTarget = (typeof toolTargets)[number];

/** The tools whose skills a sync can copy; `agents`: those of `.agents/skills`. */
export const skillSources = ["agents", "fw_c", "steering", "junie", "fw_b", "copilot"] as const;
export type SkillSource = (typeof skillSources)[number];

/** The tools whose MCP servers a sync can carry; `kit`: those of kit's configuration. */
export const mcpSources = ["kit", ...toolTargets] as const;
export type McpSource = (typeof mcpSources)[number];

/** The tools whose view of a repository `explain` can show. */
export const explainTools = [
  "fw_a",
  "fw_b",
  "fw_c",
  "codex",
  "copilot",
  "gemini",
  "windsurf",
  "cline",
  "zed",
  "agents",
  "agents-nearest",
  "agents-all",
] as const;
export type ExplainTool = (typeof explainTools)[number];

/** `failed` is a dead letter: its attempts are used up, and an operator decides about it. */
export const dispatchStatuses = ["queued", "running", "completed", "failed", "cancelled"] as const;
export type DispatchStatus = (typeof dispatchStatuses)[number];

/** The statuses of inputs that have not ended. */
export const openDispatchStatuses = ["queued", "running"] as const satisfies readonly DispatchStatus[];

/** A `waiting` run waits for a time or a signal; it uses no memory. */
export const runStatuses = ["queued", "running", "waiting", "completed", "failed", "cancelled"] as const;
export type RunStatus = (typeof runStatuses)[number];
/** The statuses of runs that have not ended. */
export const openRunStatuses = ["queued", "running", "waiting"] as const satisfies readonly RunStatus[];

/** How the last operation of a session ended; `idle` also before its end. */
export const sessionStates = ["idle", "failed", "stopped"] as const;
export type SessionState = (typeof sessionStates)[number];

export const sessionStatuses = ["idle", "working", "waiting", "failed", "stopped"] as const;
export type SessionStatus = (typeof sessionStatuses)[number];

export const sessionOrders = ["oldest", "newest", "recent"] as const;
export type SessionOrder = (typeof sessionOrders)[number];

/** The kinds of project knowledge that a prompt can show a model. */
export const receiptKinds = ["instructions", "role", "guideline", "skill", "spec", "memory"] as const;
export type ReceiptKind = (typeof receiptKinds)[number];

/** How long a model thinks before it answers; each provider's own setting is derived from it. */
export const thinkingLevels = ["off", "minimal", "low", "medium", "high", "xhigh"] as const;
export type ThinkingLevel = (typeof thinkingLevels)[number];

/** The backends that can be chosen by name. */
export const backendNames = ["typed", "graph", "openai_agents", "google_adk"] as const;
export type BackendName = (typeof backendNames)[number];

/** The operations that a caller can ask of a session. */
export const operationKinds = ["prompt", "stream", "skill", "task", "shell", "compact", "python"] as const;
export type OperationKind = (typeof operationKinds)[number];

/** Why a model ended its answer. */
export const finishReasons = [
  "stop",
  "length",
  "content-filter",
  "tool-calls",
  "error",
  "aborted",
  "other",
] as const;
export type FinishReason = (typeof finishReasons)[number];

/** The most attempts at one call of a model that a prompt can ask for. */
export const maxModelAttempts = 20;

/** All types of events; `event.ts` has their fields. */
export const eventTypes = [
  "operation_start",
  "operation",
  "agent_start",
  "turn_request",
  "turn",
  "turn_end",
  "idle",
  "abort_requested",
  "aborted",
  "joined",
  "error",
  "text_delta",
  "reasoning_delta",
  "tool_args_delta",
  "source",
  "file",
  "tool_start",
  "tool_progress",
  "tool_end",
  "approval_request",
  "approval",
  "command_start",
  "command_end",
  "task_start",
  "task_end",
  "gap",
  "compaction_start",
  "compaction_end",
  "run_start",
  "run_end",
  "step_start",
  "step_end",
  "log",
] as const;

/** How much a spec block counts in a ranking. */
export const lifecycleWeights: Readonly<Record<Lifecycle, number>> = {
  active: 1,
  deprecated: 0.5,
  legacy: 0.2,
  obsolete: 0,
};
export const priorityWeights: Readonly<Record<Priority, number>> = {
  critical: 1,
  high: 0.8,
  medium: 0.5,
  low: 0.3,
};

/** The longest `summary` of a spec block, in characters (code points). */
export const maxSummaryLength = 500;
