import { expect, test } from "vitest";
import { findIdFault } from "./instance-id.ts";

test("a short name is an id; for other texts the page says what is wrong", () => {
  for (const text of ["ticket-1043", "PR 12", "ü".repeat(64), "a.b", "a:b", "…", "chat@shop"])
    expect([text, findIdFault(text)]).toEqual([text, undefined]);
  for (const text of [
    "",
    ".",
    "..",
    "a/b",
    "a\\b",
    "a\nb",
    "ü".repeat(65),
    "a\u0000",
    "a\u0085b",
    "x".repeat(200),
  ])
    expect([text, typeof findIdFault(text)]).toEqual([text, "string"]);
});

test("a question is recognized as a message", () => {
  for (const text of ["Which rules apply to src/app.ts?", "What is wrong?", "Please mend the total"])
    expect(findIdFault(text)).toContain("This reads like a message");
});
