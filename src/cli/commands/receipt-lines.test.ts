import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import type { ReceiptItem, TurnReceipt } from "../../protocol/receipt.ts";
import { createReceiptLines } from "./logs.ts";

const turn = (turn_id: string, receipt: TurnReceipt, changed?: readonly string[]): KitEvent => ({
  type: "turn_request",
  model: "m",
  purpose: "agent",
  attempt: 1,
  index: 1,
  timestamp: "",
  instance_id: "1",
  operation_id: "o",
  turn_id,
  receipt,
  prefix: changed === undefined ? { digest: "p" } : { digest: "p", changed },
});

const agents: ReceiptItem = {
  kind: "instructions",
  id: "AGENTS.md",
  file: "AGENTS.md",
  line: 1,
  why: "instructions of the project",
  tokens: 1_200,
};
const rule: ReceiptItem = {
  kind: "guideline",
  id: "rules/api.mdc#errors",
  file: "rules/api.mdc",
  line: 4,
  why: "applies to a.ts",
  tokens: 30,
};
const events = [
  turn("t1", { digest: "1", items: 1, tokens: 1_200, added: [agents] }),
  turn("t2", { digest: "1", items: 1, tokens: 1_200, before: "t1" }),
  turn("t3", { digest: "2", items: 2, tokens: 1_230, before: "t1", added: [rule] }, ["tools"]),
];

test("a log prints one line with the new items of the model's context, and none if there are none", () => {
  const lines = createReceiptLines({ isWhole: false });
  expect(events.map(lines)).toEqual([
    ["  in the model's context: AGENTS.md:1 (in all 1 item, about 1,200 tokens)"],
    [],
    [
      "  prompt cache lost: tools",
      "  new in the model's context: rules/api.mdc:4 #errors (in all 2 items, about 1,230 tokens)",
    ],
  ]);
});

test("with --receipts all items are printed with each turn", () => {
  const lines = createReceiptLines({ isWhole: true });
  const printed = events.map(lines);
  expect(printed[1]).toEqual([
    "  in the model's context: 1 item, about 1,200 tokens",
    "    instructions AGENTS.md:1: instructions of the project, about 1,200 tokens",
  ]);
  expect(printed[2]?.at(-1)).toBe("    guideline rules/api.mdc:4 #errors: applies to a.ts, about 30 tokens");
  // A log that is read from its middle does not know what was told before.
  const [, , last] = events;
  expect(last && createReceiptLines({ isWhole: true })(last).at(-1)).toBe("    and 1 more");
});
