import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { basename, extname, resolve } from "node:path";
import { text as readText } from "node:stream/consumers";
import type { Agent } from "../../agents/harness.ts";
import type { PromptResult } from "../../agents/operations/options.ts";
import type { FileInput } from "../../agents/prompt/input-files.ts";
import type { Session } from "../../agents/session/session.ts";
import type { App } from "../../app/service/app.ts";
import { withArticle } from "../../base/error-text.ts";
import { createUlid } from "../../base/id.ts";
import type { BackendName } from "../../protocol/enums.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { CommandContext } from "../command.ts";
import { type EventPrinter, printBody } from "../print/print-events.ts";
import { usageError } from "../report-error.ts";
import { safeLines, span } from "../text/safe-text.ts";

export interface PromptRequest {
  readonly app: App;
  readonly context: CommandContext;
  readonly printer: EventPrinter;
  readonly options: {
    readonly prompt?: string | undefined;
    readonly skill?: string | undefined;
    readonly payload?: Readonly<Record<string, unknown>> | undefined;
    readonly agent?: string | undefined;
    readonly id?: string | undefined;
    readonly session?: string | undefined;
    readonly continue?: boolean | undefined;
    readonly model?: readonly string[] | undefined;
    readonly backend?: BackendName | undefined;
    readonly role?: string | undefined;
    readonly file?: readonly string[] | undefined;
    readonly omitRule?: readonly string[] | undefined;
    readonly stream?: boolean | undefined;
  };
}

/** Prompts an agent, or lets it run a skill, and prints its answer, or its work as it happens. */
export async function promptAgent(request: PromptRequest): Promise<undefined> {
  const { app, context, options, printer } = request;
  const files = options.file === undefined ? undefined : await readFiles(options.file, context.cwd);
  const payload = options.skill === undefined ? options.payload : undefined;
  const agent = await app.instance(options.agent ?? "default", options.id ?? "default", payload);
  const session = agent.session(
    options.continue === true ? await lastUsed(agent) : (options.session ?? newName(new Date())),
  );
  const waits = createWaitClock();
  const stop = agent.onEvent((event) => {
    waits.onEvent(event);
    printer.onEvent(event);
  });
  try {
    const result = await ask(session, request, files);
    printer.end();
    const { text, usage, model, metadata } = result;
    const { output, json } = context;
    // Only a skill with an output schema returns a value: its text is the model's notation of it.
    const typed = result.result === undefined ? {} : { result: result.result };
    if (json)
      printBody({ result: { text, ...typed, usage, model, metadata } }, context, options.stream === true);
    else {
      if (printer.printedText === "") {
        if (result.result === undefined) output.line(safeLines(text));
        else output.json(result.result);
      }
      output.note(output.noteStyle("dim", summaryOf(result, session.name, waits.waitedMs)));
    }
  } finally {
    stop();
  }
}

/** The name of a new session: the time, and four letters because two commands may start at once. */
function newName(now: Date): string {
  const time = now.toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15);
  return `${time}-${createUlid().slice(-4).toLowerCase()}`;
}

/** How many of the newest sessions to search for the one that was used last. */
const mostSessions = 20;

async function lastUsed(agent: Agent): Promise<string> {
  const topSessions = (await agent.sessions.list()).filter(({ parent }) => parent === undefined);
  const uses = await Promise.all(
    topSessions.slice(-mostSessions).map(async ({ session, created_at }) => {
      const last = (await agent.session(session).history()).at(-1);
      return { session, at: last?.timestamp ?? created_at };
    }),
  );
  const [latest] = uses.sort((a, b) => (a.at < b.at ? 1 : -1));
  if (latest !== undefined) return latest.session;
  throw usageError(
    `There is no session of the agent ${agent.name} to continue.`,
    "A prompt without --continue begins one; --session names one.",
  );
}

async function ask(
  session: Session,
  { options, context }: PromptRequest,
  files: readonly FileInput[] | undefined,
): Promise<PromptResult<unknown>> {
  const call = {
    signal: context.signal,
    model: options.model,
    backend: options.backend,
    files,
    role: options.role,
    omitRules: options.omitRule,
  };
  if (options.skill !== undefined) {
    return session.skill<unknown>(options.skill, {
      ...call,
      ...(options.payload === undefined ? {} : { args: options.payload }),
    });
  }
  const prompt = options.prompt === "-" ? await readText(context.input) : (options.prompt ?? "");
  if (prompt.trim() === "")
    throw usageError("The prompt is empty.", options.prompt === "-" ? "Nothing came on stdin." : undefined);
  return session.stream<unknown>(prompt, call).result;
}

