import type { ToolRunOptions } from "../agents/turn/tool-calls.ts";
import type { RunContext } from "../engine/contract.ts";

/** The journal that records the operations of a run's agents. */
export interface AgentJournal {
  readonly step: RunContext["step"];
  readonly validateJson: ToolRunOptions["validateJson"];
}
