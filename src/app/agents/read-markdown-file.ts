import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { scanMarkdown, textOfLines } from "../../specs/markdown/scan-markdown.ts";

/** A Markdown file with front matter, as skills and roles are written. */
export interface MarkdownFile {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Without the front matter, trimmed. */
  readonly body: string;
}

/** Reads one. Throws `invalid_request` when it cannot be read, or its front matter is not valid. */
export async function readMarkdownFile(file: string, named?: string): Promise<MarkdownFile> {
  const name = named ?? basename(file).replace(/\.md$/, "");
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new KitError({ code: "invalid_request", message: `${basename(file)} cannot be read.`, cause });
  });
  const scan = scanMarkdown(text.replace(/^\uFEFF/, ""));
  const front = readFrontMatter(scan);
  const problem = front.problems.find((entry) => entry.severity === "error");
  if (problem !== undefined) {
    throw new KitError({
      code: "invalid_request",
      message: `${basename(file)}, line ${problem.line}: ${problem.message}`,
    });
  }
  return { name, data: front.data, body: textOfLines(scan, scan.bodyLine, scan.lineCount).trim() };
}
