import { lstat, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { KitError } from "../base/kit-error.ts";
import { type Application, manifestName, toManifest } from "./application.ts";
import type { TargetFile } from "./targets/target.ts";

/** A file that exists with other content. */
export interface Difference {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/**
 * Writes an application into a folder that holds only what runs there (also `.kit`, `node_modules`): new and changed
 * files are replaced atomically, and files of an earlier build that are no longer needed are removed. Throws
 * `conflict`, before anything is written, for a folder with other files, unless `force` is set.
 */
export async function writeApplication(
  app: Application,
  { folder, target, force }: { readonly folder: string; readonly target: string; readonly force: boolean },
): Promise<{ readonly written: number; readonly removed: number }> {
  const before = await readManifest(folder);
  if (before === undefined && !force) await checkEmpty(folder);
  await mkdir(folder, { recursive: true });
  const top = await realpath(folder);
  const files = new Map([...app.files, [manifestName, toManifest(app, target)]]);
  const fresh = await mkdtemp(join(dirname(top), `.${basename(top)}-`));
  try {
    const changed: string[] = [];
    for (const [path, bytes] of files) {
      const there = await readFile(join(top, path)).catch(() => undefined);
      if (there?.equals(bytes) === true) continue;
      await mkdir(dirname(join(fresh, path)), { recursive: true });
      await writeFile(join(fresh, path), bytes);
      changed.push(path);
    }
    for (const path of changed) {
      await mkdir(dirname(join(top, path)), { recursive: true });
      await checkInside(top, path);
      await rename(join(fresh, path), join(top, path));
    }
    const gone = (before ?? []).filter((path) => !files.has(path));
    for (const path of gone) {
      await checkInside(top, path).then(
        () => rm(join(top, path), { force: true }),
        () => undefined,
      );
    }
    return { written: changed.length, removed: gone.length };
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** A server and npm leave these in the output in which they run. */
const ofRunning = new Set([".kit", "node_modules", "package-lock.json"]);

async function checkEmpty(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw new KitError({
      code: "conflict",
      message: `${basename(folder)} is not a folder that can be written to.`,
      cause: error,
    });
  });
  const other = names.find((name) => !ofRunning.has(name));
  if (other === undefined) return;
  throw new KitError({
    code: "conflict",
    message: `${basename(folder)} holds ${other}, which kit build did not write; nothing was written.`,
    hint: "Name another folder with --out, or say --force.",
  });
}

/** The files of an earlier build; undefined if there was none. Paths that lead out of the folder are left out. */
async function readManifest(folder: string): Promise<readonly string[] | undefined> {
  const text = await readFile(join(folder, manifestName), "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const { files }: { readonly files?: unknown } = JSON.parse(text);
    return Object.keys(files ?? {}).filter(
      (path) => !path.startsWith("/") && !path.split(/[/\\]/).some((part) => part === ".." || part === ""),
    );
  } catch {
    return [];
  }
}

/** Throws `forbidden` where a link on the way leads out of the folder. */
async function checkInside(top: string, path: string): Promise<void> {
  const parent = await realpath(dirname(join(top, path)));
  if (parent === top || parent.startsWith(top + sep)) return;
  throw new KitError({
    code: "forbidden",
    message: `${path} lies behind a link that leads out of the output.`,
  });
}

/**
 * Writes the files of a target. A file that exists with other content is kept, unless `force` is set; it is among
 * the differences either way.
 */
export async function writeTargetFiles(
  files: readonly TargetFile[],
  { folder, force, check }: { readonly folder: string; readonly force: boolean; readonly check: boolean },
): Promise<{ readonly written: readonly string[]; readonly differences: readonly Difference[] }> {
  const written: string[] = [];
  const differences: Difference[] = [];
  for (const { path, content } of files) {
    const file = join(folder, path);
    const found = await lstat(file).catch(() => undefined);
    const before = found === undefined ? undefined : await readFile(file, "utf8");
    if (before === content) continue;
    if (before !== undefined) differences.push({ path, before, after: content });
    if (check || (before !== undefined && !force)) continue;
    await mkdir(dirname(file), { recursive: true });
    await checkInside(await realpath(folder), path);
    await writeFile(file, content);
    written.push(path);
  }
  return { written, differences };
}
