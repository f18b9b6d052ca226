import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import { runGit } from "../../../processes/git.ts";
import { isInside } from "../workspace-path.ts";
import { lstatOf } from "./held-files.ts";

/** Settings whose value is one path: of a file that Git includes, or of hooks and attributes. */
const pathKeys =
  /^(?:include\.path|includeif\..*\.path|core\.(?:hookspath|attributesfile)|init\.templatedir)$/i;
/** Settings whose value names a program, by the last word of the key. */
const programKeys =
  /^(?:pager|sequence|web|browser|guitool|imap|instaweb)\.|\.[\w-]*(?:fsmonitor|path|helper|editor|pager|command|textconv|clean|smudge|process|driver|program|external|askpass|cmd|hook|difffilter|gitproxy|uploadpack|receivepack|vcs|smtpserver|browser|tool)$/i;

interface Settings {
  /** The versions of the files from which Git read them, or would. */
  readonly files: ReadonlyMap<string, string>;
  /** Relative to the root. They may be missing. */
  readonly paths: readonly string[];
}

/** The clock of a file system advances in ticks. */
const tickMs = 50;
const known = new Map<string, Settings>();

/** The paths in the workspace that the settings of the person's Git named at the last `readSettings`. */
export const settingPaths = (root: string): readonly string[] => known.get(root)?.paths ?? [];

/** Asks Git for the settings in force, unless no file of them has changed. */
export async function readSettings(root: string): Promise<void> {
  const before = known.get(root);
  if (before !== undefined && [...before.files].every(([file, version]) => versionOf(file) === version))
    return;
  if (known.size > 200) known.clear();
  let names = new Set([...usualFiles(root), ...(before?.files.keys() ?? [])]);
  for (let round = 0; round < 10; round += 1) {
    // Versions from before Git reads: a file that changes meanwhile has another one at the next call.
    const files = new Map([...names].map((file) => [file, versionOf(file)]));
    const listed = await list(root);
    known.set(root, { files, paths: listed.paths });
    names = new Set([...usualFiles(root), ...listed.files]);
    if ([...names].every((file) => files.has(file))) return;
  }
  throw unknownSettings();
}

async function list(
  root: string,
): Promise<{ readonly files: ReadonlySet<string>; readonly paths: readonly string[] }> {
  const result = await runGit(["config", "--list", "-z", "--includes", "--show-origin"], { cwd: root });
  if (result.status === "timeout" || result.status === "too-large") throw unknownSettings();
  // Where Git fails on the settings, the person's Git fails as well.
  const fields = result.status === "ok" ? result.stdout.toString().split("\0") : [];
  const files = new Set<string>();
  const paths = new Set<string>();
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [origin = "", setting = ""] = [fields[at], fields[at + 1]];
    if (!origin.startsWith("file:")) continue;
    const file = resolve(root, origin.slice(5));
    files.add(file);
    const end = setting.indexOf("\n");
    if (end === -1) continue;
    const [key, value] = [setting.slice(0, end), setting.slice(end + 1)];
    const bases = [root, dirname(file), join(root, ".git")];
    const found = pathKeys.test(key) ? pathsOf(value, bases) : programPathsOf(key, value, bases);
    for (const each of found) {
      if (/^include/i.test(key)) files.add(each);
      paths.add(each);
    }
  }
  const inside = [...paths].filter(
    (path) => path !== root && isInside(root, path) && !isInside(join(root, ".git"), path),
  );
  return { files, paths: inside.map((path) => relative(root, path)) };
}

function unknownSettings(): KitError {
  return new KitError({
    code: "unavailable",
    message: "The command was not run: Git did not list its settings, which name paths to protect.",
    hint: "Try again, or look at the result of: git config --list",
  });
}

function usualFiles(root: string): readonly string[] {
  const folder = join(root, ".git");
  return [
    ...[folder, join(folder, "config"), join(folder, "config.worktree"), join(folder, "HEAD")],
    ...[join(homedir(), ".gitconfig"), "/etc/gitconfig"],
    join(process.env.XDG_CONFIG_HOME ?? join(homedir(), ".config"), "git/config"),
  ];
}

function versionOf(file: string): string {
  try {
    const stats = statSync(file, { bigint: true });
    const { dev, ino, size, mtimeNs, ctimeNs } = stats;
    // The entries of a folder do not matter here. A file that changed just now may change again at the same time stamp.
    if (!stats.isDirectory() && Date.now() - Number(ctimeNs / 1_000_000n) < tickMs) return randomUUID();
    return stats.isDirectory() ? `${dev}:${ino}` : `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch {
    return "";
  }
}

/** A path from each folder that it may be relative to. */
function pathsOf(value: string, bases: readonly string[]): readonly string[] {
  if (value === "") return [];
  const path = value.replace(/^~(?=\/)/, homedir());
  return bases.map((base) => resolve(base, path));
}

/** The paths in a command line of a setting: each word, each quoted part, and the whole. */
function programPathsOf(key: string, value: string, bases: readonly string[]): readonly string[] {
  if (!programKeys.test(key) && !value.startsWith("!")) return [];
  const quoted = [...value.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, one, other]) => one ?? other ?? "");
  const escaped = value.split(/(?<!\\)\s+/).map((word) => word.replaceAll("\\", ""));
  const words = value.split(/[\s"'!;&|()<>=`{}$,]+/);
  return [value, ...quoted, ...escaped, ...words].flatMap((word) => {
    if (word === "" || word.startsWith("-")) return [];
    const paths = pathsOf(word, bases);
    // After an expression like $(git rev-parse --show-toplevel), a path begins with a slash.
    const below = isAbsolute(word) ? bases.map((base) => join(base, word)) : [];
    // A word like "log" is rather a program or an argument, and new files can have its name.
    const isPath = /[./]/.test(word) && !/\s/.test(word);
    return [...paths, ...below].filter(
      (path, at) => (isPath && at < paths.length) || lstatOf(path)?.isFile() === true,
    );
  });
}
