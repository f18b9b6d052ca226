import { suggest, withArticle } from "../base/error-text.ts";
import { isRecord } from "../base/record.ts";
import { toolSettings } from "../guidelines/settings/tool-settings.ts";
import { conversionFormatOf, sourceTypeOf, toolInfo, toolTable } from "../guidelines/tools/tool-table.ts";
import type { DispatchStatus } from "../protocol/dispatch.ts";
import {
  type BackendName,
  backendNames,
  conversionFormats,
  dispatchStatuses,
  explainTools,
  exportFormats,
  frameworks,
  lifecycles,
  type McpSource,
  mcpSources,
  priorities,
  type ReportFormat,
  reportFormats,
  runStatuses,
  type SessionOrder,
  type SessionStatus,
  type SkillSource,
  type SyncFormat,
  type SyncTarget,
  sessionOrders,
  sessionStatuses,
  skillSources,
  sourceTypes,
  specTypes,
  syncFormats,
  syncTargets,
} from "../protocol/enums.ts";
import type { ConversionFormat, ExportFormat, SourceType } from "../protocol/guideline.ts";
import type { ExplainTool } from "../protocol/guideline-query.ts";
import type { RunStatus } from "../protocol/run.ts";
import type { Framework, Lifecycle, Priority, SpecType } from "../protocol/spec-block.ts";
import type { SpecExportFormat } from "../specs/export/export-specs.ts";
import { frameworkInfos, frameworkLabel, frameworkOf } from "../specs/frameworks.ts";
import type { Parse } from "./command.ts";
import { usageError } from "./report-error.ts";

/** A name that users write for a value, and the value that records hold. */
interface Choice<Value extends string> {
  /** The choices that help and hints offer. */
  readonly name: string;
  readonly value: Value;
}

/** Parses one of a few names; `resolve` knows the aliases. */
function oneOf<Value extends string>(
  argument: string,
  choices: readonly Choice<Value>[],
  resolve: (text: string) => Value | undefined = (text) => choices.find(({ value }) => value === text)?.value,
): Parse<Value> {
  const parse = (text: string): Value => {
    const value = resolve(text.toLowerCase());
    if (value !== undefined && choices.some((choice) => choice.value === value)) return value;
    const names = choices.map((choice) => choice.name);
    const suggestion = suggest(text, [...names, ...choices.map((choice) => choice.value)]);
    throw usageError(
      `'${text}' is not ${withArticle(argument)}.`,
      `${suggestion === undefined ? "" : `Did you mean ${suggestion}? `}It is one of ${names.join(", ")}.`,
    );
  };
  return Object.assign(parse, { choices: choices.map(({ name }) => name) });
}

function plain<Value extends string>(values: readonly Value[]): readonly Choice<Value>[] {
  return values.map((value) => ({ name: value, value }));
}

export const parseSpecType: Parse<SpecType> = oneOf("type of spec", plain(specTypes));
export const parseLifecycle: Parse<Lifecycle> = oneOf("lifecycle", plain(lifecycles));
export const parsePriority: Parse<Priority> = oneOf("priority", plain(priorities));

export const parseReportFormat: Parse<ReportFormat> = oneOf("format of reports", plain(reportFormats));

export const parseBackend: Parse<BackendName> = oneOf("backend", plain(backendNames));

export const parseRunStatus: Parse<RunStatus> = oneOf("status of a run", plain(runStatuses));
export const parseDispatchStatus: Parse<DispatchStatus> = oneOf(
  "status of a dispatch",
  plain(dispatchStatuses),
);

export const parseSessionStatus: (text: string) => SessionStatus = oneOf(
  "status of a session",
  plain(sessionStatuses),
);
export const parseSessionOrder: (text: string) => SessionOrder = oneOf("order", plain(sessionOrders));

/** The name that people write for a framework. */
function nameOf(framework: Framework): string {
  return frameworkInfos.find(({ id }) => id === framework)?.aliases[0] ?? framework;
}

const frameworkChoices: readonly Choice<Framework>[] = frameworks.map((id) => ({
  name: nameOf(id),
  value: id,
}));
export const parseFramework: Parse<Framework> = oneOf("framework", frameworkChoices, frameworkOf);

/** The formats that specs can be exported as. */
export const parseExportTarget: Parse<SpecExportFormat> = oneOf<SpecExportFormat>(
  "format to export to",
  [...plain(["json", "jsonl"] as const), ...frameworkChoices],
  (text) => (text === "json" || text === "jsonl" ? text : frameworkOf(text)),
);

/** The names that people write for sources and formats of guidelines. */
const guidelineNames: Readonly<Record<SourceType, string>> = {
  fw_c: nameOf("fw_c"),
  fw_b: nameOf("fw_b"),
  steering: "steering",
  agents: "agents",
  copilot: "copilot",
  gemini: "gemini",
  windsurf: "windsurf",
  cline: "cline",
  zed: "zed",
  sample: "sample",
};

function toChoices<Value extends SourceType>(values: readonly Value[]): readonly Choice<Value>[] {
  return values.map((value) => ({ name: guidelineNames[value], value }));
}

