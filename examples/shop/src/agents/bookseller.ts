import { createAgent } from "kit";

export const triggers = { webhook: true };

export default createAgent({
  instructions:
    "You answer questions about this bookshop from its specs and coding rules, and name where they stand.",
  // Nothing is at risk here: it shows what a call looks like that waits for a person.
  approvals: { tools: ["guidelines_for"] },
});
