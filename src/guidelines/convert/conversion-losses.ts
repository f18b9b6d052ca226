import type { ConversionFormat } from "../../protocol/guideline.ts";
import type { GuidelineDraft, GuidelineTool } from "../adapter.ts";
import { filePatternOf, folderOf, type GuidelineRecord } from "../guideline-record.ts";

/** The target: its name, whether its tool obeys patterns, which imports it follows. */
export interface LossTarget {
  readonly name: string;
  readonly obeysPatterns: boolean;
  readonly imports: "at" | "file-reference" | "none";
  /** Whether it can mark a guideline as loaded on request. */
  readonly keepsRequests?: boolean;
  /** Patterns are written relative to the root, and left out where they are ignored. */
  readonly rewritesPatterns?: boolean;
  /** Front matter that it has a place for. */
  readonly carried?: readonly string[];
}

const ownFile = { obeysPatterns: true, imports: "none", rewritesPatterns: true } as const;

const targets: Readonly<Record<ConversionFormat, LossTarget>> = {
  steering: { name: "a steering file", obeysPatterns: true, imports: "file-reference" },
  fw_c: { name: "CLAUDE.md", obeysPatterns: false, imports: "at" },
  fw_b: { name: ".cursorrules", obeysPatterns: false, imports: "none" },
  gemini: { name: "GEMINI.md", obeysPatterns: false, imports: "at" },
  zed: { name: ".rules", obeysPatterns: false, imports: "none" },
  copilot: { name: "a Copilot instructions file", ...ownFile, keepsRequests: true, carried: ["description"] },
  windsurf: { name: "a Windsurf rule", ...ownFile, keepsRequests: true },
  cline: { name: "a Cline rule", ...ownFile },
};

const importsOf: Readonly<Record<GuidelineTool, LossTarget["imports"]>> = {
  claude: "at",
  cursor: "at",
  kiro: "file-reference",
  agents: "none",
  copilot: "none",
  gemini: "at",
  windsurf: "none",
  cline: "none",
  zed: "none",
};

/** Front matter that is carried over in another form, so that it is not lost. */
const carriedKeys = new Set([
  "globs",
  "paths",
  "fileMatchPattern",
  "inclusion",
  "alwaysApply",
  "applyTo",
  "trigger",
]);

/** The parts that the target of a conversion cannot express, one sentence each. */
export function conversionLosses(record: GuidelineRecord, format: ConversionFormat): string[] {
  const target = targets[format];
  return [
    ...patternLosses(record, target),
    ...inclusionLosses(record, target),
    ...scopeLosses(record, target),
    ...importLosses(record, target),
    ...movedPaths(record, folders[format]),
    ...frontMatterLosses(
      record,
      target,
      target.carried ?? (record.inclusion === "auto" && target.keepsRequests ? ["description"] : []),
    ),
  ];
}

export function patternLosses(record: GuidelineRecord, target: LossTarget): string[] {
  const pattern = filePatternOf(record);
  if (pattern === undefined || target.obeysPatterns) return [];
  return [
    `A section cannot be limited to ${quoteText(pattern)} in ${target.name}; the pattern is kept as a line to read.`,
  ];
}

function inclusionLosses(record: GuidelineRecord, target: LossTarget): string[] {
  if (target.keepsRequests && isOnRequest(record)) return [];
  if (record.inclusion === "manual")
    return [`The guideline is loaded only when a prompt mentions it; in ${target.name} it is always loaded.`];
  if (record.inclusion === "auto")
    return [`The guideline is loaded when the agent asks for it; in ${target.name} it is always loaded.`];
  if (
    record.inclusion === "always" &&
    record.globs.length > 0 &&
    target.obeysPatterns &&
    !target.rewritesPatterns
  )
    return ["The guideline is always loaded, whatever its pattern; in a steering file the pattern decides."];
  return [];
}

function scopeLosses(record: GuidelineRecord, target: LossTarget): string[] {
  if (record.scope === "" || (target.rewritesPatterns && !isOnRequest(record))) return [];
  const folder = quoteText(record.scope);
  return record.globs.length > 0 && target.obeysPatterns
    ? [`The pattern is relative to ${folder}; in ${target.name} it is relative to the project root.`]
    : [`The guideline applies to ${folder} only; in ${target.name} it applies to the whole project.`];
}

export function importLosses(record: GuidelineRecord, target: LossTarget): string[] {
  const syntax = importsOf[record.tool];
  if (record.imports.length === 0 || syntax === "none" || syntax === target.imports) return [];
  const paths = [...new Set(record.imports.map((each) => quoteText(each.path)))];
  return [`References to ${listed(paths)} are not followed in ${target.name}; they stay as text.`];
}

/** The folders that relative paths in the text of a target start from. */
const folders: Readonly<Record<ConversionFormat, string>> = {
  steering: ".kiro/steering",
  fw_c: "",
  fw_b: "",
  gemini: "",
  zed: "",
  copilot: ".github/instructions",
  windsurf: ".windsurf/rules",
  cline: ".clinerules",
};

/** Links and imports that start from the folder of the source, and lead elsewhere from that of the target. */
function movedPaths(record: GuidelineRecord, folder: string): string[] {
  const from = folderOf(record.source_file);
  if (from === folder) return [];
  const links = Array.from(record.content.matchAll(/\]\(\s*(\.{1,2}\/[^()\s]+)/g), (match) => match[1] ?? "");
  const imports = importsOf[record.tool] === "at" ? record.imports.map(({ path }) => path) : [];
  // From the root, an import of "docs/x.md" means the same to tools that try the root.
  const moved = imports.filter((path) => !/^[~/]/.test(path) && (from !== "" || folder !== ""));
  const paths = [...new Set([...links, ...moved])].map(quoteText);
  if (paths.length === 0) return [];
  return [
    `Paths relative to ${from === "" ? "the project root" : quoteText(from)} stay as they are: ${listed(paths)}.`,
  ];
}

/** `carried`: keys that the target format has, in addition to those that are converted to another form. */
export function frontMatterLosses(
  record: Pick<GuidelineDraft, "frontmatter">,
  target: LossTarget,
  carried: readonly string[] = [],
): string[] {
  const keys = Object.keys(record.frontmatter).filter((key) => {
    const value = record.frontmatter[key];
    return !carriedKeys.has(key) && !carried.includes(key) && value !== null && value !== "";
  });
  if (keys.length === 0) return [];
  return [`There is no place in ${target.name} for ${listed(keys.map(quoteText))} of the front matter.`];
}

function isOnRequest({ inclusion }: GuidelineRecord): boolean {
  return inclusion === "manual" || inclusion === "auto";
}

function listed(items: readonly string[]): string {
  const first = items.slice(0, 5);
  const more = items.length - first.length;
  return more > 0 ? `${first.join(", ")} and ${more} more` : first.join(", ");
}

/** A name for use in a sentence: short and without control characters. */
function quoteText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a message
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
  return clean.length <= 100 ? clean : `${clean.slice(0, 99)}…`;
}