export const parseSource: Parse<SourceType> = oneOf(
  "source of guidelines",
  toChoices(sourceTypes),
  sourceTypeOf,
);
export const parseConversionFormat: Parse<ConversionFormat> = oneOf(
  "format to convert to",
  toChoices(conversionFormats),
  conversionFormatOf,
);
export const parseExportFormat: Parse<ExportFormat> = oneOf(
  "format to export to",
  toChoices(exportFormats),
  (text) => exportFormats.find((format) => format === sourceTypeOf(text)),
);
/** The names of the formats that a guideline can be converted to, for help and hints. */
export const conversionNames: string = toChoices(conversionFormats)
  .map(({ name }) => name)
  .join(", ");
/** The names that a sync takes, for its help. */
export const syncNames: string = toChoices(syncFormats)
  .map(({ name }) => name)
  .join(", ");
export const parseSyncFormat: Parse<SyncFormat> = oneOf("format to sync", toChoices(syncFormats), (text) =>
  syncFormats.find((format) => format === sourceTypeOf(text)),
);

function toNamedChoices<Value extends SyncTarget | "kit">(
  values: readonly Value[],
): readonly Choice<Value>[] {
  return values.map((value) => ({
    name: Object.entries(guidelineNames).find(([type]) => type === value)?.[1] ?? value,
    value,
  }));
}

const targetChoices = toNamedChoices(syncTargets);
export const syncTargetNames: string = targetChoices.map(({ name }) => name).join(", ");
export const parseSyncTarget: Parse<SyncTarget> = oneOf("format to sync", targetChoices, (text) =>
  syncTargets.find((target) => target === (sourceTypeOf(text) ?? text)),
);
const parseSkillSource: Parse<SkillSource> = oneOf("source of skills", toNamedChoices(skillSources), (text) =>
  skillSources.find((source) => source === (sourceTypeOf(text) ?? text)),
);
const parseMcpSource: Parse<McpSource> = oneOf("source of MCP servers", toNamedChoices(mcpSources), (text) =>
  mcpSources.find((source) => source === (sourceTypeOf(text) ?? text)),
);

/** Reads one item of `--with`: `skills`, `mcp`, or one of them and whose they are, as in `mcp=claude`. */
export const parseSyncWith: Parse<{ readonly skills?: SkillSource; readonly mcp?: McpSource }> =
  Object.assign(
    (text: string) => {
      const [what = "", from] = text.split("=", 2);
      if (what === "skills") return { skills: parseSkillSource(from ?? "agents") };
      if (what === "mcp") return { mcp: parseMcpSource(from ?? "kit") };
      throw usageError(
        `'${text}' cannot be synced.`,
        "It is skills or mcp, or one of them with a source: mcp=claude.",
      );
    },
    { choices: ["skills", "mcp"] },
  );

/** The name that people give a source of guidelines, or a tool. */
export function sourceLabel(source: SourceType | SyncTarget): string {
  if (source === "codex" || source === "junie") return toolSettings[source].label;
  if (source === "steering") return "Kiro steering";
  if (source === "agents") return "AGENTS.md";
  if (source === "sample") return "Sample";
  return toolTable.find(({ id }) => id === source)?.label ?? frameworkLabel(source as Framework);
}

const tools: readonly (Choice<ExplainTool> & { readonly label: string })[] = [
  ...(["fw_a", "fw_b", "fw_c"] as const).map((id) => ({
    name: nameOf(id),
    value: id,
    label: frameworkLabel(id),
  })),
  ...(["codex", "copilot", "gemini", "windsurf", "cline", "zed"] as const).map((id) => ({
    name: id,
    value: id,
    label: toolInfo(id).label,
  })),
  { name: "agents", value: "agents", label: "a tool for AGENTS.md" },
  {
    name: "agents-nearest",
    value: "agents-nearest",
    label: "a tool for AGENTS.md that takes the closest file",
  },
  {
    name: "agents-all",
    value: "agents-all",
    label: "a tool for AGENTS.md that takes all files from the root down",
  },
];

/** The tools for which `explain` shows what they read. */
export const parseTool: Parse<ExplainTool> = oneOf("tool", tools, (text) =>
  explainTools.find((tool) => tool === (frameworkOf(text) ?? text)),
);

export function toolLabel(tool: ExplainTool): string {
  return tools.find(({ value }) => value === tool)?.label ?? tool;
}

export const managerNames = ["npm", "pnpm", "yarn", "bun"] as const;
export type ManagerName = (typeof managerNames)[number];

export const parsePackageManager: Parse<ManagerName> = oneOf("package manager", plain(managerNames));

/** A choice among the output formats of one command. */
export function outputFormat<Value extends string>(values: readonly Value[]): Parse<Value> {
  return oneOf("format of this command", plain(values));
}

/** Reads a whole number between two bounds, inclusive. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw usageError(`'${text}' is not a whole number from ${least} to ${most.toLocaleString("en")}.`);
  };
}

/** A value that may be any text. */
export function asText(text: string): string {
  return text;
}

/** The name of an agent of the project, which a shell completes. */
export const agentName: Parse<string> = Object.assign((name: string) => name, { choices: "agent" as const });
/** The name of a workflow of the project, which a shell completes. */
export const workflowName: Parse<string> = Object.assign((name: string) => name, {
  choices: "workflow" as const,
});

const example = `Such as --payload '{"text": "…"}'.`;

/** Reads `--payload`: a JSON object. */
export function parsePayload(text: string): Readonly<Record<string, unknown>> {
  const value = parseJson(text);
  if (isRecord(value)) return value;
  throw usageError("must be a JSON object.", example);
}

/** Reads any JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`not JSON: ${error instanceof Error ? error.message : String(error)}.`, example);
  }
}
