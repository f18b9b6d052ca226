import type { BackendName } from "./backend-name.ts";
import type { ThinkingLevel } from "./thinking-level.ts";
import type { Usage } from "./usage.ts";

/** `provider/model`, or several: where one fails for good, the next one answers. */
export type ModelChoice = string | readonly string[];

/** What answers one prompt in place of the agent's own. */
export interface PromptChoices {
  /** `provider/model`, or a list in the order in which they are tried. */
  readonly model?: ModelChoice | undefined;
  /** What decides the turns. */
  readonly backend?: BackendName | undefined;
}

/** A picture in a request: base64 with its media type, or an `https:` address. */
export type PromptImage =
  | { readonly data: string; readonly media_type: string }
  | { readonly url: string; readonly media_type?: string };

/** A document or a recording in a request, likewise. */
export type PromptFile =
  | { readonly data: string; readonly media_type: string; readonly filename?: string }
  | { readonly url: string; readonly media_type: string; readonly filename?: string };

/** What an agent is asked over HTTP, without the session. */
export interface PromptRequest extends PromptChoices {
  readonly message: string;
  readonly role?: string;
  readonly thinking_level?: ThinkingLevel;
  readonly images?: readonly PromptImage[];
  readonly files?: readonly PromptFile[];
}

/** The body of `POST /agents/{name}/{id}`. */
export interface PromptBody extends PromptRequest {
  /** Default: `default`. */
  readonly session?: string;
}

/** What a prompt comes to: `result` of the reply, and of the `result` event of a stream. */
export interface PromptReply {
  readonly text: string;
  readonly usage: Usage;
  readonly model: { readonly id: string };
  readonly metadata: Readonly<Record<string, unknown>>;
}
