import { expandBraces } from "../../base/glob/glob.ts";
import type { ConversionFormat } from "../../protocol/guideline.ts";
import type { SyncFormat } from "../../protocol/sync.ts";
import {
  conversionLosses,
  frontMatterLosses,
  importLosses,
  type LossTarget,
  patternLosses,
} from "../convert/conversion-losses.ts";
import {
  conversionTargets,
  guidelineFilename,
  renderSection,
  renderWholeFile,
  toFrontMatter,
  toQuotedYaml,
  toYamlScalar,
} from "../convert/conversion-targets.ts";
import type { GuidelineRecord } from "../guideline-record.ts";

/** A file, or the managed part of a file, that a sync writes. */
export interface DesiredFile {
  readonly path: string;
  /** `part`: `text` goes between the comments of a shared file. `file`: it is the whole file. */
  readonly kind: "part" | "file";
  readonly text: string;
  readonly guidelines: readonly GuidelineRecord[];
  readonly losses: readonly string[];
}

export interface RenderedTarget {
  readonly files: readonly DesiredFile[];
  /** One sentence for each guideline that the format cannot express. */
  readonly leftOut: readonly string[];
}

/**
 * Renders guidelines in another format: every path once, in path order. A guideline with a separate file does not get a path that
 * `isTaken`.
 */
export function renderTarget(
  records: readonly GuidelineRecord[],
  target: SyncFormat,
  isTaken: (path: string) => boolean,
): RenderedTarget {
  const leftOut: string[] = [];
  const rendered = records.filter((record) => {
    const reason = unfit(record, target);
    if (reason !== undefined) leftOut.push(`"${record.title}" (${record.source_file}) ${reason}`);
    return reason === undefined;
  });
  // An always loaded guideline ignores its patterns, and so does its copy.
  const files = filesOf(
    rendered.map((record) => (record.inclusion === "always" ? { ...record, globs: [] } : record)),
    target,
    isTaken,
  );
  return { files: files.sort((one, other) => (one.path < other.path ? -1 : 1)), leftOut };
}

function filesOf(
  records: readonly GuidelineRecord[],
  target: SyncFormat,
  isTaken: (path: string) => boolean,
): DesiredFile[] {
  const ownFiles = (
    own: readonly GuidelineRecord[],
    describe: (record: GuidelineRecord, name: string) => OwnFile,
  ): DesiredFile[] => toOwnFiles(own, describe, isTaken);
  switch (target) {
    case "agents":
      return partsByFolder(records, "AGENTS.md");
    case "fw_c": {
      // A section of AGENTS.md with a pattern is read there as text, and so where it is imported.
      const isRule = (record: GuidelineRecord): boolean =>
        record.inclusion === "pattern" && record.source_type !== "agents";
      const parts = records.filter((record) => !isRule(record));
      return [...partsByFolder(parts, "CLAUDE.md"), ...ownFiles(records.filter(isRule), toClaudeRule)];
    }
    case "fw_b":
      return ownFiles(records, toCursorRule);
    case "steering":
      return ownFiles(records, toSteeringFile);
    case "gemini":
      return partsByFolder(records, "GEMINI.md");
    case "zed":
      return wholeProjectPart(records, { path: ".rules", format: "zed" });
    case "copilot": {
      const isGeneral = ({ inclusion, scope }: GuidelineRecord): boolean =>
        inclusion === "always" && scope === "";
      const general = { path: ".github/copilot-instructions.md", format: "copilot" } as const;
      return [
        ...wholeProjectPart(records.filter(isGeneral), general),
        ...ownFiles(
          records.filter((record) => !isGeneral(record)),
          (record) => toConvertedFile(record, "copilot"),
        ),
      ];
    }
    case "windsurf":
    case "cline":
      return ownFiles(records, (record) => toConvertedFile(record, target));
  }
}

/** The file that the guidelines of a folder share in a format; `undefined` if each has a separate file. */
export function sharedFile(format: SyncFormat, scope: string): string | undefined {
  switch (format) {
    case "agents":
      return inFolder(scope, "AGENTS.md");
    case "fw_c":
      return inFolder(scope, "CLAUDE.md");
    case "gemini":
      return inFolder(scope, "GEMINI.md");
    case "copilot":
      return scope === "" ? ".github/copilot-instructions.md" : undefined;
    case "zed":
      return scope === "" ? ".rules" : undefined;
    default:
      return undefined;
  }
}

