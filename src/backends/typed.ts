import type { AgentBackend } from "./contract.ts";

/** Kit's own loop: asks the model, runs what it asks for, and asks again until it asks for nothing more. */
export const typed: AgentBackend = {
  name: "typed",
  async run(operation) {
    for (;;) {
      const { calls } = await operation.turn();
      if (calls.length === 0) return;
      // The first one runs them all.
      for (const { id } of calls) await operation.tool(id);
    }
  },
};
