import type { ToolRunOptions } from "../agents/turn/tool-calls.ts";
import type { RunContext } from "../engine/contract.ts";

/** What the operations of a run's agents are recorded with. */
export interface AgentJournal {
  readonly step: RunContext["step"];
  readonly validateJson: ToolRunOptions["validateJson"];
}
