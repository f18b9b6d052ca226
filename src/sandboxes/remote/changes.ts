import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import type { SandboxChanges } from "../contract.ts";
import { type ArchivedFile, readArchive, unpack } from "./archive.ts";
import { git } from "./git.ts";
import { walkRemotely } from "./remote-search.ts";
import { answer, failure, namesOf, type RemoteView } from "./remote-view.ts";
import { scripts, withInput } from "./scripts.ts";

/** What has changed in a workspace since it was filled with the files of the project: three round trips. */
export async function readChanges(view: RemoteView): Promise<SandboxChanges> {
  const { files } = await walkRemotely(view, "");
  const known = await ask(view, scripts.sums, files);
  const before = sumsOf(known[0]);
  // What was uploaded counts on, though an ignore file may leave it out by now.
  const more = [...before.keys()].filter((path) => !files.includes(path));
  const now = new Map([
    ...sumsOf(known[1]),
    ...(more.length === 0 ? [] : sumsOf((await ask(view, scripts.sums, more))[1])),
  ]);
  const paths = [...new Set([...before.keys(), ...now.keys()])].sort();
  const changed = paths.filter((path) => before.get(path) !== now.get(path));
  if (changed.length === 0) return { patch: "", files: [] };
  const [old, current] = await ask(view, scripts.both, changed);
  return {
    patch: await toPatch(readArchive(old ?? Buffer.alloc(0)), readArchive(current ?? Buffer.alloc(0))),
    files: changed.map((path) => ({
      path,
      change: !before.has(path) ? "added" : !now.has(path) ? "deleted" : "modified",
    })),
  };
}

async function ask(view: RemoteView, script: string, files: readonly string[]): Promise<readonly Buffer[]> {
  const names = Buffer.from(files.map((path) => `./${path}\0`).join(""));
  try {
    const text = await answer(view, "", withInput(script, names));
    return await Promise.all(text.split("\n").slice(0, 2).map(unpack));
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
    message: "This machine started with no files of the project: there is nothing to compare with.",
    hint: "Set upload of the sandbox; machines that are made from then on know what has changed.",
    cause,
  });

/** Checksums by path. */
function sumsOf(bytes: Buffer | undefined): ReadonlyMap<string, string> {
  return new Map(
    namesOf(bytes ?? Buffer.alloc(0)).map((line) => [line.slice(66).replace(/^\.\//, ""), line.slice(0, 64)]),
  );
}

/** Git itself writes the patch, of two folders that are made for it. */
async function toPatch(before: readonly ArchivedFile[], after: readonly ArchivedFile[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kit-changes-"));
  try {
    for (const [name, files] of [
      ["a", before],
      ["b", after],
    ] as const) {
      await mkdir(join(folder, name));
      for (const { path, content, executable = false } of files) {
        const file = join(folder, name, path);
        if (path.split("/").includes("..")) throw failure(71, path);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, content, { mode: executable ? 0o755 : 0o644 });
      }
    }
    const flags = [
      "--no-index",
      "--no-prefix",
      "--binary",
      "--no-color",
      "--no-ext-diff",
      "--no-textconv",
      "--no-renames",
    ];
    const { exitCode, stdout, stderr } = await git(folder, ["diff", ...flags, "--", "a", "b"]);
    if (exitCode > 1 || exitCode < 0) {
      const cause = new Error(stderr.slice(0, 1_000));
      throw new KitError({ code: "unavailable", message: "The patch could not be made.", cause });
    }
    return stdout.toString("utf8");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Applies a patch to the files of a project, whole or not at all. Throws `conflict`, with what Git says, where the
 * project has changed in the same places.
 */
export async function applyChanges(root: string, { patch }: Pick<SandboxChanges, "patch">): Promise<void> {
  if (patch === "") return;
  const tried = await git(root, ["apply", "--check", "-"], patch);
  if (tried.exitCode !== 0) throw doesNotFit(tried.stderr);
  const done = await git(root, ["apply", "-"], patch);
  if (done.exitCode !== 0) throw doesNotFit(done.stderr);
}

const doesNotFit = (said: string): KitError =>
  new KitError({
    code: "conflict",
    message: "The changes do not fit the project as it is now; nothing was changed.",
    hint: said.trim().split("\n").slice(0, 5).join(" "),
  });
