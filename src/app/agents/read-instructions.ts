import { statSync } from "node:fs";
import { join } from "node:path";
import type { ProjectInstructions, Workplace } from "../../agents/project-context.ts";
import { readFileInside } from "../../project/write-file.ts";

/** The conventional instruction files of coding agents. */
const names = ["AGENTS.md", "CLAUDE.md"];

/** What of one file is told at most, in characters: the cap that Codex has for AGENTS.md. */
const maxChars = 32_768;

/** A larger file is no instruction anybody reads. */
const maxBytes = 1024 * 1024;

/** Deeper working folders have the instructions of the project and of the nearest folders only. */
const maxFolders = 16;

/** Folders whose files are remembered; more are read each time they are asked for. */
const maxRemembered = 1_000;

interface RememberedFile {
  /** What the file system says of it; another mark is another file. */
  readonly mark: string;
  readonly text: string;
}

/** Gives the instructions of a project's agents; asked before every prompt, so what has not changed is not read. */
export function createInstructionReader(root: string): (place: Workplace) => Promise<ProjectInstructions> {
  const files = new Map<string, RememberedFile>();
  return (place) => readInstructions((path) => readOfProject(root, path, files), place);
}

async function readOfProject(
  root: string,
  path: string,
  files: Map<string, RememberedFile>,
): Promise<string> {
  const mark = markOf(join(root, path));
  if (mark === undefined) return "";
  const known = files.get(path);
  if (known?.mark === mark) return known.text;
  const bytes = await readFileInside(root, { path, maxBytes }).catch(() => undefined);
  const text = new TextDecoder().decode(bytes);
  if (files.size < maxRemembered || known !== undefined) files.set(path, { mark, text });
  return text;
}

/** A look at the entry costs a hundredth of reading it; whether it may be read is found out on reading. */
function markOf(path: string): string | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats && `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
  } catch {
    return undefined;
  }
}

/**
 * The instruction files of a project and of the folder that an agent works in, from the root down, as one
 * text, each once: where CLAUDE.md only imports AGENTS.md, where it repeats it, and where the workspace is
 * the project, nothing is said twice.
 */
async function readInstructions(
  read: (path: string) => Promise<string>,
  place: Workplace,
): Promise<ProjectInstructions> {
  const parts: { readonly path: string; readonly text: string; readonly ofProject: boolean }[] = [];
  const add = (path: string, text: string, ofProject: boolean): void => {
    const told = text.replace(/^\uFEFF/, "").trim();
    const isRepeated = told === "@AGENTS.md" || parts.some((part) => part.text.includes(told));
    if (told !== "" && !isRepeated) parts.push({ path, text: told, ofProject });
  };
  for (const folder of foldersTo(place.cwd)) {
    for (const name of names) {
      const path = folder === "" ? name : `${folder}/${name}`;
      add(path, await read(path), true);
    }
  }
  for (const { path, text } of await readFromSandbox(place.sandbox)) add(path, text, false);
  return {
    text: parts
      .map(({ path, text }) => `<instructions source="${path}">\n${cut(text)}\n</instructions>`)
      .join("\n\n"),
    // Of a file that is cut the guidelines are still worth showing.
    sources: new Set(
      parts.filter(({ ofProject, text }) => ofProject && text.length <= maxChars).map(({ path }) => path),
    ),
  };
}

/** The same files of the workspace, down to the folder that the sandbox works in. */
async function readFromSandbox(
  sandbox: Workplace["sandbox"],
): Promise<readonly { readonly path: string; readonly text: string }[]> {
  if (sandbox === undefined) return [];
  const depthOf = (folder: string): number => (folder === "" ? 0 : folder.split("/").length);
  const folders = foldersTo(sandbox.cwd);
  const depth = depthOf(folders.at(-1) ?? "");
  const reads = folders.flatMap((folder) => {
    // Paths of a sandbox start at its working folder.
    const up = "../".repeat(depth - depthOf(folder));
    return names.map(async (name) => ({
      path: folder === "" ? name : `${folder}/${name}`,
      text: await sandbox.readFile(`${up}${name}`).catch(() => ""),
    }));
  });
  return Promise.all(reads);
}

/** "a/b" gives "", "a" and "a/b". */
function foldersTo(cwd: string): readonly string[] {
  const segments = cwd.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (segments.includes("..")) return [""];
  const folders = [...segments.keys()].map((index) => segments.slice(0, index + 1).join("/"));
  return folders.length < maxFolders ? ["", ...folders] : ["", ...folders.slice(-maxFolders)];
}

function cut(text: string): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}\n[cut]` : text;
}
