import { createAgent } from "kit";

export const triggers = { webhook: true };

export default createAgent({
  instructions:
    "You answer questions about this bookshop from its specs and coding rules, and name where they stand.",
  // The call is harmless; it shows how a call waits for approval.
  approvals: { tools: ["guidelines_for"] },
});
