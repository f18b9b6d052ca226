import type { AgentBackend } from "./contract.ts";

/** Kit's own loop: asks the model, runs what it asks for, and asks again until it asks for nothing more. */
export const typed: AgentBackend = {
  name: "typed",
  async run(operation) {
    for (;;) {
      const [call] = (await operation.turn()).calls;
      if (call === undefined) return;
      // Whichever is asked for first, all of its turn are run.
      await operation.tool(call.id);
    }
  },
};
