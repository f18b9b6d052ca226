import { isAbsolute, relative } from "node:path";
import { inspect } from "node:util";
import { KitError } from "../base/kit-error.ts";
import { systemObstacle } from "../files/obstacle.ts";
import { causeLine, type ErrorCause, hasProviderCause } from "../protocol/error-cause.ts";
import { type ErrorCode, isErrorCode } from "../protocol/error-code.ts";
import type { ErrorEnvelope } from "../protocol/errors.ts";
import type { EventError } from "../protocol/event.ts";
import { sqliteFault } from "../sqlite/database-file.ts";
import type { Output } from "./print/output.ts";
import { safeLine, safeLines } from "./text/safe-text.ts";

export interface ReportOptions {
  /** Also prints the error envelope on stdout, so that a program always reads JSON there. */
  readonly json: boolean;
  /** Also prints the stack, for developers of kit. */
  readonly debug: boolean;
}

/** Prints what went wrong on one line, and the advice on a second one. */
export function reportError(error: unknown, output: Output, options: ReportOptions): 1 | 2 {
  const knownError = withOwnHint(toKnownError(error));
  output.note(`${output.noteStyle("red", "error:")} ${safeLine(knownError.message)}`);
  for (const issue of issuesOf(knownError)) output.note(`  ${safeLine(issue)}`);
  if (knownError.hint && !repeatsIssues(knownError.hint, knownError))
    output.note(`${output.noteStyle("dim", "hint:")} ${safeLine(knownError.hint)}`);
  for (const line of causesOf(knownError))
    output.note(`${output.noteStyle("dim", "cause:")} ${safeLine(line)}`);
  if (options.debug) output.note(describeError(error));
  if (options.json) output.json(toEnvelope(knownError));
  return knownError.code === "invalid_request" ? 2 : 1;
}

/** A server tells its clients which header it needs; a command line takes the key from a variable. */
function withOwnHint(error: KitError<ErrorCode>): KitError<ErrorCode> {
  if (error.code !== "unauthorized") return error;
  const { code, message, meta, cause } = error;
  const hint = "Set KIT_API_KEY to one of the server's keys: KIT_API_KEY=<key> kit ….";
  return new KitError({ code, message, hint, meta, cause });
}

/** Wrong usage: an invalid command line, or one that asks for something impossible. */
export function usageError(message: string, hint?: string): KitError<ErrorCode> {
  return new KitError({ code: "invalid_request", message, hint });
}

/** Converts anything thrown to an error with a message for users; a foreign error becomes `internal_error`. */
export function toKnownError(error: unknown): KitError<ErrorCode> {
  if (error instanceof KitError) {
    return isErrorCode(error.code) ? (error as KitError<ErrorCode>) : unexpected(error, error.message);
  }
  if (isSystemError(error)) {
    const obstacle = systemObstacle(error);
    const where = error.path === undefined ? "" : ` ${nearby(error.path)}`;
    const action = error.syscall === undefined ? "" : ` (${error.syscall}${where})`;
    const message = `${systemReasons[error.code] ?? error.code}${action}.`;
    return obstacle === undefined ? unexpected(error, message) : unavailable(error, message);
  }
  const fault = sqliteFault(error);
  if (fault !== undefined) return unavailable(error, `A file of kit's own cannot be used: ${fault.reason}.`);
  return unexpected(
    error,
    `Something went wrong inside kit: ${error instanceof Error ? error.message : describeValue(error)}`,
  );
}

function unexpected(cause: unknown, message: string): KitError<ErrorCode> {
  return new KitError({
    code: "internal_error",
    message,
    hint: "KIT_DEBUG=1 shows where. 'kit doctor' checks this machine and this project.",
    cause,
  });
}

/** An error of the machine: neither kit nor the request caused it. */
function unavailable(cause: unknown, message: string): KitError<ErrorCode> {
  return new KitError({
    code: "unavailable",
    message,
    hint: "Mend that and try again. 'kit doctor' checks this machine and this project.",
    cause,
  });
}

const systemReasons: Readonly<Record<string, string>> = {
  EACCES: "Permission denied",
  EPERM: "Permission denied",
  EEXIST: "Something else is in the way",
  ENOENT: "No such file or folder",
  ENOTDIR: "A file is where a folder should be",
  ENOSPC: "No space left on the disk",
  EROFS: "The disk is read-only",
  EMFILE: "Too many files are open in this process (ulimit -n)",
  ENFILE: "Too many files are open on this machine",
  EIO: "Reading or writing failed",
};

