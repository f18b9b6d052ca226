import { type Stats, statSync } from "node:fs";
import type { ProjectInstructions } from "../../agents/project-context.ts";
import { textTokens } from "../../base/text-size.ts";
import { readFileInside } from "../../project/features/write-file.ts";
import type { MaybePromise } from "../../stores/contract.ts";

/** The conventional instruction files of coding agents. */
const names = ["AGENTS.md", "CLAUDE.md"];

/** The most that one file adds to a prompt, in characters: the cap that Codex has for AGENTS.md. */
const maxChars = 32_768;

/** A larger file is not an instruction anybody reads. */
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
  /** The file system's marks of each file that there could be; other marks are another file. */
  readonly marks: readonly number[];
  /** When that was looked at last. */
  seen: Glance;
  readonly instructions: ProjectInstructions;
}

/**
 * Gives the instructions of places, as one text. Asked before every prompt: what has not changed is not read, and a
 * look at each name costs a microsecond. (Watched folders would spare that microsecond; and a prompt that follows a
 * change at once would come before the news of it.)
 */
export function createInstructionReader(): (
  locations: readonly Place[],
) => MaybePromise<ProjectInstructions> {
  const remembered = new Map<string, Remembered>();
  const readAgain = async (
    locations: readonly Place[],
    key: string,
    state: Omit<Remembered, "instructions">,
  ): Promise<ProjectInstructions> => {
    const instructions = await readAll(locations);
    if (!remembered.has(key) && remembered.size >= maxRemembered) remembered.clear();
    remembered.set(key, { ...state, instructions });
    return instructions;
  };
  return (locations) => {
    let key = "";
    for (const place of locations) {
      if (!("root" in place)) return readAll(locations);
      key += `${place.root}\0${place.cwd}\0`;
    }
    const known = remembered.get(key);
    const now = performance.now();
    if (known !== undefined && holds(known.seen, now)) return known.instructions;
    const marks = marksOf(locations);
    const seen = glanceAt(now);
    if (known === undefined || !isSame(known.marks, marks)) return readAgain(locations, key, { marks, seen });
    known.seen = seen;
    return known.instructions;
  };
}

function marksOf(locations: readonly Place[]): readonly number[] {
  const marks: number[] = [];
  for (const place of locations) {
    if (!("root" in place)) continue;
    for (const path of pathsTo(place.cwd)) {
      const stats = statOf(`${place.root}/${path}`);
      if (stats === undefined) marks.push(0, 0, 0, 0);
      else marks.push(stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs);
    }
  }
  return marks;
}

/** Whether it may be read is found out on reading. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isSame(left: readonly number[], right: readonly number[]): boolean {
  return left.length === right.length && left.every((mark, index) => mark === right[index]);
}

async function readAll(locations: readonly Place[]): Promise<ProjectInstructions> {
  const read = locations.map((place) => ("root" in place ? readFolder(place) : readSandbox(place)));
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
  const blocks = parts.map(({ path, text }) => ({
    path,
    text: `<instructions source="${path}">\n${cut(text)}\n</instructions>`,
  }));
  return {
    text: blocks.map(({ text }) => text).join("\n\n"),
    files: blocks.map(({ path, text }) => ({ path, tokens: textTokens(text) })),
    // A file that is cut still shows its guidelines.
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

/** How long prompts share a look at the file system at most, in milliseconds. */
const sharedMs = 1;

let turn = 0;
let isTurning = false;

/** A look at the file system: when it was. */
export interface Glance {
  readonly turn: number;
  readonly at: number;
}

/**
 * Whether a look still holds. Prompts that come in one turn of the process share it: what a caller has changed and
 * waited for is behind them. A change without waiting, in the midst of a turn, is seen a millisecond later.
 */
export function holds(glance: Glance, now: number): boolean {
  return glance.turn === turn && now - glance.at < sharedMs;
}

export function glanceAt(now: number): Glance {
  if (!isTurning) {
    isTurning = true;
    setImmediate(() => {
      turn += 1;
      isTurning = false;
    });
  }
  return { turn, at: now };
}
