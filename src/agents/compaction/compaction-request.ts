import type { ResolvedModel } from "../../models/contract.ts";
import type { CompactionReason } from "../../protocol/event.ts";
import type { AgentRuntime, Operation } from "../agent-runtime.ts";
import type { CompactionSettings } from "./compaction-settings.ts";

/** What one compaction is to do, and with what. */
export interface CompactionRequest {
  readonly operation: Operation;
  readonly reason: CompactionReason;
  readonly settings: CompactionSettings;
  /** Of the model that goes on with the shortened history. */
  readonly windowTokens: number;
  /** The model that writes the summary. */
  readonly writer: ResolvedModel;
  readonly runtime: Pick<AgentRuntime, "clock" | "retry" | "modelIdleTimeoutMs">;
  /** What the summary should keep in view, from the caller of `compact`. */
  readonly focus?: string;
}
