import { createHash } from "node:crypto";
import { appendFileSync, lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import {
  deepProtectedPaths,
  folded,
  isGrantedPath,
  isProtectedPath,
} from "../../agents/policy/protected-paths.ts";
import type { SourceGuard, Writer } from "../../agents/project-context.ts";
import { attempt } from "../../base/attempt.ts";
import { createUlid } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { stateFolder } from "../state-folder.ts";
import { isLoadedFile, loadedBelow } from "./follow-sources.ts";
import { thisProcess, WriterBeat, type WriterProcess } from "./writer-beat.ts";

/** A file that kit does not load, because an agent has written it. */
export interface HeldFile {
  /** Project-relative. */
  readonly path: string;
  readonly writer: Writer;
  /** ISO 8601. */
  readonly held_at: string;
}

type Line =
  | { readonly type: "write"; readonly path: string; readonly writer: Writer }
  | ({
      readonly type: "begin";
      readonly id: string;
      readonly from: number;
      readonly writer: Writer;
    } & WriterProcess)
  | { readonly type: "end"; readonly id: string; readonly to: number }
  /** The content of a file that was loaded before an agent began to work. */
  | { readonly type: "loaded"; readonly path: string; readonly sha256: string }
  | { readonly type: "held"; readonly path: string; readonly writer: Writer; readonly at: string }
  | { readonly type: "accept"; readonly path: string; readonly sha256: string; readonly at: string };

/** The begun line of this process. */
interface OpenLine {
  readonly id: string;
  timer: NodeJS.Timeout | undefined;
}

/** A time span, in ms since 1970, in which a tool call of a model can have written files. */
interface Span {
  readonly from: number;
  to: number;
  readonly writer: Writer;
}

/** The clock of a file system advances in ticks and can lag by a few ms. */
const tickMs = 20;

/** Work that starts again within this time extends the same span on disk. */
const quietMs = 200;

/**
 * Records the files of a project that models have written, so that kit loads none of them before a person accepts it.
 *
 * A file that kit's own tool wrote is recorded by its path until a person accepts it. Commands, and tools that are not
 * kit's own, can write any file: a file that changed while one of them ran counts as written by it. The
 * system sets that time (`ctime`) at every change, rename and link, and no program can choose it.
 *
 * Every write is appended to `.kit/agent-writes.jsonl`, for the next process and for `kit approvals`. While an agent works,
 * its process writes a beat: the span of a process that was killed ends with it, so that what a person
 * deploys after a crash is loaded. A file whose content was loaded before is loaded again, whatever its time says.
 */
export class AgentWrites implements SourceGuard {
  readonly #root: string;
  readonly #isStored: boolean;
  readonly #written = new Map<string, Writer>();
  readonly #accepted = new Map<string, string>();
  readonly #heldFiles = new Map<string, HeldFile>();
  /** Spans of this process, exact. */
  readonly #ownSpans: Span[] = [];
  #running = 0;
  /** Spans of other processes, by the ids of their lines. */
  readonly #foreignSpans = new Map<string, Span & WriterProcess>();
  /** The identity of each file when it was loaded: a file with the same identity needs no check. */
  readonly #loaded = new Map<
    string,
    { readonly identity: string; readonly at: number; readonly sha256: string | undefined }
  >();
  /** The content of each file when it was loaded last, before an agent worked. */
  readonly #known = new Map<string, string>();
  readonly #file: string;
  #read = 0;
  #line: OpenLine | undefined;
  /** When the last call ended, in ms of `performance.now`. */
  #quietSince = 0;
  readonly #beat: WriterBeat;
  #accepts = 0;

  /** Reads the records of the project at `root`, a real path. With `stored: false`, nothing is stored on disk. */
  constructor(root: string, options: { readonly stored?: boolean } = {}) {
    this.#root = root;
    this.#isStored = options.stored !== false;
    this.#file = join(root, ".kit", "agent-writes.jsonl");
    this.#beat = new WriterBeat(this.#isStored ? root : undefined);
    this.#refresh();
    for (const [id, span] of this.#foreignSpans)
      if (span.to === Number.POSITIVE_INFINITY && !this.#beat.isRunning(span))
        this.#append({ type: "end", id, to: this.#beat.lastOf(span) });
  }

  isLoaded(file: string, removes: boolean): boolean {
    return isLoadedFile(file, removes);
  }

  kept(hostRoot: string | undefined, granted: readonly string[]): readonly string[] {
    const names = hostRoot === undefined ? commonNames : namesIn(hostRoot);
    // Git writes to its folder, and packages have caches in theirs: only parts of both are protected.
    const isKept = (name: string): boolean =>
      name !== ".git" && name !== "node_modules" && isProtectedPath({ path: name, cwd: "" }, []);
    const all = [
      ...names.filter(isKept),
      ...deepProtectedPaths,
      ...(hostRoot === undefined ? [] : loadedBelow(hostRoot)),
    ];
    return all.filter((path) => !isGrantedPath(path, granted));
  }

  wrote(file: string, writer: Writer): void {
    const path = this.#pathOf(file);
    if (this.#written.has(folded(path))) return;
    this.#append({ type: "write", path, writer });
  }

  /** `content` is the text that the caller wrote, in case another writer has changed the file since. */
  accepted(file: string, content: string | Uint8Array = readFileSync(file)): void {
    this.#append({
      type: "accept",
      path: this.#pathOf(file),
      sha256: digestOf(content),
      at: new Date().toISOString(),
    });
  }

  begin(writer: Writer): () => void {
    if (this.#line === undefined) this.#beginLine(writer);
    const now = this.#beat.now();
    const last = this.#ownSpans.at(-1);
    let span = last;
    // Short calls that follow each other share one span.
    if (span === undefined || now - span.to > tickMs || span.writer.agent !== writer.agent) {
      span = { from: now, to: Number.POSITIVE_INFINITY, writer };
      this.#ownSpans.push(span);
    }
    const running = span;
    running.to = Number.POSITIVE_INFINITY;
    this.#running += 1;
    return () => {
      running.to = this.#beat.now();
      this.#running -= 1;
      this.#quietSince = performance.now();
      if (this.#running === 0) this.#endLineLater(quietMs);
    };
  }

  /** One timer serves all calls that follow each other: one for each call would cost more than a short call. */
  #endLineLater(ms: number): void {
    const line = this.#line;
    if (line === undefined || line.timer !== undefined) return;
    line.timer = setTimeout(() => {
      line.timer = undefined;
      // The last of the running calls sets the timer again.
      if (this.#running > 0) return;
      const leftMs = this.#quietSince + quietMs - performance.now();
      if (leftMs > 0) this.#endLineLater(leftMs);
      else this.#endLine();
    }, ms);
    line.timer.unref();
  }

  #beginLine(writer: Writer): void {
    const loaded = [...this.#loaded].flatMap(([file, { sha256 }]): Line[] => {
      const path = this.#pathOf(file);
      return sha256 === undefined || this.#known.get(folded(path)) === sha256
        ? []
        : [{ type: "loaded", path, sha256 }];
    });
    const line: OpenLine = { id: createUlid(), timer: undefined };
    this.#line = line;
    this.#append({ type: "begin", id: line.id, ...thisProcess, from: this.#beat.begin(), writer }, ...loaded);
  }

  /** Returns a text that changes when a person accepts a file. */
  version(): string {
    this.#refresh();
    return String(this.#accepts);
  }

  /** Returns the files that kit refuses to load. */
  held(): readonly HeldFile[] {
    this.#refresh();
    return [...this.#heldFiles.values()];
  }

  /**
   * Throws `forbidden` for a file that a model has written, or that one of its tool calls can have written; the message says what
   * a person can do. `requested` is the path that was imported, before links were followed.
   */
  check(file: string, requested: string = file): void {
    this.#refresh();
    const nothingKnown = this.#written.size + this.#ownSpans.length + this.#foreignSpans.size === 0;
    const writer = nothingKnown
      ? this.#writerOf(file)
      : (this.#linkWriter(requested, file) ?? this.#writerOf(file) ?? this.#packageWriter(file));
    if (writer === undefined) return;
    const path = this.#pathOf(file);
    this.#append({ type: "held", path, writer, at: new Date().toISOString() });
    throw heldError({ path, writer });
  }

  /** The functions that the loading of sources uses. */
  loading(): { check(file: string): void; removed(file: string): string | undefined } {
    return { check: (file) => this.check(file), removed: (file) => this.#removedText(file) };
  }

  close(): void {
    this.#endLine();
  }

  #endLine(): void {
    if (this.#line === undefined) return;
    clearTimeout(this.#line.timer);
    this.#append({
      type: "end",
      id: this.#line.id,
      to: Math.min(this.#beat.now(), this.#ownSpans.at(-1)?.to ?? 0),
    });
    this.#line = undefined;
    this.#beat.end();
  }

  #writerOf(file: string): Writer | undefined {
    const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
    if (stats === undefined) return undefined;
    const identity = `${stats.ino} ${stats.ctimeNs} ${stats.size}`;
    const loaded = this.#loaded.get(file);
    if (loaded?.identity === identity) return undefined;
    const changedAt = Number(stats.ctimeNs / 1_000_000n);
    const writer =
      this.#written.get(folded(this.#pathOf(file))) ??
      this.#spanAt(changedAt) ??
      // An older file than the loaded one was moved here with its folder.
      (loaded !== undefined && changedAt < loaded.at ? this.#spanSince(loaded.at) : undefined);
    const path = this.#pathOf(file);
    const key = folded(path);
    const isOfProject = !path.startsWith("..") && !/(^|\/)node_modules\//.test(path);
    const sha256 = isOfProject || writer !== undefined ? contentOf(file) : undefined;
    const isAccepted = this.#accepted.get(key) === sha256;
    // kit's own tool has written it on purpose; a time alone says less than the content.
    const isUnchanged = !this.#written.has(key) && this.#known.get(key) === sha256;
    if (writer !== undefined && !isAccepted && !isUnchanged) return writer;
    this.#loaded.set(file, { identity, at: this.#beat.now(), sha256: isOfProject ? sha256 : undefined });
    return undefined;
  }

  /** Returns a text if the file was removed while a tool or command of an agent ran; otherwise undefined. */
  #removedText(file: string): string | undefined {
    let folder = dirname(file);
    while (statSync(folder, { throwIfNoEntry: false }) === undefined) folder = dirname(folder);
    const writer = this.#spanAt(statSync(folder).ctimeMs);
    return writer === undefined
      ? undefined
      : `${this.#pathOf(file)} was removed by the agent "${writer.agent}" (${writer.tool}); what it was goes on until kit starts again.`;
  }

  /** Returns the writer of a link on the path to a file: the link decides which file is loaded. */
  #linkWriter(requested: string, file: string): Writer | undefined {
    if (requested === file) return undefined;
    for (let path = requested; path.startsWith(this.#root) && path !== this.#root; path = dirname(path)) {
      const stats = lstatSync(path, { throwIfNoEntry: false });
      const writer = stats?.isSymbolicLink() ? this.#spanAt(stats.ctimeMs) : undefined;
      if (writer !== undefined && this.#accepted.get(folded(this.#pathOf(file))) !== contentOf(file))
        return writer;
    }
    return undefined;
  }

  /** Checks the `package.json` above a file, which decides how the file is loaded and what it imports. */
  #packageWriter(file: string): Writer | undefined {
    for (let folder = dirname(file); folder.startsWith(this.#root); folder = dirname(folder)) {
      const writer = this.#writerOf(join(folder, "package.json"));
      if (writer === undefined) continue;
      const path = this.#pathOf(join(folder, "package.json"));
      this.#append({ type: "held", path, writer, at: new Date().toISOString() });
      throw heldError({ path, writer });
    }
    return undefined;
  }

  #spanAt(time: number): Writer | undefined {
    const covers = ({ from, to }: Span): boolean => time >= from - tickMs && time <= to + tickMs;
    return (this.#ownSpans.findLast(covers) ?? [...this.#foreignSpans.values()].findLast(covers))?.writer;
  }

  #spanSince(time: number): Writer | undefined {
    const isLater = ({ to }: Span): boolean => to >= time;
    return (this.#ownSpans.findLast(isLater) ?? [...this.#foreignSpans.values()].findLast(isLater))?.writer;
  }

  #append(...lines: readonly Line[]): void {
    if (this.#isStored) {
      try {
        stateFolder(this.#root);
        appendFileSync(this.#file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
        this.#refresh();
        return;
      } catch {
        // If the file cannot be written, the record lasts as long as this process.
      }
    }
    for (const line of lines) this.#take(line);
  }

  /** Reads the lines that this process, other processes and a person's commands have appended. */
  #refresh(): void {
    if (!this.#isStored) return;
    const size = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0;
    if (size === this.#read) return;
    const bytes = readFileSync(this.#file);
    const end = bytes.lastIndexOf("\n") + 1;
    for (const text of bytes.toString("utf8", size < this.#read ? 0 : this.#read, end).split("\n")) {
      const line = parseLine(text);
      if (line !== undefined) this.#take(line);
    }
    this.#read = end;
  }

  #take(line: Line): void {
    const key = "path" in line ? folded(line.path) : "";
    if (line.type === "write") this.#written.set(key, line.writer);
    else if (line.type === "held")
      this.#heldFiles.set(key, { path: line.path, writer: line.writer, held_at: line.at });
    else if (line.type === "accept") {
      this.#written.delete(key);
      this.#heldFiles.delete(key);
      this.#accepted.set(key, line.sha256);
      this.#accepts += 1;
    } else if (line.type === "loaded") this.#known.set(key, line.sha256);
    else if (line.type === "begin") {
      if (line.pid === process.pid && this.#line?.id === line.id) return;
      this.#foreignSpans.set(line.id, { ...line, to: Number.POSITIVE_INFINITY });
    } else {
      const span = this.#foreignSpans.get(line.id);
      if (span !== undefined) span.to = line.to;
    }
  }

  #pathOf(file: string): string {
    return relative(this.#root, file).split(sep).join("/");
  }
}

function heldError({ path, writer }: Pick<HeldFile, "path" | "writer">): KitError {
  // For other tools, kit only knows when they ran.
  const isSure = writer.tool === "write" || writer.tool === "edit";
  return new KitError({
    code: "forbidden",
    message: `${path} was written by the agent "${writer.agent}" (${writer.tool})${isSure ? "" : ", or while that ran"}, and is not loaded. Look at it, then: kit approvals accept ${path}`,
    meta: { held: path },
  });
}

/** Whether an error reports a file that kit does not load because a model has written it. */
export function isHeld(error: unknown): error is KitError {
  return error instanceof KitError && error.code === "forbidden" && typeof error.meta?.held === "string";
}

/** The names that kit protects in a workspace that is not on this machine. */
const commonNames = [".kit", ".agents", ".env", ".npmrc", "package.json", "package-lock.json", "kit.toml"];

function namesIn(folder: string): readonly string[] {
  return attempt(() => readdirSync(folder), commonNames);
}

function contentOf(file: string): string {
  return digestOf(readFileSync(file));
}

function digestOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

function parseLine(text: string): Line | undefined {
  // A crash cut this line off.
  return attempt(() => JSON.parse(text) as Line);
}
