import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

/** One call on a workspace with a hostile path, and what must come of it. */
export interface PathCase {
  readonly id: string;
  readonly class: string;
  readonly op: string;
  readonly args: Readonly<Record<string, string>>;
  readonly expected: "allow" | "deny" | "contained";
  readonly tier: "core" | "hardening" | "usability";
  readonly why: string;
  /** Name of the workspace's entry; default "root". */
  readonly root?: string;
  readonly fixture?: readonly FixtureEntry[];
  readonly max_ms?: number;
  readonly platform?: readonly string[];
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

export interface FixtureEntry {
  readonly type: "file" | "dir" | "symlink" | "fifo";
  readonly path: string;
  readonly content?: string;
  readonly target?: string;
}

/** What stands for the temporary folder in the corpus. */
export const baseMark: string = "$".concat("{BASE}");

export function loadPathCorpus(): {
  readonly fixture: readonly FixtureEntry[];
  readonly cases: readonly PathCase[];
} {
  const file = join(import.meta.dirname, "../../tests/security/paths.json");
  return JSON.parse(readFileSync(file, "utf8"));
}

/** Lays out entries below a folder; later ones replace links. */
export async function layOut(base: string, fixture: readonly FixtureEntry[]): Promise<void> {
  for (const { type, path, content = "", target = "" } of fixture) {
    const place = join(base, path);
    await mkdir(dirname(place), { recursive: true });
    if (type === "dir") await mkdir(place, { recursive: true });
    else if (type === "fifo") await promisify(execFile)("mkfifo", [place]);
    else if (type === "symlink") {
      await rm(place, { force: true });
      await symlink(target.replaceAll(baseMark, base), place);
    } else await writeFile(place, content);
  }
}

/** Everything below a folder with type, mode and content, but for what `leaveOut` names. */
export async function snapshot(
  base: string,
  leaveOut: (path: string) => boolean,
): Promise<readonly string[]> {
  const entries: string[] = [];
  for (const path of await readdir(base, { recursive: true })) {
    if (leaveOut(path)) continue;
    const stats = await lstat(join(base, path));
    entries.push(`${path} ${stats.mode} ${stats.isFile() ? await readFile(join(base, path), "utf8") : ""}`);
  }
  return entries.sort();
}
