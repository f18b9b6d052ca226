import { z } from "zod";
import {
  type AnyCase,
  type Corpus,
  type FixtureEntry,
  fixtureEntry,
  type Generated,
  generate,
  generated,
  readCorpus,
} from "./corpus.ts";

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
  /** The path to match the file's pattern with, literal or generated. */
  readonly match_path?: string;
  readonly match_path_gen?: Generated;
  /** Milliseconds of processor time; default 2,000. */
  readonly max_ms?: number;
  /** Default 256. */
  readonly max_rss_growth_mb?: number;
  readonly max_title_chars?: number;
  readonly no_canary?: true;
  readonly not_polluted?: true;
  readonly other_files_ok?: true;
  readonly output_excludes?: readonly string[];
  readonly roundtrip_frontmatter_keys_exclude?: readonly string[];
  readonly text_includes?: readonly string[];
  readonly title_any_of?: readonly string[];
  readonly unique_ids?: true;
}

export interface MarkdownCase extends AnyCase {
  readonly kind: "steering" | "claude" | "skill" | "requirements" | "tasks";
  /** A case has one of the first three, or a fixture, whose first entry is the tested file. */
  readonly content?: string;
  readonly content_b64?: string;
  readonly content_gen?: Generated;
  readonly fixture?: readonly FixtureEntry[];
  readonly expected: MarkdownExpectation;
}

const usualPaths: Readonly<Record<MarkdownCase["kind"], string>> = {
  steering: ".kiro/steering/case.md",
  claude: "CLAUDE.md",
  skill: ".claude/skills/case/SKILL.md",
  requirements: ".kiro/specs/case/requirements.md",
  tasks: ".kiro/specs/case/tasks.md",
};

const texts = z.array(z.string());
const heading = z.tuple([z.int(), z.string()]);

export function readMarkdownCases(): Corpus<unknown, MarkdownCase> {
  const corpus = readCorpus<unknown, MarkdownCase>("markdown", {
    head: { generators: z.string() },
    one: {
      kind: z.enum(Object.keys(usualPaths)),
      content: z.string().optional(),
      content_b64: z.base64().optional(),
      content_gen: generated.optional(),
      fixture: z.array(fixtureEntry).min(1).optional(),
      expected: z
        .strictObject({
          diagnostic_code_any_of: texts,
          diagnostic_or_escaped: texts,
          frontmatter: z.record(z.string(), z.unknown()),
          has_heading: heading,
          heading_count: z.int(),
          heading_text_excludes: texts,
          headings: z.array(heading),
          html_excludes: texts,
          log_output_excludes: texts,
          match_path: z.string(),
          match_path_gen: generated,
          max_ms: z.number(),
          max_rss_growth_mb: z.number(),
          max_title_chars: z.int(),
          no_canary: z.literal(true),
          not_polluted: z.literal(true),
          other_files_ok: z.literal(true),
          output_excludes: texts,
          roundtrip_frontmatter_keys_exclude: texts,
          text_includes: texts,
          title_any_of: texts,
          unique_ids: z.literal(true),
        })
        .partial()
        .extend({ outcome: z.enum(["ok", "diagnostic", "ok_or_diagnostic"]) }),
    },
  });
  for (const { id, content, content_b64, content_gen, fixture } of corpus.cases) {
    const given = [content, content_b64, content_gen, fixture].filter((one) => one !== undefined).length;
    if (given !== 1)
      throw new Error(`markdown.json, case ${id}: it says ${given} times what the file holds.`);
  }
  return corpus;
}

/** The tested file of a case, relative to the repository. */
export function pathOfCase(markdownCase: MarkdownCase): string {
  return markdownCase.fixture?.[0]?.path ?? usualPaths[markdownCase.kind];
}

/** The content of a case with one file: text if the corpus has text, otherwise bytes. */
export function contentOfCase({ content, content_b64, content_gen }: MarkdownCase): string | Uint8Array {
  if (content !== undefined) return content;
  if (content_b64 !== undefined) return Buffer.from(content_b64, "base64");
  return content_gen === undefined ? "" : generate(content_gen);
}

export function matchPathOf({ expected }: MarkdownCase): string | undefined {
  const { match_path, match_path_gen } = expected;
  return match_path_gen === undefined ? match_path : generate(match_path_gen);
}
