import { KitError } from "../../base/kit-error.ts";
import type { ErrorCode } from "../../protocol/error-code.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import type { KitFault } from "../openai/error.ts";

/** A2A's own errors that kit answers with, by the reason in their details. */
const reasons = {
  TASK_NOT_FOUND: { rpc: -32_001, code: "not_found" },
  TASK_NOT_CANCELABLE: { rpc: -32_002, code: "conflict" },
  PUSH_NOTIFICATION_NOT_SUPPORTED: { rpc: -32_003, code: "invalid_request" },
  UNSUPPORTED_OPERATION: { rpc: -32_004, code: "invalid_request" },
  CONTENT_TYPE_NOT_SUPPORTED: { rpc: -32_005, code: "unsupported_media_type" },
  METHOD_NOT_FOUND: { rpc: -32_601, code: "invalid_request" },
  VERSION_NOT_SUPPORTED: { rpc: -32_009, code: "invalid_request" },
} as const satisfies Record<string, { readonly rpc: number; readonly code: ErrorCode }>;

export type A2aReason = keyof typeof reasons;

/** Creates an error of A2A. */
export function a2aError(reason: A2aReason, message: string): KitError {
  return new KitError({ code: reasons[reason].code, message, meta: { reason } });
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  /** Messages of `google.rpc` in the JSON of Protobuf. */
  readonly data: readonly object[];
}

/** Converts an error of kit; `invalid` is the code of an invalid request: -32600 of its form, -32602 of its params. */
export function toA2aError({ error }: KitFault, invalid = -32_600): RpcError {
  const { type, meta = {} } = error;
  const reason = type === "unsupported_media_type" ? "CONTENT_TYPE_NOT_SUPPORTED" : meta.reason;
  const message = `${error.message} ${isOwn(reason) ? "" : error.details}`.trimEnd();
  if (isOwn(reason))
    return { code: reasons[reason].rpc, message, data: [infoOf(reason, "a2a-protocol.org")] };
  if (type === "invalid_request") {
    const issues = Array.isArray(meta.issues) ? (meta.issues as readonly ErrorIssue[]) : [];
    const fieldViolations = issues.map((issue) => ({
      field: issue.path.replace(/^body\./, ""),
      description: issue.message,
    }));
    return {
      code: invalid,
      message,
      data: [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations }],
    };
  }
  const codes: Readonly<Record<string, number>> = { invalid_json: -32_700, internal_error: -32_603 };
  return { code: codes[type] ?? -32_000, message, data: [infoOf(type.toUpperCase(), "kit", meta)] };
}

function isOwn(reason: unknown): reason is A2aReason {
  return typeof reason === "string" && Object.hasOwn(reasons, reason);
}

function infoOf(
  reason: string,
  domain: string,
  { retry_after_s }: { readonly retry_after_s?: unknown } = {},
) {
  const metadata = typeof retry_after_s === "number" ? { retryAfterSeconds: String(retry_after_s) } : {};
  return { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain, metadata };
}