/** Formats without a place for guidelines that are loaded on request would load them always. */
export function unfit(record: GuidelineRecord, target: SyncFormat): string | undefined {
  if (/^<!-- \/?kit:sync\b/m.test(record.content)) return "holds the marks of a sync; remove them.";
  if (target === "agents" && isOnlyImport(record, /(?:^|\/)AGENTS\.md$/)) return "only imports AGENTS.md.";
  const isAsked = record.inclusion === "manual" || record.inclusion === "auto";
  const restriction = cannotAsk[target];
  if (!isAsked || restriction === undefined) return undefined;
  return `is loaded on request only, which ${restriction} cannot say.`;
}

/** Formats whose tools load all of their files. */
const cannotAsk: Readonly<Partial<Record<SyncFormat, string>>> = {
  agents: "AGENTS.md",
  fw_c: "CLAUDE.md",
  gemini: "GEMINI.md",
  cline: "a Cline rule",
  zed: ".rules",
};

function isOnlyImport(record: GuidelineRecord, of: RegExp): boolean {
  const words = record.content.split(/\s+/).filter((word) => word !== "");
  return words.length > 0 && words.every((word) => word.startsWith("@") && of.test(word.slice(1)));
}

/** Formats that are written by a conversion have its losses. */
const lossTargets: Readonly<Partial<Record<SyncFormat, LossTarget>>> = {
  agents: { name: "AGENTS.md", obeysPatterns: false, imports: "none" },
  fw_c: { name: "Claude Code", obeysPatterns: true, imports: "at" },
  fw_b: { name: "Cursor", obeysPatterns: true, imports: "at" },
  steering: { name: "Kiro", obeysPatterns: true, imports: "file-reference" },
  gemini: { name: "GEMINI.md", obeysPatterns: false, imports: "at" },
};

function lossesOf(record: GuidelineRecord, target: SyncFormat): readonly string[] {
  const about = lossTargets[target];
  const carried = target === "fw_b" || target === "steering" ? ["description", "name"] : [];
  const losses =
    about === undefined
      ? conversionLosses(record, target as ConversionFormat)
      : [
          ...patternLosses(record, about),
          ...importLosses(record, about),
          ...frontMatterLosses(record, about, carried),
        ];
  return losses.map((loss) => `"${record.title}": ${loss}`);
}

/** One part per folder of scope, in the file that the tool reads there. */
function partsByFolder(
  records: readonly GuidelineRecord[],
  file: "AGENTS.md" | "CLAUDE.md" | "GEMINI.md",
): DesiredFile[] {
  return [...Map.groupBy(records, ({ scope }) => scope)].map(([scope, own]) => {
    const path = inFolder(scope, file);
    // Claude Code and Gemini CLI read AGENTS.md where it is imported: one line, which is never out of date.
    const isImport = file !== "AGENTS.md" && own.every(({ source_type }) => source_type === "agents");
    const sources = new Set(
      own.map(({ source_file }) => source_file.slice(source_file.lastIndexOf("/") + 1)),
    );
    const text = isImport
      ? [...sources].map((name) => (file === "GEMINI.md" ? `@./${name}` : `@${name}`)).join("\n")
      : own.map(renderSection).join("\n\n");
    const losses = isImport ? [] : own.flatMap((record) => lossesOf(record, formatsOfFiles[file]));
    return { path, kind: "part", text, guidelines: own, losses };
  });
}

const formatsOfFiles = { "AGENTS.md": "agents", "CLAUDE.md": "fw_c", "GEMINI.md": "gemini" } as const;

/** One part for the whole project, for a format with one file; a line names the folder that a guideline applies to. */
function wholeProjectPart(
  records: readonly GuidelineRecord[],
  { path, format }: { readonly path: string; readonly format: "zed" | "copilot" },
): DesiredFile[] {
  if (records.length === 0) return [];
  const text = records
    .map((record) => renderSection({ ...record, globs: globsFromRoot(record) }))
    .join("\n\n");
  const losses = records.flatMap((record) => lossesOf(record, format));
  return [{ path, kind: "part", text, guidelines: records, losses }];
}

interface OwnFile {
  readonly folder: string;
  readonly extension: string;
  readonly frontMatter: string;
  readonly target: SyncFormat;
}

