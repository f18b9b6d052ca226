import { KitError } from "../../base/kit-error.ts";
import type { StandardSchemaV1 } from "../../base/standard-schema.ts";
import type { ImagePart, Message } from "../../protocol/message.ts";
import type { ThinkingLevel } from "../../protocol/thinking-level.ts";
import type { Usage } from "../../protocol/usage.ts";
import type { KitCommand } from "../command.ts";
import type { OutputSchema } from "../output/typed-output.ts";
import type { Role } from "../role.ts";
import type { AnyTool } from "../tool.ts";
import type { Budget } from "../turn/budget.ts";

/** A picture for the model: bytes with their media type, or an `https:` address. */
export type ImageInput =
  | { readonly data: Uint8Array | string; readonly media_type: string }
  | { readonly url: string; readonly media_type?: string };

export interface PromptOptions<Result = unknown> {
  /** The answer is validated against it and comes back as `result`. */
  readonly result?: StandardSchemaV1<unknown, Result> | OutputSchema<Result>;
  /** A role of the agent or the project by name, or a role. */
  readonly role?: string | Role;
  /** `provider/model`, for this call only. */
  readonly model?: string;
  readonly thinkingLevel?: ThinkingLevel;
  /** Added to the agent's, for this call only. */
  readonly tools?: readonly AnyTool[];
  readonly commands?: readonly KitCommand[];
  readonly images?: readonly ImageInput[];
  /** Names in `env` whose values the sandbox's commands get during this call, and no other. */
  readonly secrets?: readonly string[];
  readonly signal?: AbortSignal;
  readonly budget?: Budget;
  /**
   * Names the operation, so that asking again after a crash goes on with it: 1 to 128 letters, digits and
   * `_ - . :`. What the session's log has of it is not done again, its answer included; a call of a tool
   * that may have run is told to the model as such, unless the tool is `idempotent`. Throws `conflict` when
   * other operations came after it. Default: an id of its own.
   */
  readonly operationId?: string;
}

export interface PromptResult<Result = unknown> {
  readonly text: string;
  /** Only where `result` was asked for. */
  readonly result: Result;
  readonly usage: Usage;
  readonly model: { readonly id: string };
  readonly metadata: {
    readonly operation_id: string;
    readonly turns: number;
    readonly duration_ms: number;
    readonly finish_reason: string;
  };
  /** The messages of this operation, oldest first. */
  readonly messages: readonly Message[];
}

const mediaTypePattern = /^image\/[\w*.+-]+$/;
const base64Pattern = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Reads an image input as a message carries it. Throws `invalid_request` for what is no image: a provider
 * that refused it would refuse every later prompt as well, for it stands in the history.
 */
export function toImagePart(image: ImageInput): ImagePart {
  const { media_type = "url" in image ? "image/*" : "" } = image;
  if (!mediaTypePattern.test(media_type)) throw noImage("has a media_type such as image/png");
  if ("url" in image) {
    if (typeof image.url !== "string" || !image.url.startsWith("https://") || !URL.canParse(image.url))
      throw noImage("has an address that starts with https://");
    return { type: "image", media_type, data: image.url };
  }
  const data = image.data instanceof Uint8Array ? base64Of(image.data) : image.data;
  if (typeof data !== "string" || !base64Pattern.test(data))
    throw noImage("has its bytes as `data`, or the same in base64");
  return { type: "image", media_type, data };
}

function noImage(what: string): KitError {
  return new KitError({ code: "invalid_request", message: `An image ${what}.` });
}

function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32_768)
    binary += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(binary);
}
