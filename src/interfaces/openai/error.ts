import type { OpenAiError } from "../../protocol/openai.ts";

/** An error as kit's envelope has it. */
export interface KitFault {
  readonly error: {
    readonly type: string;
    readonly message: string;
    readonly details: string;
    readonly meta?: Readonly<Record<string, unknown>> | undefined;
  };
}

/** OpenAI's names of errors that its clients know. */
const codes: Readonly<Record<string, string>> = {
  unauthorized: "invalid_api_key",
  agent_not_found: "model_not_found",
  agent_not_webhook: "model_not_found",
  too_many_requests: "rate_limit_exceeded",
  context_overflow: "context_length_exceeded",
};

/** Converts an error of kit to OpenAI's form; `status` is that of its reply. */
export function toOpenAiError({ error }: KitFault, status: number): OpenAiError {
  const { issues } = error.meta ?? {};
  const path: unknown = Array.isArray(issues) ? issues[0]?.path : undefined;
  const param = typeof path === "string" ? /^(?:body|query)\.(.+)$/s.exec(path)?.[1] : undefined;
  const type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
  const isPrevious = error.type === "not_found" && param === "previous_response_id";
  return {
    error: {
      message: `${error.message} ${error.details}`.trimEnd(),
      type,
      param: param ?? null,
      code: isPrevious ? "previous_response_not_found" : (codes[error.type] ?? error.type),
    },
  };
}
