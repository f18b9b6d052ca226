import type { BackendChoice } from "../../backends/contract.ts";
import type { StandardSchemaV1 } from "../../base/standard-schema.ts";
import type { ThinkingLevel } from "../../protocol/enums.ts";
import type { Message } from "../../protocol/message.ts";
import type { Usage } from "../../protocol/usage.ts";
import type { Role } from "../define/agent-profile.ts";
import type { KitCommand } from "../define/command.ts";
import type { Budget } from "../define/limits.ts";
import type { ModelSettings, ProfileModel } from "../define/model-settings.ts";
import type { AnyTool } from "../define/tool.ts";
import type { OutputSchema } from "../output/typed-output.ts";
import type { FileInput, ImageInput } from "../prompt/input-files.ts";

export interface PromptOptions<Result = unknown> {
  /** The answer is validated against it and comes back as `result`. */
  readonly result?: StandardSchemaV1<unknown, Result> | OutputSchema<Result> | undefined;
  /** A role of the agent or the project by name, or a role. */
  readonly role?: string | Role | undefined;
  /** `provider/model`, a model of the AI SDK, or a list, for this call only. */
  readonly model?: ProfileModel | undefined;
  /** Laid over the agent's, for this call only. */
  readonly modelSettings?: ModelSettings | undefined;
  /** The backend that decides the turns of this call, by name or as an object. Default: the agent's. */
  readonly backend?: BackendChoice | undefined;
  readonly thinkingLevel?: ThinkingLevel | undefined;
  /** Added to the agent's, for this call only. */
  readonly tools?: readonly AnyTool[] | undefined;
  readonly commands?: readonly KitCommand[] | undefined;
  readonly images?: readonly ImageInput[] | undefined;
  /** Documents and recordings, such as a PDF; a type that the model does not read fails with `invalid_request`. */
  readonly files?: readonly FileInput[] | undefined;
  /** Names in `env` whose values the sandbox's commands get during this call, and no other. */
  readonly secrets?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly budget?: Budget | undefined;
  /**
   * Identifies the operation, so that the same call after a crash resumes it: 1 to 128 letters, digits and
   * `_ - . :`. Logged work is not repeated, the answer included; the model learns of a tool call that may have
   * run, unless the tool is `idempotent`. Throws `conflict` if other operations came after it. Default: a new id.
   */
  readonly operationId?: string | undefined;
  /** False for a new `operationId`: the log is not searched for earlier work. Default true. */
  readonly resumes?: boolean | undefined;
}

export interface PromptResult<Result = unknown> {
  readonly text: string;
  /** The validated result, if the options have a `result` schema. */
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
