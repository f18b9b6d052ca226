import type { Agent } from "../../agents/harness.ts";
import type { AdmitRequest } from "../../engine/contract.ts";
import type { PromptReply, PromptRequest } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { RestingWork } from "./resting-work.ts";

/** The caller of work: its principal, its trace, and the cause of the work. The records of the work have the same fields. */
export type Caller = Pick<AdmitRequest, "principal" | "trace" | "cause">;

/** A checked prompt of a session, from its caller to the operation that answers it. `Outcome`: other results than a reply. */
export interface Input<Outcome = never> {
  readonly key: SessionKey;
  readonly request: PromptRequest;
  readonly caller: Caller;
  readonly operationId: string;
  /** Set for a stored input, which can be resumed from its log. */
  readonly resting?: RestingWork | undefined;
  /** Runs before the session is opened. */
  readonly prepare?: (() => Promise<void>) | undefined;
  /** Does the work of an input that need not be prompted; undefined if it must be. */
  readonly instead?:
    | ((agent: Agent, signal: AbortSignal) => Promise<PromptReply | Outcome | undefined>)
    | undefined;
}