function isSystemError(error: unknown): error is NodeJS.ErrnoException & { code: string } {
  return error instanceof Error && "code" in error && "syscall" in error && typeof error.code === "string";
}

/** A path as the user at the terminal would write it. */
function nearby(path: string): string {
  const short = relative(process.cwd(), path);
  return isAbsolute(path) && short.startsWith("..") ? path : short || ".";
}

/** The cause in the project's code that a server names; in this process the hint has it. */
function causesOf({ meta, hint }: KitError): readonly string[] {
  const cause: unknown = meta?.cause;
  if (typeof cause !== "object" || cause === null || !("message" in cause)) return [];
  const lines = causeLines(cause as ErrorCause);
  return hint?.includes(lines[0] ?? "") ? [] : lines;
}

/** Details that the message does not contain. */
function issuesOf(error: KitError<ErrorCode>): readonly string[] {
  return issueListOf(error)
    .filter(({ message }) => !error.message.includes(message))
    .map(toIssueLine);
}

/** The details of a server's error are its issues again. */
function repeatsIssues(hint: string, error: KitError<ErrorCode>): boolean {
  const bare = (text: string): string => text.replace(/\.$/, "");
  return bare(hint) === bare(issueListOf(error).map(toIssueLine).join("; "));
}

interface Issue {
  readonly path: string;
  readonly message: string;
}

function issueListOf({ meta }: KitError<ErrorCode>): readonly Issue[] {
  return Array.isArray(meta?.issues) ? meta.issues : [];
}

function toIssueLine({ path, message }: Issue): string {
  return `${path}: ${message}`;
}

/** The body that a route would answer with for an error. */
export function toErrorEnvelope(error: unknown): ErrorEnvelope {
  return toEnvelope(toKnownError(error));
}

function toEnvelope(error: KitError<ErrorCode>): ErrorEnvelope {
  return {
    error: {
      type: error.code,
      message: error.message,
      details: error.hint ?? issuesOf(error).join("; "),
      meta: error.meta,
    },
  };
}

/** An error with its stack and its causes, for developers of kit. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return safeLines(describeValue(error));
  const origin = originOf(error);
  const text =
    origin instanceof KitError ? `${placeOf(error)}${describeKitError(origin)}` : String(origin.stack);
  const { cause } = origin;
  // The hint has the provider's words.
  const isSaid = cause === undefined || hasProviderCause(origin);
  return isSaid ? safeLines(text) : `${safeLines(text)}\ncaused by ${describeError(cause)}`;
}

/** Anything else that was thrown: a provider's error object says why in fields of its own. */
function describeValue(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return inspect(value, { depth: 4, breakLength: Number.POSITIVE_INFINITY });
}

/** An error that kit rethrew keeps its message: its origin is more useful than the place where kit rethrew it. */
function originOf(error: Error): Error {
  const { cause } = error;
  return cause instanceof KitError && cause.message === error.message ? originOf(cause) : error;
}

/** The run or dispatch that an error ended. */
function placeOf(error: Error): string {
  const meta = error instanceof KitError ? error.meta : undefined;
  const id = meta?.run_id ?? meta?.dispatch_id;
  return typeof id === "string" ? `${id} ` : "";
}

/** An error with a hint was thrown on purpose: its place in the code does not help the user. */
function describeKitError({ message, hint, stack }: KitError): string {
  return hint === undefined ? String(stack) : `${message} ${hint}`;
}

/** The reasons for a failure, one per line: the record's, and what the project's code threw. */
export function failureLines(error: EventError | undefined): readonly string[] | undefined {
  if (error === undefined) return undefined;
  return [`${error.type}: ${error.message}`, ...causeLines(error.cause)];
}

/** `TypeError: no such release (src/workflows/release.ts:12)`, and each of its causes on a line of its own. */
export function causeLines(cause: ErrorCause | undefined): readonly string[] {
  if (cause === undefined) return [];
  const { cause: nextCause, errors = [], ...fields } = cause;
  // The name "Error" tells the reader nothing.
  const name = fields.name === "Error" || fields.message === "" ? "" : `${fields.name}: `;
  return [`${name}${causeLine(fields)}`, ...causeLines(nextCause), ...errors.flatMap(causeLines)];
}
