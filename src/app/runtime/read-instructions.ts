import { type Stats, statSync } from "node:fs";
import { joinInstructions } from "../../agents/log/left-out-rules.ts";
import type { ProjectInstructions } from "../../agents/project-context.ts";
import { splitRules } from "../../guidelines/split-rules.ts";
import { readFileInside } from "../../project/features/write-file.ts";
import type { MaybePromise } from "../../stores/contract.ts";

/** The conventional instruction files of coding agents. */
const names = ["AGENTS.md", "CLAUDE.md"];

/** The most that one file adds to a prompt, in characters: the cap that Codex has for AGENTS.md. */
const maxChars = 32_768;

/** A larger file is not read. */
const maxBytes = 1024 * 1024;

/** A deeper working folder has only the instructions of the root and of the nearest folders. */
const maxFolders = 16;

/** The most places with cached instructions; beyond that, the cache is cleared. */
const maxRemembered = 1_000;

/** A place with instructions: a folder of this machine, or a workspace that only its sandbox can read. */
type Place = FolderPlace | SandboxPlace;

interface FolderPlace {
  /** Absolute; kit reads no file outside of it. */
  readonly root: string;
  /** The working folder, relative to the root; instructions of all folders from the root down to it apply. */
  readonly cwd: string;
  /** Whether this is a session's own workspace, whose files are not those of the repository. */
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
  /** The inode, size and times of each possible file; a change means another content. */
  readonly marks: readonly number[];
  /** The time of the last check. */
  seen: Glance;
  readonly instructions: ProjectInstructions;
}

/**
 * Creates a reader of instructions, which returns those of several places as one text. It runs before every prompt, so it
 * only reads changed files; a check costs a microsecond per name. (A watcher would save that microsecond, but a prompt
 * right after a change would come before the watcher's event.)
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
    for (const location of locations) {
      if (!("root" in location)) return readAll(locations);
      key += `${location.root}\0${location.cwd}\0`;
    }
    const reading = remembered.get(key);
    const now = performance.now();
    if (reading !== undefined && holds(reading.seen, now)) return reading.instructions;
    const marks = marksOf(locations);
    const seen = glanceAt(now);
    const before = reading?.marks;
    if (
      reading === undefined ||
      marks.length !== before?.length ||
      marks.some((mark, at) => mark !== before[at])
    )
      return readAgain(locations, key, { marks, seen });
    reading.seen = seen;
    return reading.instructions;
  };
}

function marksOf(locations: readonly Place[]): readonly number[] {
  const marks: number[] = [];
  for (const location of locations) {
    if (!("root" in location)) continue;
    for (const path of pathsTo(location.cwd)) {
      const stats = statOf(`${location.root}/${path}`);
      if (stats === undefined) marks.push(0, 0, 0, 0);
      else marks.push(stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs);
    }
  }
  return marks;
}

/** Returns undefined for an unreadable file; reading it reports the error. */
function statOf(path: string): Stats | undefined {
  // Not `attempt`: each prompt comes here.
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

async function readAll(locations: readonly Place[]): Promise<ProjectInstructions> {
  const read = locations.map((location) =>
    "root" in location ? readFolder(location) : readSandbox(location),
  );
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
 * Joins the texts without repetition: CLAUDE.md can import or repeat AGENTS.md.
 */
function toInstructions(files: readonly InstructionFile[]): ProjectInstructions {
  const parts: (InstructionFile & { readonly blankLines: number })[] = [];
  for (const file of files) {
    const text = file.text.replace(/^\uFEFF/, "").trim();
    const isRepeated = text === "@AGENTS.md" || parts.some((part) => part.text.includes(text));
    const blankLines = /^\s*/.exec(file.text)?.[0].split("\n").length ?? 1;
    if (text !== "" && !isRepeated) parts.push({ ...file, text, blankLines: blankLines - 1 });
  }
  return {
    ...joinInstructions(
      parts.flatMap(({ path, text, blankLines }) =>
        rulesOf(path, cut(text)).map((part) => ({ ...part, path, line: part.line + blankLines })),
      ),
    ),
    // A file that is cut still shows its guidelines.
    sources: new Set(
      parts
        .filter(({ ofRepository, text }) => ofRepository && text.length <= maxChars)
        .map(({ path }) => path),
    ),
  };
}

/** The rules of the newest texts: those of a sandbox are read before every prompt. */
const splits = new Map<string, ReturnType<typeof splitRules>>();
const maxSplits = 50;

function rulesOf(path: string, text: string): ReturnType<typeof splitRules> {
  const key = `${path}\n${text}`;
  let rules = splits.get(key);
  if (rules === undefined) {
    rules = splitRules(path, text);
    if (splits.size >= maxSplits) splits.clear();
    splits.set(key, rules);
  }
  return rules;
}

/** Returns the possible files of instructions: for "a/b" those in "", "a" and "a/b". */
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

/** How long prompts share a check of the file system at most, in milliseconds. */
const sharedMs = 1;

let turn = 0;
let isTurning = false;

/** The time of a check of the file system. */
export interface Glance {
  readonly turn: number;
  readonly at: number;
}

/**
 * Whether a check is still valid. Prompts in one turn of the event loop share it: a caller that has changed a file and
 * awaited the change is in a later turn. A change within a turn is seen a millisecond later.
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
