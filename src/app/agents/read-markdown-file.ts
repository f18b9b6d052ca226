import { readFile, stat } from "node:fs/promises";
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

/** A larger file is not one that anybody wrote for a model. */
const maxBytes = 1024 * 1024;

/** Reads one. Throws `invalid_request` when it cannot be read, or its front matter is not valid. */
export async function readMarkdownFile(file: string, named?: string): Promise<MarkdownFile> {
  const name = named ?? basename(file).replace(/\.md$/, "");
  const text = await readText(file).catch((cause: unknown) => {
    if (cause instanceof KitError) throw cause;
    throw cannotRead(file, "cannot be read", cause);
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

async function readText(file: string): Promise<string> {
  const stats = await stat(file);
  // Before it is opened: a pipe would be waited for without end.
  if (!stats.isFile()) throw cannotRead(file, "is not a file");
  if (stats.size > maxBytes) throw cannotRead(file, "is larger than 1 MiB");
  return readFile(file, "utf8");
}

function cannotRead(file: string, why: string, cause?: unknown): KitError {
  const message = `${basename(file)} ${why}.`;
  return new KitError({ code: "invalid_request", message, ...(cause === undefined ? {} : { cause }) });
}
