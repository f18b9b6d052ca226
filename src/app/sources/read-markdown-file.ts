import { readFile, realpath, stat } from "node:fs/promises";
import { basename, isAbsolute, relative, sep } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { toSentence } from "../../base/to-sentence.ts";
import { findFiles } from "../../files/find-files.ts";
import { readFileInside } from "../../project/features/write-file.ts";
import { readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { scanMarkdown, textOfLines } from "../../specs/markdown/scan-markdown.ts";
import type { SourceProblem } from "./discover-sources.ts";

/** A Markdown file with front matter, as skills and roles are written. */
export interface MarkdownFile {
  readonly name: string;
  /** Relative to the root; absent for a file that lies elsewhere. */
  readonly path?: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Without the front matter, trimmed. */
  readonly body: string;
}

/** A larger file is not one that anybody wrote for a model. */
const maxBytes = 1024 * 1024;

/**
 * Reads one. Throws `invalid_request` when it cannot be read, or its front matter is not valid, and
 * `forbidden` for a path of the root that a link leads out of it.
 */
export async function readMarkdownFile(
  file: string,
  { root, named }: { readonly root: string; readonly named?: string | undefined },
): Promise<MarkdownFile> {
  const name = named ?? basename(file).replace(/\.md$/, "");
  const path = relative(root, file).split(sep).join("/");
  const isBelow = path !== ".." && !path.startsWith("../") && !isAbsolute(path);
  const text = await (isBelow ? readTextBelow(root, path) : readText(file)).catch((cause: unknown) => {
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
  const place = isBelow ? { path } : {};
  return { name, ...place, data: front.data, body: textOfLines(scan, scan.bodyLine, scan.lineCount).trim() };
}

/** The Markdown files below a folder of a project, and what lies there and cannot be read as one. */
export async function findMarkdown(
  root: string,
  folder: string,
): Promise<{ readonly paths: readonly string[]; readonly unusable: readonly SourceProblem[] }> {
  const { paths, unusable } = await findFiles(root, folder, { wants: (name) => name.endsWith(".md") });
  return {
    paths,
    unusable: unusable.map(({ path, reason }) => ({ path, message: toSentence(`${path} ${reason}`) })),
  };
}

async function readTextBelow(root: string, path: string): Promise<string> {
  const bytes = await readFileInside(await realpath(root), { path, maxBytes }).catch((error: unknown) => {
    if (!(error instanceof KitError) || error.code !== "payload_too_large") throw error;
    throw cannotRead(path, "is larger than 1 MiB");
  });
  if (bytes === undefined) throw cannotRead(path, "is not there");
  return new TextDecoder().decode(bytes);
}

/** A file from elsewhere, which a program names. */
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
