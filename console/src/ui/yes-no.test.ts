import { expect, test } from "vitest";
import { findYesNo } from "./yes-no.ts";

test("a schema with one boolean is a yes/no question, with its description", () => {
  const approved = { type: "boolean", description: "Deploy to production?" };
  expect(findYesNo({ type: "object", properties: { approved }, required: ["approved"] })).toEqual({
    field: "approved",
    question: "Deploy to production?",
  });
  expect(findYesNo({ type: "boolean" })).toEqual({ field: undefined, question: undefined });
});

test("other schemas ask for a form", () => {
  const flag = { type: "boolean" };
  for (const schema of [
    undefined,
    true,
    { type: "string" },
    { type: "object" },
    { type: "object", properties: {} },
    { type: "object", properties: { yes: flag, why: { type: "string" } } },
    { type: "object", properties: { name: { type: "string" } } },
  ])
    expect(findYesNo(schema)).toBeUndefined();
});
