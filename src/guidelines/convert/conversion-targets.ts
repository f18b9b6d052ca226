import type { ConversionFormat, ExportFormat, ExportResult } from "../../protocol/guideline.ts";
import { scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import { parseSectionedFile } from "../adapters/whole-file.ts";
import { filePatternOf, type GuidelineRecord } from "../guideline-record.ts";
import { embedContent, embeddedMark, toPatternLine } from "../kit-marks.ts";

type FrontMatterValues = Readonly<Record<string, string | boolean | readonly string[]>>;

/** The form of a guideline in a format: a section of the conventional file, or a separate file. */
type ConversionTarget = SectionTarget | FileTarget;

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

/** Latin letters that are no plain letter with a mark, as people write them without. */
const spellings: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  ð: "d",
  đ: "d",
  þ: "th",
  ł: "l",
  ħ: "h",
  ı: "i",
};

/**
 * A title as a file name: lower case, words joined by hyphens, `[a-z0-9-]` only, at most 60 characters and `.md`. Letters lose
 * their marks; a title in a script other than Latin becomes `guideline.md`.
 */
export function guidelineFilename(title: string): string {
  const words = title
    .slice(0, 1000)
    .toLowerCase()
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .replace(/[ßæœøðđþłħı]/gu, (letter) => spellings[letter] ?? "")
    .match(/[a-z0-9]+/g);
  const name = (words ?? []).join("-").slice(0, maxNameLength).replace(/-+$/, "");
  return `${name === "" ? "guideline" : name}.md`;
}

/**
 * Writes all guidelines into one file under a project heading, each under a sub-heading. Reading the file returns the same
 * titles, contents and file patterns. Leaves out samples unless there are only samples.
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
  const withoutSamples = records.filter((record) => record.source_type !== "sample");
  const sections = (withoutSamples.length > 0 ? withoutSamples : records).map(renderSection);
  const content = [headingLine(1, `${projectName} guidelines`), ...sections].join("\n\n");
  return { filename: conversionFilename({ title: "" }, conversionTargets[format]), content: `${content}\n` };
}

type Renderable = Pick<GuidelineRecord, "title" | "content" | "globs">;

/**
 * Renders a guideline as a second-level section, without a line end after it. Reading the section returns the same title, content
 * and `file_pattern`: content that would end the section early is sealed.
 */
export function renderSection(record: Renderable): string {
  const open = sectionWith(record, record.content);
  // A seal inside the content would end at the closing comment of a later section.
  const isOpen = !record.content.includes(embeddedMark) && readsBack(record, open);
  return isOpen ? open : sectionWith(record, embedContent(record.content));
}

/** A heading line whose title reads back: closing marks are closed again. */
function headingLine(level: number, title: string): string {
  const text = title.replace(/[\r\n]+/g, " ").trim();
  const marks = "#".repeat(level);
  return text.endsWith("#") ? `${marks} ${text} ${marks}` : `${marks} ${text}`;
}

function sectionWith(record: Renderable, content: string): string {
  const pattern = filePatternOf(record);
  const parts = [headingLine(2, record.title)];
  if (pattern !== undefined) parts.push(toPatternLine(pattern));
  if (content !== "") parts.push(content);
  return parts.join("\n\n");
}

/** Parses the section between other text, because any other check would repeat the rules of the parser. */
function readsBack(record: Renderable, section: string): boolean {
  const text = `# Guidelines\n\n${section}\n\n## End\n`;
  const kind = { source_type: "agents", tool: "agents", scope: "", imports: "none" } as const;
  const { drafts } = parseSectionedFile({ path: "AGENTS.md", text }, kind);
  const [first, second] = drafts;
  return (
    drafts.length === 2 &&
    first !== undefined &&
    first.title === titleAsRead(record.title) &&
    first.content === record.content &&
    filePatternOf(first) === filePatternOf(record) &&
    second?.title === "End"
  );
}

function titleAsRead(title: string): string {
  return scanMarkdown(headingLine(2, title)).headings[0]?.title ?? "";
}

/**
 * The front matter of a steering file: one pattern as text and several as a list, as Kiro reads them; without a pattern the file
 * is always included.
 *
 * @see docs/guidelines.md
 */
function steeringFrontMatter(
  record: Pick<GuidelineRecord, "globs">,
): Record<string, string | readonly string[]> {
  const [only] = record.globs;
  if (only === undefined) return { inclusion: "always" };
  return { inclusion: "fileMatch", fileMatchPattern: record.globs.length === 1 ? only : record.globs };
}

/** Renders a file that is one guideline: front matter, the title as its heading, the content. */
export function renderWholeFile(
  record: Pick<GuidelineRecord, "title" | "content">,
  frontMatter: Readonly<Record<string, string | boolean | readonly string[]>>,
): string {
  const block = Object.keys(frontMatter).length === 0 ? "" : `${toFrontMatter(frontMatter)}\n`;
  const body = record.content === "" ? "" : `\n${record.content}\n`;
  return `${block}${headingLine(1, record.title)}\n${body}`;
}

// YAML 1.1 reads these as booleans and nulls, so they are quoted although YAML 1.2 does not need it.
const reserved = /^(?:true|false|yes|no|on|off|y|n|null)$/i;
const plain = /^[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*$/;
// A double-quoted scalar must escape these characters: YAML 1.2.2, section 5.1.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must be escaped
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]/g;

/** A text as a YAML scalar on one line, quoted where it needs to be. */
export function toYamlScalar(text: string): string {
  return plain.test(text) && !reserved.test(text) ? text : toQuotedYaml(text);
}

/** A text as a double-quoted YAML scalar; globs always are, for the readers that need it. */
export function toQuotedYaml(text: string): string {
  const escaped = text.replace(/["\\]/g, "\\$&").replace(unprintable, escapeOf);
  return `"${escaped}"`;
}

function escapeOf(character: string): string {
  switch (character) {
    case "\n":
      return "\\n";
    case "\t":
      return "\\t";
    case "\r":
      return "\\r";
    default:
      return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  }
}

/** A front matter block of texts and lists of texts, with its fences and a line end. */
export function toFrontMatter(
  entries: Readonly<Record<string, string | boolean | readonly string[]>>,
): string {
  const lines = Object.entries(entries).map(([key, value]) => {
    if (typeof value === "boolean") return `${key}: ${value}`;
    if (typeof value !== "string")
      return `${key}:${value.map((item) => `\n  - ${toQuotedYaml(item)}`).join("")}`;
    return `${key}: ${isPatternKey(key) ? toQuotedYaml(value) : toYamlScalar(value)}`;
  });
  return `---\n${lines.join("\n")}\n---\n`;
}

function isPatternKey(key: string): boolean {
  return key === "fileMatchPattern" || key === "globs" || key === "paths";
}
