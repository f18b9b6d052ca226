import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** How the corpus writes long texts in few words. */
export type ContentGenerator =
  | { readonly concat: readonly (string | ContentGenerator)[] }
  | { readonly repeat: string; readonly times: number }
  | { readonly repeat_index: string; readonly times: number }
  | { readonly repeat_indent: string; readonly times: number; readonly unit: string };

export interface FixtureEntry {
  readonly type: "file" | "dir" | "symlink";
  readonly path: string;
  readonly content?: string;
  readonly target?: string;
}

export interface MarkdownExpectation {
  readonly outcome: "ok" | "diagnostic" | "ok_or_diagnostic";
  readonly diagnostic_code_any_of?: readonly string[];
  readonly diagnostic_or_escaped?: readonly string[];
  readonly frontmatter?: Readonly<Record<string, unknown>>;
  readonly has_heading?: readonly [number, string];
  readonly heading_count?: number;
  readonly heading_text_excludes?: readonly string[];
  readonly headings?: readonly (readonly [number, string])[];
  readonly html_excludes?: readonly string[];
  readonly log_output_excludes?: readonly string[];
  readonly match_path?: string;
  readonly max_ms?: number;
  readonly max_rss_growth_mb?: number;
  readonly max_title_chars?: number;
  readonly no_canary?: boolean;
  readonly not_polluted?: boolean;
  readonly other_files_ok?: boolean;
  readonly output_excludes?: readonly string[];
  readonly roundtrip_frontmatter_keys_exclude?: readonly string[];
  readonly text_includes?: readonly string[];
  readonly title_any_of?: readonly string[];
  readonly unique_ids?: boolean;
}

/** The keys of `expected` that the test looks at; the corpus may grow others. */
export const knownExpectations: readonly (keyof MarkdownExpectation)[] = [
  "outcome",
  "diagnostic_code_any_of",
  "diagnostic_or_escaped",
  "frontmatter",
  "has_heading",
  "heading_count",
  "heading_text_excludes",
  "headings",
  "html_excludes",
  "log_output_excludes",
  "match_path",
  "max_ms",
  "max_rss_growth_mb",
  "max_title_chars",
  "no_canary",
  "not_polluted",
  "other_files_ok",
  "output_excludes",
  "roundtrip_frontmatter_keys_exclude",
  "text_includes",
  "title_any_of",
  "unique_ids",
];

export interface MarkdownCase {
  readonly id: string;
  readonly kind: "steering" | "claude" | "requirements" | "tasks";
  readonly tier: "core" | "usability";
  readonly why: string;
  readonly content?: string;
  readonly content_b64?: string;
  readonly content_gen?: ContentGenerator;
  readonly fixture?: readonly FixtureEntry[];
  readonly expected: MarkdownExpectation;
}

const usualPaths = {
  steering: ".kiro/steering/case.md",
  claude: "CLAUDE.md",
  requirements: ".kiro/specs/case/requirements.md",
  tasks: ".kiro/specs/case/tasks.md",
};

/** The file a case is about, relative to the repository. */
export function pathOfCase(markdownCase: MarkdownCase): string {
  return markdownCase.fixture?.[0]?.path ?? usualPaths[markdownCase.kind];
}

/** Puts a case into a folder. A fixture may also write beside that folder, so keep it below another. */
export async function writeCase(root: string, markdownCase: MarkdownCase): Promise<void> {
  if (markdownCase.fixture === undefined) {
    await writeEntry(join(root, pathOfCase(markdownCase)), contentOfCase(markdownCase));
    return;
  }
  for (const entry of markdownCase.fixture) {
    const path = join(root, entry.path);
    if (entry.type === "file") await writeEntry(path, entry.content ?? "");
    else if (entry.type === "dir") await mkdir(path, { recursive: true });
    else await symlink(entry.target ?? "", path);
  }
}

/** The bytes of a case that is one file; text where the corpus gives text. */
export function contentOfCase({ content, content_b64, content_gen }: MarkdownCase): string | Uint8Array {
  if (content !== undefined) return content;
  if (content_b64 !== undefined) return Buffer.from(content_b64, "base64");
  return content_gen === undefined ? "" : generate(content_gen);
}

function generate(generator: string | ContentGenerator): string {
  if (typeof generator === "string") return generator;
  if ("concat" in generator) return generator.concat.map(generate).join("");
  if ("repeat" in generator) return generator.repeat.repeat(generator.times);
  const { times } = generator;
  const line = (index: number) =>
    "repeat_index" in generator
      ? generator.repeat_index.replaceAll("{i}", String(index))
      : generator.unit.repeat(index) + generator.repeat_indent.replaceAll("{i}", String(index));
  return Array.from({ length: times }, (_, index) => line(index)).join("");
}

async function writeEntry(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}
