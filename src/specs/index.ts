/**
 * `kit/specs`: spec blocks without a project around them, and the parts of an adapter of your own.
 *
 * Everything here is pure and runs anywhere.
 */
export type { Diagnostic, DiagnosticRule } from "../protocol/diagnostic.ts";
export {
  diagnosticRules,
  earsPatterns,
  frameworks,
  lifecycles,
  maxSummaryLength,
  priorities,
  specTypes,
} from "../protocol/enums.ts";
export type {
  AcceptanceCriterion,
  EarsEntry,
  EarsPattern,
  Framework,
  Lifecycle,
  Priority,
  SourceSpan,
  SpecBlock,
  SpecMetadata,
  SpecType,
  TaskStatus,
} from "../protocol/spec-block.ts";
export type {
  DraftId,
  DraftLink,
  DraftMention,
  ParsedSpecs,
  SpecAdapter,
  SpecDraft,
  SpecSource,
  WrittenSpecs,
} from "./adapter.ts";
export type { CustomDefaults, CustomSource } from "./adapters/custom/custom-adapter.ts";
export { exportSpecs, type SpecExportFormat } from "./export/export-specs.ts";
export { type FrameworkInfo, frameworkInfos, frameworkLabel, frameworkOf } from "./frameworks.ts";
export type { FrontMatterCode, FrontMatterProblem } from "./markdown/front-matter.ts";
export { type FrontMatter, readFrontMatter } from "./markdown/front-matter.ts";
export {
  type Heading,
  type LineKind,
  lineKinds,
  lineText,
  type MarkdownScan,
  scanMarkdown,
  textOfLines,
} from "./markdown/scan-markdown.ts";
export { type Section, sectionsOf } from "./markdown/segments.ts";
export { slugOf } from "./model/block-title.ts";
export { mentionsIn } from "./model/mentions.ts";
export { classifyCriterion, type EarsClassification } from "./model/scenario.ts";
export { type LineRange, type TaskItem, taskItemsIn } from "./model/task-list.ts";
export { type BoxedTask, tickTask } from "./model/tick-task.ts";
export { validateBlocks } from "./model/validate.ts";
export {
  createSpecRegistry,
  type SpecRegistry,
  type SpecRegistryOptions,
  toolLabel,
} from "./registry.ts";
