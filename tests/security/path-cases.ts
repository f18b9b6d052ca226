import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { link, lstat, mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { type AnyCase, type Corpus, type FixtureEntry, fixtureEntry, readCorpus } from "./corpus.ts";

/** The calls of the contract with their arguments. */
const argumentsOf: Readonly<Record<string, readonly string[]>> = {
  read_file: ["path"],
  read_bytes: ["path"],
  write_file: ["path", "content"],
  write_bytes: ["path", "content"],
  edit_file: ["path", "old", "new"],
  mkdir: ["path"],
  rm: ["path"],
  rm_recursive: ["path"],
  list_files: ["path"],
  stat: ["path"],
  exists: ["path"],
  shell_cwd: ["path"],
  grep: ["pattern", "path?", "include?"],
  glob: ["pattern", "path?"],
  open_session: ["id"],
  convert_guideline: ["title", "format"],
};

/** One call on a workspace with a hostile path, and the expected outcome. */
export interface PathCase extends AnyCase {
  readonly op: string;
  readonly args: Readonly<Record<string, string>>;
  readonly expected: "allow" | "deny" | "contained";
  readonly max_ms?: number;
  /** Name of the workspace's entry; default "root". */
  readonly root?: string;
  readonly fixture?: readonly FixtureEntry[];
  readonly expect?: {
    readonly content?: string;
    readonly content_if_ok?: string;
    readonly file?: readonly [string, string];
    readonly absent?: readonly string[];
    readonly entries_include?: readonly string[];
    readonly must_not_contain?: readonly string[];
    readonly host_absent?: readonly string[];
  };
}

const texts = z.array(z.string());

const one = {
  op: z.enum(Object.keys(argumentsOf)),
  args: z.record(z.string(), z.string()),
  expected: z.enum(["allow", "deny", "contained"]),
  max_ms: z.number().optional(),
  root: z.string().optional(),
  fixture: z.array(fixtureEntry).optional(),
  expect: z
    .strictObject({
      content: z.string(),
      content_if_ok: z.string(),
      file: z.tuple([z.string(), z.string()]),
      absent: texts,
      entries_include: texts,
      must_not_contain: texts,
      host_absent: texts,
    })
    .partial()
    .optional(),
};

const head = { fixture: z.array(fixtureEntry), race: z.strictObject({ note: z.string() }).optional() };

/** Reads `paths.json`. Also throws for an argument that a case's call does not accept, and for a missing one. */
export function readPathCases(): Corpus<{ readonly fixture: readonly FixtureEntry[] }, PathCase> {
  const corpus = readCorpus<{ readonly fixture: readonly FixtureEntry[] }, PathCase>("paths", { head, one });
  for (const { id, op, args } of corpus.cases) {
    const known = argumentsOf[op] ?? [];
    const unknown = Object.keys(args).filter((name) => !known.includes(name) && !known.includes(`${name}?`));
    const missing = known.filter((name) => !name.endsWith("?") && args[name] === undefined);
    if (unknown.length + missing.length > 0) {
      throw new Error(
        `paths.json, case ${id}: ${op} takes ${known.join(", ")}, and not ${unknown.join(", ")}.`,
      );
    }
  }
  return corpus;
}

/** The placeholder of the temporary folder in the corpus. */
const baseMark = "$".concat("{BASE}");

/** Replaces the placeholder in a text of the corpus. */
export const inBase = (text: string, base: string): string => text.replaceAll(baseMark, base);

/** Creates entries below a folder; later ones replace links. */
export async function layOut(base: string, fixture: readonly FixtureEntry[]): Promise<void> {
  for (const entry of fixture) {
    const place = join(base, entry.path);
    await mkdir(dirname(place), { recursive: true });
    switch (entry.type) {
      case "dir":
        await mkdir(place, { recursive: true });
        break;
      case "fifo":
        await promisify(execFile)("mkfifo", [place]);
        break;
      case "symlink":
        await rm(place, { force: true });
        await symlink(inBase(entry.target, base), place);
        break;
      case "hardlink": {
        const target = inBase(entry.target, base);
        await rm(place, { force: true });
        // Relative to the base like all paths, or to its own folder like the target of a link.
        const fromBase = resolve(base, target);
        await link(existsSync(fromBase) ? fromBase : resolve(dirname(place), target), place);
        break;
      }
      case "file":
        await writeFile(place, entry.content ?? "");
    }
  }
}

/** Type, mode and content of all entries below a folder, except those in `leaveOut`. Follows no link. */
export async function snapshot(
  base: string,
  leaveOut: (path: string) => boolean,
): Promise<readonly string[]> {
  const found: string[] = [];
  const inspect = async (path: string): Promise<void> => {
    if (leaveOut(path)) return;
    const target = join(base, path);
    const stats = await lstat(target);
    const text = stats.isFile()
      ? await readFile(target, "utf8")
      : stats.isSymbolicLink()
        ? await readlink(target)
        : "";
    found.push(`${path} ${stats.mode} ${text}`);
    if (stats.isDirectory()) await inspectFolder(path);
  };
  const inspectFolder = async (folder: string): Promise<void> => {
    for (const name of await readdir(join(base, folder)))
      await inspect(folder === "" ? name : `${folder}/${name}`);
  };
  await inspectFolder("");
  return found.sort();
}
