import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import type { SandboxChanges } from "../contract.ts";
import { type ArchivedFile, readArchive, unpack } from "./archive.ts";
import { gitOnProject } from "./git.ts";
import { walkRemotely } from "./remote-search.ts";
import { failure, namesOf, type RemoteView, runOnPath } from "./remote-view.ts";
import { scripts, withInput } from "./scripts.ts";
import { staysInside } from "./seed.ts";

/** The changes in a workspace since the project's files were uploaded; takes at most three round trips. */
export async function readChanges(view: RemoteView): Promise<SandboxChanges> {
  const { files, links } = await walkRemotely(view, "", { allLinks: true });
  const knownPaths = [...files, ...links];
  const [base, sums, baseKinds, kinds] = await runOnFiles(view, scripts.sums, knownPaths);
  const before = statesOf(base, baseKinds);
  // Uploaded files count even if an ignore file excludes them now.
  const ignoredNow = [...before.keys()].filter((path) => !knownPaths.includes(path));
  const ignoredStates = ignoredNow.length === 0 ? [] : await runOnFiles(view, scripts.sums, ignoredNow);
  const now = new Map([...statesOf(sums, kinds), ...statesOf(ignoredStates[1], ignoredStates[3])]);
  const paths = [...new Set([...before.keys(), ...now.keys()])].sort();
  const changed = paths.filter((path) => before.get(path) !== now.get(path));
  if (changed.length === 0) return { patch: "", files: [] };
  const [old, current] = await runOnFiles(view, scripts.both, changed);
  const entriesOf = (bytes: Buffer | undefined) => readArchive(bytes ?? Buffer.alloc(0), { links: true });
  return {
    patch: await toPatch(entriesOf(old), entriesOf(current)),
    files: changed.map((path) => ({
      path,
      change: !before.has(path) ? "added" : !now.has(path) ? "deleted" : "modified",
    })),
  };
}

async function runOnFiles(
  view: RemoteView,
  script: string,
  files: readonly string[],
): Promise<readonly Buffer[]> {
  const names = Buffer.from(files.map((path) => `./${path}\0`).join(""));
  try {
    const text = await runOnPath(view, "", withInput(script, names));
    return await Promise.all(text.split("\n").slice(0, 4).map(unpack));
  } catch (error) {
    if (error instanceof KitError && error.code === "not_found") {
      throw nothingUploaded(error);
    }
    throw error;
  }
}

const nothingUploaded = (cause: unknown): KitError =>
  new KitError({
    code: "invalid_request",
    message: "This machine started without files of the project, so there is nothing to compare with.",
    hint: "Set the option upload of the sandbox. Machines created from then on can report changes.",
    cause,
  });

/** The state of each file and link by path, as a text to compare. */
function statesOf(sums: Buffer | undefined, kinds: Buffer | undefined): ReadonlyMap<string, string> {
  const plain = (path: string): string => path.replace(/^\.\//, "");
  const states = new Map(
    namesOf(sums ?? Buffer.alloc(0)).map((line) => [plain(line.slice(66)), line.slice(0, 64)]),
  );
  const changedNames = namesOf(kinds ?? Buffer.alloc(0));
  for (let at = 0; at < changedNames.length; at += 1) {
    const path = plain((changedNames[at] ?? "").slice(1));
    if (changedNames[at]?.startsWith("l") === true) {
      at += 1;
      states.set(path, `leads to ${changedNames[at]}`);
    } else states.set(path, `${states.get(path)} runs`);
  }
  return states;
}

/** Lets Git write the patch, from two temporary folders. */
async function toPatch(before: readonly ArchivedFile[], after: readonly ArchivedFile[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kit-changes-"));
  try {
    for (const [name, files] of [
      ["a", before],
      ["b", after],
    ] as const) {
      await writeTree(join(folder, name), files);
    }
    const flags = ["--no-index", "--no-prefix", "--binary", "--no-color", "--no-renames"];
    const result = await gitOnProject(folder, ["diff", ...flags, "--", "a", "b"]);
    // Git ends with 1 if there are differences.
    if (result.status === "ok" || (result.status === "failed" && result.exitCode === 1))
      return result.stdout.toString();
    const cause = new Error(result.status === "failed" ? result.stderr.slice(0, 1_000) : result.status);
    throw new KitError({ code: "unavailable", message: "Git could not write the patch.", cause });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Writes links last and refuses paths below links, so that nothing is written outside the folder. */
async function writeTree(folder: string, entries: readonly ArchivedFile[]): Promise<void> {
  await mkdir(folder);
  const links = new Set(entries.filter(({ isLink }) => isLink === true).map(({ path }) => path));
  for (const { path, content, executable = false, isLink = false } of entries.toSorted(linksLast)) {
    const names = path.split("/");
    const parents = names.map((_, depth) => names.slice(0, depth).join("/"));
    if (names.includes("..") || parents.some((name) => links.has(name))) throw failure(71, path);
    const target = join(folder, path);
    await mkdir(dirname(target), { recursive: true });
    if (isLink) await symlink(content, target);
    else await writeFile(target, content, { mode: executable ? 0o755 : 0o644 });
  }
}

const linksLast = (file: ArchivedFile, other: ArchivedFile): number =>
  Number(file.isLink ?? false) - Number(other.isLink ?? false);

/**
 * Applies a patch to the files of a project, all or nothing. Throws `conflict` with Git's message if the project
 * changed in the same places, and `forbidden` for a link that leads out of it.
 */
export async function applyChanges(root: string, { patch }: Pick<SandboxChanges, "patch">): Promise<void> {
  if (patch === "") return;
  const linkOut = linksOf(patch).find(
    ({ path, target }) => !staysInside(path, target) || /(?:^|\/)\.git(?:\/|$)/i.test(target),
  );
  if (linkOut !== undefined) throw leadsOut(linkOut);
  for (const step of [["--check"], []]) {
    const result = await gitOnProject(root, ["apply", "--whitespace=nowarn", ...step, "-"], patch);
    if (result.status !== "ok") throw doesNotFit(result.status === "failed" ? result.stderr : "");
  }
}

interface PatchedLink {
  readonly path: string;
  readonly target: string;
}

/** The links that a Git patch creates or changes. */
function linksOf(patch: string): readonly PatchedLink[] {
  return patch
    .split(/^(?=diff --git )/m)
    .filter((part) => /^(?:new file mode|new mode|index \S+) 120000$/m.test(part))
    .flatMap((part) => {
      const [head = "", ...hunks] = part.split(/^@@ .*\n/m);
      const path = /^\+\+\+ "?b\/(.*?)"?\t?$/m.exec(head)?.[1];
      if (path === undefined) return [];
      const added = hunks
        .join("")
        .split("\n")
        .filter((line) => line.startsWith("+"));
      return [{ path, target: added.map((line) => line.slice(1)).join("\n") }];
    });
}

const leadsOut = ({ path, target }: PatchedLink): KitError =>
  new KitError({
    code: "forbidden",
    message: `The changes contain a link that leads out of the project: ${path} to ${target}. Nothing was applied.`,
    hint: "Apply the rest of the patch by hand: 'kit sandboxes diff' prints it.",
  });

const doesNotFit = (reason: string): KitError =>
  new KitError({
    code: "conflict",
    message: "The changes do not apply to the current files of the project. Nothing was changed.",
    hint: reason.trim().split("\n").slice(0, 5).join(" "),
  });
