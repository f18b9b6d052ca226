import type { BackendChoice } from "../../backends/contract.ts";
import type { StandardSchemaV1 } from "../../base/standard-schema.ts";
import type { ThinkingLevel } from "../../protocol/enums.ts";
import type { Message } from "../../protocol/message.ts";
import type { ModelChoice } from "../../protocol/prompt.ts";
import type { Usage } from "../../protocol/usage.ts";
import type { Role } from "../define/agent-profile.ts";
import type { KitCommand } from "../define/command.ts";
import type { Budget } from "../define/limits.ts";
import type { AnyTool } from "../define/tool.ts";
import type { OutputSchema } from "../output/typed-output.ts";
import type { FileInput, ImageInput } from "../prompt/input-files.ts";

export interface PromptOptions<Result = unknown> {
  /** The answer is validated against it and comes back as `result`. */
  readonly result?: StandardSchemaV1<unknown, Result> | OutputSchema<Result> | undefined;
  /** A role of the agent or the project by name, or a role. */
  readonly role?: string | Role | undefined;
  /** `provider/model`, or a list, for this call only. */
  readonly model?: ModelChoice | undefined;
  /** What decides the turns, for this call only: a backend's name, or one of your own. Default: the agent's. */
  readonly backend?: BackendChoice | undefined;
  readonly thinkingLevel?: ThinkingLevel | undefined;
  /** Added to the agent's, for this call only. */
  readonly tools?: readonly AnyTool[] | undefined;
  readonly commands?: readonly KitCommand[] | undefined;
  readonly images?: readonly ImageInput[] | undefined;
  /** Documents and recordings, such as a PDF; what the model does not take is refused with `invalid_request`. */
  readonly files?: readonly FileInput[] | undefined;
  /** Names in `env` whose values the sandbox's commands get during this call, and no other. */
  readonly secrets?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly budget?: Budget | undefined;
  /**
   * Names the operation, so that asking again after a crash goes on with it: 1 to 128 letters, digits and
   * `_ - . :`. What the session's log has of it is not done again, its answer included; a call of a tool
   * that may have run is told to the model as such, unless the tool is `idempotent`. Throws `conflict` when
   * other operations came after it. Default: an id of its own.
   */
  readonly operationId?: string | undefined;
  /** False for an `operationId` that is new: the log is not asked what was done of it. Default true. */
  readonly resumes?: boolean | undefined;
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
