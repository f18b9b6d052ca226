/**
 * `kit/guidelines`: guidelines without a project around them: read a file, match, convert, export.
 *
 * Everything here is pure and runs anywhere.
 */

export { compileGlob, type Glob } from "../base/glob/glob.ts";
export {
  conversionFormats,
  explainTools,
  exportFormats,
  type SyncFormat,
  sourceTypes,
  syncFormats,
} from "../protocol/enums.ts";
export type {
  ConversionFormat,
  ConversionResult,
  ExportFormat,
  ExportResult,
  Guideline,
  GuidelineList,
  SourceType,
} from "../protocol/guideline.ts";
export type { ExplainTool, GuidelineQuery } from "../protocol/guideline-query.ts";
export type {
  GuidelineAdapter,
  GuidelineDraft,
  GuidelineTool,
  Inclusion,
  ParsedGuidelines,
} from "./adapter.ts";
export { exportGuidelines } from "./convert/conversion-targets.ts";
export { type ConversionContext, convertGuideline } from "./convert/convert-guideline.ts";
export type { GuidelineRecord } from "./guideline-record.ts";
export { toGuideline } from "./guideline-record.ts";
export {
  createGuidelineMatcher,
  type GuidelineMatch,
  type GuidelineMatcher,
  listGuidelines,
} from "./match/match-guidelines.ts";
export { readGuidelines } from "./read-guidelines.ts";
export { conversionFormatOf, sourceTypeOf } from "./tools/tool-table.ts";
