import { defineTool } from "../../agents/define/tool.ts";

export const price = defineTool({
  name: "price",
  description: "Gives a price.",
  input: { type: "object" },
  execute: () => "1299",
});

/** The call of it. */
export const ask = { name: "price", input: { article: "lamp" } };

export const usage = { input: 120, output: 10, cacheRead: 100, cacheWrite: 5 };
