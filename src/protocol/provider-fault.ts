import { attempt } from "../base/attempt.ts";
import { isRecord } from "../base/record.ts";
import { isThrownError, readField, textAt, thrownText } from "../base/thrown.ts";

/** The provider's report about a failed call of a model. */
export interface ProviderFault {
  /** The provider's words; empty if it said nothing. */
  readonly message: string;
  /** The HTTP status, or the one that an error inside a stream states. */
  readonly status?: number | undefined;
  /** Such as `invalid_api_key`. */
  readonly code?: string | undefined;
}

/** The `name` of such a fault in records. */
export const providerErrorName = "ProviderError";

/** Whether an error, which a call of a model threw, contains an answer of the provider. */
export function isProviderError(error: unknown): boolean {
  const name = textAt(error, "name") ?? "";
  return !isThrownError(error) || name === providerErrorName || name.startsWith("AI_");
}

/**
 * Reads the provider's words and code from an error of the AI SDK, from a body or from an error inside a stream, in the shapes of
 * OpenAI, Anthropic, Google and others. It never reads more of a body than its error message.
 */
export function readProviderFault(error: unknown): ProviderFault {
  const stated = numberAt(error, "statusCode") ?? numberAt(error, "status");
  // `value` and `text`: parts of a stream that the AI SDK could not read.
  const bodies = ["responseBody", "data", "value", "text"].map((field) => readField(error, field));
  const found = [...bodies, isThrownError(error) ? undefined : error]
    .map((body) => findFault(parsed(body)))
    .find((fault) => fault !== undefined);
  const status = [stated, found?.status].find(
    (number) => number !== undefined && number >= 400 && number < 600,
  );
  return { message: found?.message ?? ownText(error), status, code: found?.code ?? codeAt(error) };
}

/** The AI SDK quotes a whole body that it cannot read. */
function ownText(error: unknown): string {
  const text = thrownText(error);
  if (textAt(error, "name") === "AI_TypeValidationError")
    return "The answer does not have the expected form.";
  if (textAt(error, "name") === "AI_JSONParseError") return "The answer is not valid JSON.";
  return isThrownError(error) || typeof error === "string" ? text : "";
}

/** Deeper bodies are no errors. */
const maxDepth = 4;

function findFault(body: unknown, depth = 0): ProviderFault | undefined {
  if (depth > maxDepth) return undefined;
  if (Array.isArray(body)) return findFault(body[0], depth + 1);
  if (typeof body === "string") return depth === 0 || body === "" ? undefined : { message: body };
  if (!isRecord(body)) return undefined;
  for (const field of ["error", "response"]) {
    const inner = findFault(parsed(readField(body, field)), depth + 1);
    if (inner !== undefined) return { ...outerFields(body), ...withoutUndefined(inner) };
  }
  const message = textAt(body, "message") ?? textAt(body, "detail");
  return message === undefined ? undefined : { message, ...outerFields(body) };
}

function outerFields(body: Readonly<Record<string, unknown>>): Omit<ProviderFault, "message"> {
  return { code: codeAt(body), status: numberAt(body, "code") ?? numberAt(body, "status") };
}

function withoutUndefined(fault: ProviderFault): ProviderFault {
  const { message, status, code } = fault;
  return { message, ...(status === undefined ? {} : { status }), ...(code === undefined ? {} : { code }) };
}

/** OpenAI has `code`, or else `type`; Google has `status`, Anthropic `type`. */
function codeAt(body: unknown): string | undefined {
  return ["code", "status", "type"]
    .map((field) => textAt(body, field))
    .find((text) => text !== undefined && /^\w{1,100}$/.test(text) && text !== "error");
}

function numberAt(value: unknown, field: string): number | undefined {
  const number = readField(value, field);
  return typeof number === "number" ? number : undefined;
}

/** Longer bodies are not read: an error is short. */
const maxBodyChars = 100_000;

function parsed(body: unknown): unknown {
  if (typeof body !== "string" || !/^\s*[{[]/.test(body) || body.length > maxBodyChars) return body;
  return attempt(() => JSON.parse(body) as unknown);
}

const mark = "[secret]";
/** Longer words are cut before keys are searched. */
const maxWordsChars = 10_000;
/** `sk-proj-…`, `AIza…` */
const keyStart = /^(?:(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|gh[pousr]|github_pat)[-_]|AIza|AKIA|ya29)/;
const namedKeys = [
  /(?<=\bBearer\s)[^\s"',;]{3,}[^\s"',;.]/gi,
  /(?<=\b(?:api[ _-]?key|token|secret|password)(?: provided| is| was)?\s?[:=]\s?["']?)[^\s"',;]{3,}[^\s"',;.]/gi,
];

/** Hides keys that a provider repeats in its words, also if it shows only parts of them: `sk-ab***yz`. */
export function hideRepeatedKeys(words: string): string {
  const text = namedKeys.reduce((masked, form) => masked.replace(form, mark), words.slice(0, maxWordsChars));
  return text.replace(/[\w*…•-][\w*.…•-]{4,}[\w*…•-]/g, (token) => {
    const isKey =
      (keyStart.test(token) && token.length >= 8) || token.includes("***") || token.includes("•••");
    return isKey ? mark : token;
  });
}

/** The statuses that the codes of errors inside a stream mean: the stream itself has status 200. */
const statusesOfCodes: readonly (readonly [RegExp, number])[] = [
  [/^(?:rate_limit\w*|resource_exhausted|too_many_requests|insufficient_quota|billing\w*)$/i, 429],
  [/^(?:timeout\w*|request_timeout|deadline_exceeded)$/i, 408],
  [/^(?:invalid_api_key|authentication_error|unauthenticated|unauthorized|invalid_authentication)$/i, 401],
  [/^(?:permission_\w+|forbidden|access_denied|unsupported_country\w*)$/i, 403],
  [/^(?:\w+_)?not_found(?:_error)?$/i, 404],
  [/^(?:request_too_large|payload_too_large)$/i, 413],
  [
    /^(?:invalid\w*|context_length_exceeded|failed_precondition|unsupported\w*|\w*content_(?:policy|filter)\w*|string_above\w*|bad_request\w*)$/i,
    400,
  ],
];

/** The status that the provider stated, or that its code means; undefined if neither is known. */
export function statusOfFault({ status, code = "" }: ProviderFault): number | undefined {
  return status ?? statusesOfCodes.find(([form]) => form.test(code))?.[1];
}

/** Whether the provider refuses because the account has used up what it has paid for, which no waiting mends. */
export function isSpentQuota({ code = "" }: ProviderFault): boolean {
  return /^(?:insufficient_quota|billing\w*)$/i.test(code);
}
