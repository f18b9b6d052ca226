import type { ConversionFormat } from "../protocol/guideline.ts";
import type { GuidelineDraft, GuidelineTool } from "./adapter.ts";
import type { GuidelineRecord } from "./guideline-record.ts";
import { filePatternOf } from "./to-guideline.ts";

/** What a conversion writes: where it applies, which patterns its tool obeys, which imports it follows. */
interface Target {
  readonly name: string;
  readonly obeysPatterns: boolean;
  readonly imports: "at" | "file-reference" | "none";
}

const targets: Readonly<Record<ConversionFormat, Target>> = {
  steering: { name: "a steering file", obeysPatterns: true, imports: "file-reference" },
  fw_c: { name: "CLAUDE.md", obeysPatterns: false, imports: "at" },
  fw_b: { name: ".cursorrules", obeysPatterns: false, imports: "none" },
};

const importsOf: Readonly<Record<GuidelineTool, Target["imports"]>> = {
  claude: "at",
  cursor: "at",
  kiro: "file-reference",
  agents: "none",
};

/** Front matter that is carried over in another form, so that it is not lost. */
const carriedKeys = new Set(["globs", "paths", "fileMatchPattern", "inclusion", "alwaysApply"]);

/** What the target of a conversion cannot express, one sentence each. */
export function conversionLosses(record: GuidelineRecord, format: ConversionFormat): string[] {
  const target = targets[format];
  return [
    ...patternLosses(record, target),
    ...inclusionLosses(record, target),
    ...scopeLosses(record, target),
    ...importLosses(record, target),
    ...frontMatterLosses(record, target),
  ];
}

function patternLosses(record: GuidelineRecord, target: Target): string[] {
  const pattern = filePatternOf(record);
  if (pattern === undefined || target.obeysPatterns) return [];
  return [
    `${target.name} cannot limit a section to ${shown(pattern)}; the pattern is kept as a line to read.`,
  ];
}

function inclusionLosses(record: GuidelineRecord, target: Target): string[] {
  if (record.inclusion === "manual")
    return [`The guideline is loaded only when somebody mentions it; in ${target.name} it is always loaded.`];
  if (record.inclusion === "auto")
    return [`The guideline is loaded when the agent asks for it; in ${target.name} it is always loaded.`];
  if (record.inclusion === "always" && record.globs.length > 0 && target.obeysPatterns)
    return ["The guideline is always loaded, whatever its pattern; in a steering file the pattern decides."];
  return [];
}

function scopeLosses(record: GuidelineRecord, target: Target): string[] {
  if (record.scope === "") return [];
  const folder = shown(record.scope);
  return record.globs.length > 0 && target.obeysPatterns
    ? [`The pattern is relative to ${folder}; in ${target.name} it is relative to the project root.`]
    : [`The guideline applies to ${folder} only; in ${target.name} it applies to the whole project.`];
}

function importLosses(record: GuidelineRecord, target: Target): string[] {
  if (record.imports.length === 0 || importsOf[record.tool] === target.imports) return [];
  const paths = [...new Set(record.imports.map((each) => shown(each.path)))];
  return [`${target.name} does not follow the references to ${listed(paths)}; they stay as text.`];
}

function frontMatterLosses(record: Pick<GuidelineDraft, "frontmatter">, target: Target): string[] {
  const keys = Object.keys(record.frontmatter).filter((key) => {
    const value = record.frontmatter[key];
    return !carriedKeys.has(key) && value !== null && value !== "";
  });
  if (keys.length === 0) return [];
  return [`${target.name} has no place for ${listed(keys.map(shown))} of the front matter.`];
}

function listed(items: readonly string[]): string {
  const first = items.slice(0, 5);
  const more = items.length - first.length;
  return more > 0 ? `${first.join(", ")} and ${more} more` : first.join(", ");
}

/** A name as it may stand in a sentence: short and without control characters. */
function shown(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a message
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
  return clean.length <= 100 ? clean : `${clean.slice(0, 99)}…`;
}
