import { KitError } from "../base/kit-error.ts";
import { type ErrorCode, type ErrorEnvelope, type ErrorIssue, errorCodes } from "../protocol/error-code.ts";
import { jsonParts, type ReplyParts } from "./reply.ts";

/** The error reply for anything thrown: a `KitError` by its code, all else as `internal_error`. */
export function toErrorReply(error: unknown, options: { readonly dev: boolean }): ReplyParts {
  const known = toKitError(error);
  return jsonParts(toErrorEnvelope(error, options), {
    status: errorCodes[known.code].status,
    headers: headersOf(known),
  });
}

/** The envelope of an error, as every route, stream and connection sends it. */
export function toErrorEnvelope(error: unknown, options: { readonly dev: boolean }): ErrorEnvelope {
  const known = toKitError(error);
  const meta = metaOf(known);
  return {
    error: {
      type: known.code,
      message: known.message,
      details: detailsOf(known),
      ...(meta === undefined ? {} : { meta }),
      ...(options.dev ? { dev: { hint: known.hint, ...(isRefusal(known) ? {} : describe(error)) } } : {}),
    },
  };
}

/** Clients may count on the issues of an invalid request, also where no single field of it is wrong. */
function metaOf({ code, message, meta }: KitError<ErrorCode>): KitError["meta"] {
  if (code !== "invalid_request" || Array.isArray(meta?.issues)) return meta;
  return { ...meta, issues: [{ path: "request", message }] };
}

/** Strangers are told these, and the pages of foreign sites: a stack would tell them where kit lies on this machine. */
function isRefusal({ code }: KitError<ErrorCode>): boolean {
  return code === "unauthorized" || code === "forbidden";
}

/** Everything but a `KitError` with a code of ours may say things that no client should read. */
function toKitError(error: unknown): KitError<ErrorCode> {
  if (error instanceof KitError) {
    // Read once: an error of a project's code may say something else the second time.
    const { code, message, hint, meta } = error;
    if (isErrorCode(code)) {
      return new KitError({
        code,
        message,
        ...(hint === undefined ? {} : { hint }),
        ...(meta === undefined || !isJson(meta) ? {} : { meta }),
      });
    }
  }
  return new KitError<ErrorCode>({
    code: "internal_error",
    message: "Something went wrong inside kit.",
    cause: error,
  });
}

// An agent or a tool may throw a `KitError` of its own making.
function isJson(meta: unknown): boolean {
  try {
    JSON.stringify(meta);
    return true;
  } catch {
    return false;
  }
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code);
}

const advice: Partial<Record<ErrorCode, string>> = {
  invalid_json: "Send one JSON object in UTF-8.",
  unauthorized: "Send an API key in the header: Authorization: Bearer <key>.",
  agent_not_webhook:
    'Declare it in the agent\'s file: export const triggers = { webhook: true }. server.expose = "all" in the configuration serves every agent.',
  unsupported_media_type: "Send the body as application/json.",
  internal_error: "The log of the server says more.",
};

function detailsOf(error: KitError<ErrorCode>): string {
  const { issues } = error.meta ?? {};
  const allowed = allowedBy(error);
  if (allowed !== undefined) return `Allowed: ${allowed}.`;
  if (!Array.isArray(issues)) return advice[error.code] ?? "";
  // A project's code may have written anything there.
  return issues.map((issue: unknown) => `${fieldOf(issue, "path")}: ${fieldOf(issue, "message")}`).join("; ");
}

function fieldOf(issue: unknown, field: keyof ErrorIssue): string {
  const value: unknown = Object.getOwnPropertyDescriptor(Object(issue), field)?.value;
  return typeof value === "string" ? value : "";
}

/** The methods that a route takes; undefined for every other error. */
function allowedBy({ code, meta }: KitError<ErrorCode>): string | undefined {
  return code === "method_not_allowed" && Array.isArray(meta?.allow) ? meta.allow.join(", ") : undefined;
}

function headersOf(error: KitError<ErrorCode>): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.code === "unauthorized") headers["www-authenticate"] = "Bearer";
  const allowed = allowedBy(error);
  if (allowed !== undefined) headers.allow = allowed;
  const waitS = error.meta?.retry_after_s;
  // Whole seconds are all that the header can say.
  if (typeof waitS === "number" && Number.isFinite(waitS)) headers["retry-after"] = String(Math.ceil(waitS));
  return headers;
}

// Causes can be long chains, and even circles.
function describe(error: unknown, depth = 5): Record<string, unknown> {
  if (!(error instanceof Error)) return { thrown: String(error) };
  const cause = error.cause === undefined || depth === 0 ? {} : { cause: describe(error.cause, depth - 1) };
  return { name: error.name, message: error.message, stack: error.stack, ...cause };
}
