import type { ConversionFormat, ExportFormat, ExportResult } from "../../protocol/guideline.ts";
import type { GuidelineRecord } from "../guideline-record.ts";
import { headingLine, renderSection, steeringFrontMatter } from "./render-section.ts";

export type FrontMatterValues = Readonly<Record<string, string | boolean | readonly string[]>>;

/** The form of a guideline in a format: a section of the conventional file, or a file of its own. */
export type ConversionTarget = SectionTarget | FileTarget;

interface SectionTarget {
  readonly kind: "section";
  readonly file: string;
}

interface FileTarget {
  readonly kind: "file";
  readonly folder: string;
  readonly extension: string;
  frontMatter(record: GuidelineRecord): FrontMatterValues;
}

type FileFormat = "steering" | "copilot" | "windsurf" | "cline";

export const conversionTargets: Readonly<
  Record<FileFormat, FileTarget> & Record<Exclude<ConversionFormat, FileFormat>, SectionTarget>
> = {
  fw_c: { kind: "section", file: "CLAUDE.md" },
  fw_b: { kind: "section", file: ".cursorrules" },
  gemini: { kind: "section", file: "GEMINI.md" },
  zed: { kind: "section", file: ".rules" },
  steering: { kind: "file", folder: ".kiro/steering", extension: ".md", frontMatter: steeringFrontMatter },
  copilot: {
    kind: "file",
    folder: ".github/instructions",
    extension: ".instructions.md",
    frontMatter: copilotFrontMatter,
  },
  windsurf: { kind: "file", folder: ".windsurf/rules", extension: ".md", frontMatter: windsurfFrontMatter },
  cline: { kind: "file", folder: ".clinerules", extension: ".md", frontMatter: clineFrontMatter },
};

/** The conventional file name of a converted guideline, without a folder. */
export function conversionFilename(record: Pick<GuidelineRecord, "title">, target: ConversionTarget): string {
  if (target.kind === "section") return target.file;
  return guidelineFilename(record.title).replace(/\.md$/, target.extension);
}

function copilotFrontMatter(record: GuidelineRecord): FrontMatterValues {
  // Without applyTo, Copilot adds the instructions when the user or their description asks for them.
  if (record.inclusion === "manual" || record.inclusion === "auto") return descriptionOf(record);
  const globs = record.inclusion === "always" ? [] : globsFromRoot(record);
  return { ...descriptionOf(record), applyTo: globs.length === 0 ? wholeScope(record) : globs.join(",") };
}

function windsurfFrontMatter(record: GuidelineRecord): FrontMatterValues {
  if (record.inclusion === "manual") return { trigger: "manual" };
  if (record.inclusion === "auto")
    return { trigger: "model_decision", description: record.title, ...descriptionOf(record) };
  const globs = record.inclusion === "always" ? [] : globsFromRoot(record);
  if (globs.length > 0) return { trigger: "glob", globs: globs.join(",") };
  return record.scope === "" ? { trigger: "always_on" } : { trigger: "glob", globs: wholeScope(record) };
}

function clineFrontMatter(record: GuidelineRecord): FrontMatterValues {
  const globs = record.inclusion === "pattern" ? globsFromRoot(record) : [];
  if (globs.length > 0) return { paths: globs };
  return record.scope === "" ? {} : { paths: [wholeScope(record)] };
}

/** Globs relative to the root of the project. */
function globsFromRoot({ scope, globs }: Pick<GuidelineRecord, "scope" | "globs">): readonly string[] {
  return scope === "" ? globs : globs.map((glob) => `${literal(scope)}/${glob.replace(/^(?:\.?\/)+/, "")}`);
}

/** The glob of all files that a guideline without globs applies to. */
function wholeScope({ scope }: Pick<GuidelineRecord, "scope">): string {
  return scope === "" ? "**" : `${literal(scope)}/**`;
}

function literal(folder: string): string {
  return folder.replace(/[\\*?[\]{}()!]/g, "\\$&");
}

function descriptionOf({ frontmatter }: GuidelineRecord): FrontMatterValues {
  const { description } = frontmatter;
  return typeof description === "string" && description.trim() !== ""
    ? { description: description.trim() }
    : {};
}

/** The longest name, without its extension. */
const maxNameLength = 60;

/**
 * A title as a file name: lower case, words joined by hyphens, `[a-z0-9-]` only, at most 60 characters
 * and `.md`. Letters with marks lose them; a title of other scripts is `guideline.md`.
 */
export function guidelineFilename(title: string): string {
  const words = title
    .slice(0, 1000)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase()
    .match(/[a-z0-9]+/g);
  const name = (words ?? []).join("-").slice(0, maxNameLength).replace(/-+$/, "");
  return `${name === "" ? "guideline" : name}.md`;
}

/**
 * All guidelines in one file under a project heading, a sub-heading each. Read back, it gives the same
 * titles, contents and file patterns. Samples are left out unless they are all there is.
 *
 * @example
 * ```ts
 * import { exportGuidelines, readGuidelines } from "kit/guidelines";
 *
 * const { records } = readGuidelines({ path: "AGENTS.md", text: "# Rules\n\n## Style\n\nUse tabs.\n" });
 * console.log(exportGuidelines(records, "fw_c", "shop").filename);
 * ```
 */
export function exportGuidelines(
  records: readonly GuidelineRecord[],
  format: ExportFormat,
  projectName: string,
): ExportResult {
  const own = records.filter((record) => record.source_type !== "sample");
  const sections = (own.length > 0 ? own : records).map(renderSection);
  const content = [headingLine(1, `${projectName} guidelines`), ...sections].join("\n\n");
  return { filename: conversionFilename({ title: "" }, conversionTargets[format]), content: `${content}\n` };
}