/** Measures how long calls waited for a person, by the times of the events, in ms. */
export function createWaitClock(): {
  readonly onEvent: (event: KitEvent) => void;
  readonly waitedMs: number;
} {
  const waiting = new Set<string>();
  let since = 0;
  let waited = 0;
  return {
    get waitedMs() {
      return waited;
    },
    onEvent(event) {
      if (event.type !== "approval_request" && event.type !== "approval") return;
      const at = Date.parse(event.timestamp);
      if (event.type === "approval_request") {
        if (waiting.size === 0) since = at;
        waiting.add(event.approval_id);
      } else if (waiting.delete(event.approval_id) && waiting.size === 0) waited += at - since;
    },
  };
}

function summaryOf(
  { usage, model, metadata }: PromptResult<unknown>,
  session: string,
  waitedMs: number,
): string {
  const { total } = usage.cost;
  return [
    model.id,
    metadata.turns === 1 ? "1 turn" : `${metadata.turns} turns`,
    `${usage.total_tokens.toLocaleString("en")} tokens`,
    ...(total === null || total === 0 ? [] : [`$${total.toFixed(4)}`]),
    // A person's time is not the agent's.
    span(Math.max(0, metadata.duration_ms - waitedMs)),
    `session ${session} (--continue continues it)`,
  ].join(" · ");
}

interface FileKind {
  readonly mediaType: string;
  /** The signature of the file type in latin-1, at its offset. Absent where any bytes are valid. */
  readonly begins?: readonly [offset: number, text: string];
}

/**
 * The media types that providers accept, by file extension. The prompt fails for one that its model does not accept.
 */
const kinds: Readonly<Record<string, FileKind>> = {
  ".pdf": { mediaType: "application/pdf", begins: [0, "%PDF-"] },
  ".png": { mediaType: "image/png", begins: [0, "\x89PNG\r\n"] },
  ".jpg": { mediaType: "image/jpeg", begins: [0, "\xff\xd8\xff"] },
  ".jpeg": { mediaType: "image/jpeg", begins: [0, "\xff\xd8\xff"] },
  ".gif": { mediaType: "image/gif", begins: [0, "GIF8"] },
  ".webp": { mediaType: "image/webp", begins: [8, "WEBP"] },
  ".wav": { mediaType: "audio/wav", begins: [8, "WAVE"] },
  ".mp3": { mediaType: "audio/mpeg" },
  ".m4a": { mediaType: "audio/mp4", begins: [4, "ftyp"] },
  ".ogg": { mediaType: "audio/ogg", begins: [0, "OggS"] },
  ".flac": { mediaType: "audio/flac", begins: [0, "fLaC"] },
  ".mp4": { mediaType: "video/mp4", begins: [4, "ftyp"] },
  ".txt": { mediaType: "text/plain" },
  ".md": { mediaType: "text/plain" },
  ".csv": { mediaType: "text/plain" },
};

/** The most that providers take in one request, in bytes; all of it is held in memory. */
const maxBytes = 50 * 1_048_576;

/**
 * Reads the files that the command line names, relative to `cwd`, for a prompt. Throws a usage error that names the
 * file.
 */
async function readFiles(paths: readonly string[], cwd: string): Promise<readonly FileInput[]> {
  const files: FileInput[] = [];
  let remaining = maxBytes;
  for (const path of paths) {
    const kind = kinds[extname(path).toLowerCase()];
    if (kind === undefined) {
      throw usageError(
        `--file: kit does not know what ${path} is.`,
        `It takes ${Object.keys(kinds).join(", ")}. Agents read other text files of the project when the prompt names them.`,
      );
    }
    const data = await readBytes(path, resolve(cwd, path), remaining);
    remaining -= data.length;
    if (!isOfKind(data, kind))
      throw usageError(`--file: ${path} is not ${withArticle(kind.mediaType)} file.`);
    files.push({ data, media_type: kind.mediaType, filename: basename(path) });
  }
  return files;
}

async function readBytes(path: string, file: string, most: number): Promise<Uint8Array> {
  // Reading a pipe without a writer would wait forever.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    throw usageError(`--file: ${path} ${whyUnread(error)}.`);
  });
  try {
    const stats = await handle.stat();
    if (stats.isDirectory()) throw usageError(`--file: ${path} is a folder.`, "Name each file.");
    if (!stats.isFile()) throw usageError(`--file: ${path} is not a regular file.`);
    if (stats.size === 0) throw usageError(`--file: ${path} is empty.`);
    if (stats.size > most)
      throw usageError(`--file: with ${path} the files have more than ${maxBytes / 1_048_576} MiB.`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

function whyUnread(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  return code === "EACCES" || code === "EPERM" ? "must not be read" : "cannot be read";
}

function isOfKind(data: Uint8Array, { begins }: FileKind): boolean {
  if (begins === undefined) return true;
  const [offset, text] = begins;
  return Buffer.from(data.subarray(offset, offset + text.length)).toString("latin1") === text;
}