function toOwnFiles(
  records: readonly GuidelineRecord[],
  describe: (record: GuidelineRecord, name: string) => OwnFile,
  isTaken: (path: string) => boolean,
): DesiredFile[] {
  const taken = new Set<string>();
  const lastOf = new Map<string, number>();
  return records.map((record) => {
    const stem = guidelineFilename(record.title).replace(/\.md$/, "");
    const key = `${record.scope}\n${stem}`;
    for (let n = (lastOf.get(key) ?? 0) + 1; ; n += 1) {
      const name = n === 1 ? stem : `${stem}-${n}`;
      const { folder, extension, frontMatter, target } = describe(record, name);
      const path = `${folder}/${name}${extension}`;
      if (taken.has(path) || isTaken(path)) continue;
      taken.add(path);
      lastOf.set(key, n);
      const text = `---\n${frontMatter}---\n\n${renderWholeFile(record, {})}`;
      return { path, kind: "file", text, guidelines: [record], losses: lossesOf(record, target) };
    }
  });
}

/** A file as a conversion makes it. */
function toConvertedFile(record: GuidelineRecord, target: "copilot" | "windsurf" | "cline"): OwnFile {
  const { folder, extension, frontMatter } = conversionTargets[target];
  const block = toFrontMatter(frontMatter(record)).replace(/^---\n|---\n$/g, "");
  return { folder, extension, frontMatter: block, target };
}

function toClaudeRule(record: GuidelineRecord): OwnFile {
  const frontMatter = yamlList("paths", globsFromRoot(record));
  return { folder: ".claude/rules", extension: ".md", frontMatter, target: "fw_c" };
}

// Cursor treats quotes as part of a glob and does not support braces, so globs are written unquoted and expanded.
function toCursorRule(record: GuidelineRecord): OwnFile {
  const globs = record.globs.flatMap((glob) => expandBraces(glob) ?? [glob]);
  const always = record.inclusion === "always";
  const frontMatter = [
    `description:${spaced(descriptionOf(record))}`,
    `globs:${globs.length === 0 ? "" : ` ${globs.join(",")}`}`,
    `alwaysApply: ${always}`,
  ];
  const folder = inFolder(record.scope, ".cursor/rules");
  return { folder, extension: ".mdc", frontMatter: lines(frontMatter), target: "fw_b" };
}

function toSteeringFile(record: GuidelineRecord, name: string): OwnFile {
  const base = { folder: ".kiro/steering", extension: ".md", target: "steering" } as const;
  const globs = globsFromRoot(record);
  if (record.inclusion === "manual") return { ...base, frontMatter: "inclusion: manual\n" };
  const description = descriptionOf(record);
  if (record.inclusion === "auto") {
    const listed = [
      `name: ${toYamlScalar(name)}`,
      `description:${spaced(description || toYamlScalar(record.title))}`,
    ];
    return { ...base, frontMatter: lines(["inclusion: auto", ...listed]) };
  }
  const [only] = globs;
  if (only === undefined) return { ...base, frontMatter: "inclusion: always\n" };
  const pattern =
    globs.length === 1 ? `fileMatchPattern: ${toQuotedYaml(only)}\n` : yamlList("fileMatchPattern", globs);
  return { ...base, frontMatter: `inclusion: fileMatch\n${pattern}` };
}

/** Globs relative to the root; a guideline of a folder without globs applies to all of it. */
export function globsFromRoot({ scope, globs }: Pick<GuidelineRecord, "scope" | "globs">): readonly string[] {
  if (scope === "") return globs;
  const folder = scope.replace(/[\\*?[\]{}()!]/g, "\\$&");
  return (globs.length === 0 ? ["**"] : globs).map((glob) => `${folder}/${glob.replace(/^(?:\.?\/)+/, "")}`);
}

function descriptionOf(record: GuidelineRecord): string {
  const { description } = record.frontmatter;
  return typeof description === "string" && description.trim() !== "" ? toYamlScalar(description.trim()) : "";
}

const yamlList = (key: string, items: readonly string[]): string =>
  lines([`${key}:`, ...items.map((item) => `  - ${toQuotedYaml(item)}`)]);
const lines = (all: readonly string[]): string => all.map((line) => `${line}\n`).join("");
const spaced = (text: string): string => (text === "" ? "" : ` ${text}`);
const inFolder = (folder: string, name: string): string => (folder === "" ? name : `${folder}/${name}`);
