import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const folder = join(import.meta.dirname, "../../../shared/corpus");

/** The corpus of real repositories is next to some checkouts only; without it, tests skip. */
export const hasSharedCorpus: boolean = existsSync(join(folder, "corpus.tar.gz"));

/** One real repository: its text files, decoded, without their byte order marks. */
export interface CorpusProject {
  readonly name: string;
  /** Counted by tools that do not know Markdown; counts of zero are left out. */
  readonly expected: Readonly<Record<string, number>>;
  /** By project-relative path, in the order of `readdir`; links are left out. */
  readonly files: ReadonlyMap<string, CorpusFile>;
}

export interface CorpusFile {
  readonly text: string;
  /** The bytes on disk. */
  readonly bytes: Buffer;
}

/** Unpacks the corpus into a temporary folder, reads it, and removes the folder again. */
export async function loadSharedCorpus(): Promise<CorpusProject[]> {
  const root = await mkdtemp(join(tmpdir(), "kit-corpus-"));
  try {
    await promisify(execFile)("tar", ["-xzf", join(folder, "corpus.tar.gz"), "-C", root]);
    const counts: { readonly projects: Readonly<Record<string, Readonly<Record<string, number>>>> } =
      JSON.parse(await readFile(join(folder, "EXPECTED.json"), "utf8"));
    return await Promise.all(
      Object.entries(counts.projects).map(async ([name, expected]) => ({
        name,
        expected,
        files: await readFiles(join(root, "shared", name)),
      })),
    );
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function readFiles(root: string): Promise<Map<string, CorpusFile>> {
  const files = new Map<string, CorpusFile>();
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const bytes = await readFile(file);
    const path = file.slice(root.length + 1).replaceAll("\\", "/");
    files.set(path, { bytes, text: bytes.toString("utf8").replace(/^\ufeff/, "") });
  }
  return files;
}
