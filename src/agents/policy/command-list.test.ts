import { expect, test } from "vitest";
import type { AllowedCommand } from "../define/agent-profile.ts";
import { checkCommand } from "./check-command.ts";
import { entriesOf } from "./command-list.ts";

test("a list is parsed once, and again when its owner changes it", () => {
  const unsafe = { command: "make", unsafe: true };
  const allowedCommands: AllowedCommand[] = ["git status", unsafe];
  const policy = { allowShell: true, allowedCommands };
  const read = entriesOf(allowedCommands);
  expect(checkCommand("git status", policy).allowed).toBe(true);
  expect(entriesOf(allowedCommands)).toBe(read);

  expect(checkCommand("npm test", policy).allowed).toBe(false);
  allowedCommands.push("npm test");
  expect(checkCommand("npm test", policy).allowed).toBe(true);
  allowedCommands[0] = "ls";
  expect(checkCommand("git status", policy).allowed).toBe(false);
  expect(checkCommand("make anything", policy).allowed).toBe(true);
  unsafe.unsafe = false;
  expect(checkCommand("make anything", policy).allowed).toBe(false);
});
