import { statSync } from "node:fs";
import { join } from "node:path";
import type { ProjectInstructions } from "../../agents/project-context.ts";
import { readFileInside } from "../../project/write-file.ts";

/** The conventional instruction files of coding agents. */
const names = ["AGENTS.md", "CLAUDE.md"];

/** What of one file is told at most, in characters: the cap that Codex has for AGENTS.md. */
const maxChars = 32_768;

/** A larger file is no instruction anybody reads. */
const maxBytes = 1024 * 1024;

/** Deeper working folders have the instructions of the root and of the nearest folders only. */
const maxFolders = 16;

/** Places whose instructions are remembered; of more, all are read anew. */
const maxRemembered = 1_000;

/** Where instructions are looked for: in a folder of this machine, or in a workspace that only its sandbox can read. */
type Place = FolderPlace | SandboxPlace;

interface FolderPlace {
  /** Absolute; no file outside is read. */
  readonly root: string;
  /** The folder down to which they are read, relative to the root. */
  readonly cwd: string;
  /** A session's own workspace beside its repository: its files are none of the repository's. */
  readonly isWorkspace?: boolean;
}

interface SandboxPlace {
  /** Reads a file by its path from the working folder. */
  readonly read: (path: string) => Promise<string | undefined>;
  readonly cwd: string;
}

interface InstructionFile {
  readonly path: string;
  readonly ofRepository: boolean;
  readonly text: string;
}

interface Remembered {
  /** What the file system says of each file that there could be; another mark is another file. */
  marks: string;
  /** When that was looked at last. */
  turn: number;
  lookedAt: number;
  readonly told: ProjectInstructions;
}

/**
 * Gives the instructions of places, as one text. Asked before every prompt: what has not changed is not read, and a
 * look at each name costs a microsecond. (Watched folders would spare that microsecond; and a prompt that follows a
 * change at once would come before the news of it.)
 */
export function createInstructionReader(): (places: readonly Place[]) => Promise<ProjectInstructions> {
  const remembered = new Map<string, Remembered>();
  return async (places) => {
    const folders = places.filter((place) => "root" in place);
    if (folders.length < places.length) return await readAll(places);
    const key = folders.map(({ root, cwd }) => `${root}\0${cwd}`).join("\0");
    const known = remembered.get(key);
    const now = performance.now();
    if (known?.turn === turn && now - known.lookedAt < sharedMs) return known.told;
    const marks = folders.map(marksOf).join();
    const look = { marks, turn: thisTurn(), lookedAt: now };
    if (known?.marks === marks) return Object.assign(known, look).told;
    const told = await readAll(places);
    if (known === undefined && remembered.size >= maxRemembered) remembered.clear();
    remembered.set(key, { ...look, told });
    return told;
  };
}

/**
 * Prompts that come in one turn of the process share a look: what somebody has changed and waited for is behind
 * them. A change without waiting, in the midst of a turn, is seen a millisecond later.
 */
const sharedMs = 1;
let turn = 0;
let isTurning = false;

function thisTurn(): number {
  if (!isTurning) {
    isTurning = true;
    setImmediate(() => {
      turn += 1;
      isTurning = false;
    });
  }
  return turn;
}

function marksOf({ root, cwd }: FolderPlace): string {
  let marks = "";
  for (const path of pathsTo(cwd)) marks += `${markOf(join(root, path))};`;
  return marks;
}

/** Whether it may be read is found out on reading. */
function markOf(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? "" : `${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
  } catch {
    return "";
  }
}

async function readAll(places: readonly Place[]): Promise<ProjectInstructions> {
  const read = places.map((place) => ("root" in place ? readFolder(place) : readSandbox(place)));
  return toInstructions((await Promise.all(read)).flat());
}

function readFolder({ root, cwd, isWorkspace = false }: FolderPlace): Promise<InstructionFile[]> {
  return Promise.all(
    pathsTo(cwd).map(async (path) => {
      const bytes = await readFileInside(root, { path, maxBytes }).catch(() => undefined);
      return { path, ofRepository: !isWorkspace, text: new TextDecoder().decode(bytes) };
    }),
  );
}

function readSandbox({ read, cwd }: SandboxPlace): Promise<InstructionFile[]> {
  const depthOf = (path: string): number => path.split("/").length - 1;
  const depth = cwd === "" ? 0 : depthOf(cwd) + 1;
  return Promise.all(
    pathsTo(cwd).map(async (path) => {
      // Paths of a sandbox start at its working folder.
      const up = "../".repeat(depth - depthOf(path));
      const text = await read(`${up}${path.slice(path.lastIndexOf("/") + 1)}`).catch(() => undefined);
      return { path, ofRepository: true, text: text ?? "" };
    }),
  );
}

/**
 * Each text once: where CLAUDE.md only imports AGENTS.md, or where it repeats it, nothing is said twice.
 */
function toInstructions(files: readonly InstructionFile[]): ProjectInstructions {
  const parts: InstructionFile[] = [];
  for (const file of files) {
    const text = file.text.replace(/^\uFEFF/, "").trim();
    const isRepeated = text === "@AGENTS.md" || parts.some((part) => part.text.includes(text));
    if (text !== "" && !isRepeated) parts.push({ ...file, text });
  }
  return {
    text: parts
      .map(({ path, text }) => `<instructions source="${path}">\n${cut(text)}\n</instructions>`)
      .join("\n\n"),
    // Of a file that is cut the guidelines are still worth showing.
    sources: new Set(
      parts
        .filter(({ ofRepository, text }) => ofRepository && text.length <= maxChars)
        .map(({ path }) => path),
    ),
  };
}

/** The files that instructions can stand in: those of "", "a" and "a/b" for "a/b". */
function pathsTo(cwd: string): readonly string[] {
  if (cwd === "") return names;
  const segments = cwd.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (segments.includes("..")) return names;
  const folders = [...segments.keys()].map((index) => `${segments.slice(0, index + 1).join("/")}/`);
  return ["", ...folders.slice(-maxFolders)].flatMap((folder) => names.map((name) => `${folder}${name}`));
}

function cut(text: string): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}\n[cut]` : text;
}
