import { readPlainFrontMatter } from "./front-matter-plain.ts";
import type { FrontMatterProblem } from "./front-matter-problem.ts";
import { readYamlFrontMatter } from "./front-matter-yaml.ts";
import type { MarkdownScan } from "./scan-markdown.ts";
import { lineKinds, lineText, textOfLines } from "./scan-markdown.ts";

export interface FrontMatter {
  /** What could be read; `{}` where there is none. Never holds the key `__proto__`. */
  readonly data: Readonly<Record<string, unknown>>;
  /** The text between the fences as it lies in the file. */
  readonly raw: string;
  readonly problems: readonly FrontMatterProblem[];
  /**
   * The 1-based line on which the text begins. Between two rules can stand text that is no keys and
   * values; it is text then, and nothing of the file is lost.
   */
  readonly bodyLine: number;
}

const none = { data: {}, raw: "", problems: [], bodyLine: 1 } as const;

/**
 * Reads the YAML front matter of a scanned text. Never throws, runs nothing, expands no alias.
 *
 * Text that is not YAML is read line by line, because the tools' own files are not always YAML:
 * Cursor writes `globs: *.ts,**\/*.tsx`, which YAML takes for an alias. Only a value that cannot be
 * read that way either is a problem. Linear in the text.
 */
export function readFrontMatter(scan: MarkdownScan): FrontMatter {
  const open = scan.unclosed.find((entry) => entry.kind === "front_matter");
  if (open !== undefined) return { ...none, problems: [unterminated(scan)] };
  if (scan.kinds[0] !== lineKinds.frontMatter) return none;
  const raw = textOfLines(scan, 2, scan.bodyLine - 2);
  const { bodyLine } = scan;
  if (raw.trim() === "") return { ...none, raw, bodyLine };
  const text = raw.includes("\r") ? raw.replace(/\r\n?/g, "\n") : raw;
  const plain = readPlainFrontMatter(text);
  if (plain !== undefined) return { data: plain, raw, problems: [], bodyLine };

  const reading = readYamlFrontMatter(text);
  // The opening fence is line 1 of the file.
  const problems = reading.problems.map((entry) => ({ ...entry, line: entry.line + 1 }));
  const isText = problems.some((entry) => entry.code === "frontmatter_not_a_mapping");
  return { data: reading.data, raw, problems, bodyLine: isText ? 1 : bodyLine };
}

/** A first line of hyphens may also be a rule, so only keys below it make this more than a warning. */
function unterminated(scan: MarkdownScan): FrontMatterProblem {
  const severity = /^[A-Za-z_][\w-]*[ \t]*:/.test(lineText(scan, 2)) ? "error" : "warning";
  const message = "The front matter is never closed: a line of three hyphens is missing.";
  return { code: "frontmatter_unterminated", message, line: 1, severity };
}

/** The 1-based line of a key in the file; its front matter begins on line 2. */
export function lineOfKey(raw: string, key: string): number {
  const index = raw.split(/\r\n?|\n/).findIndex((line) => line.startsWith(`${key}:`));
  return index === -1 ? 1 : index + 2;
}
