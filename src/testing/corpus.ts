import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SpecBlock } from "../protocol/spec-block.ts";
import { assembleBlocks } from "../specs/model/assemble-blocks.ts";
import { createSpecRegistry } from "../specs/registry.ts";

/** The spec and guideline files of a real repository, and an independent count of their contents. */
export interface CorpusProject {
  readonly name: string;
  /** POSIX paths relative to the project's root, in order. Real files only. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
  /** Counts of zero are left out. */
  readonly expected: Readonly<Record<string, number>>;
}

/** The corpus is next to some checkouts only. */
const folder = join(import.meta.dirname, "..", "..", "..", "shared", "corpus");

export const hasCorpus: boolean = existsSync(join(folder, "corpus.tar.gz"));

/** Unpacks the corpus into a temporary folder, reads all of it, and removes the folder again. */
export function loadCorpus(): readonly CorpusProject[] {
  if (!hasCorpus) return [];
  const { projects } = JSON.parse(readFileSync(join(folder, "EXPECTED.json"), "utf8"));
  const unpacked = mkdtempSync(join(tmpdir(), "kit-corpus-"));
  try {
    execFileSync("tar", ["-xzf", join(folder, "corpus.tar.gz"), "-C", unpacked]);
    const root = join(unpacked, "shared");
    return Object.entries<Record<string, number>>(projects).map(([name, expected]) => ({
      name,
      expected,
      files: readFiles(join(root, name)),
    }));
  } finally {
    rmSync(unpacked, { recursive: true, force: true });
  }
}

function readFiles(root: string): CorpusProject["files"] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const file = join(entry.parentPath, entry.name);
      // Without `ignoreBOM` the decoder drops the byte order mark. Bytes that are not UTF-8 become U+FFFD.
      const text = new TextDecoder().decode(readFileSync(file));
      return { path: file.slice(root.length + 1).replaceAll("\\", "/"), text };
    })
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

const registry = createSpecRegistry();

/** The spec blocks of a project of the corpus, as its index would contain them. */
export function blocksOfProject({ files }: CorpusProject): readonly SpecBlock[] {
  const paths = new Set(files.map(({ path }) => path));
  const parsed = files.flatMap(({ path, text }) => {
    const adapter = registry.adapterFor(path);
    return adapter === undefined ? [] : [{ path, parsed: adapter.parse({ path, text }) }];
  });
  return assembleBlocks(parsed, (path) => paths.has(path)).blocks;
}
