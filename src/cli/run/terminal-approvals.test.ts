import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import { createOutput } from "../print/output.ts";
import { type ApprovalTerminal, createTerminalApprovals } from "./terminal-approvals.ts";

const request = (approval_id: string, args: unknown): ApprovalRequest => ({
  approval_id,
  agent: "payer",
  instance_id: "1",
  session: "default",
  operation_id: "op_1",
  tool_call_id: "c1",
  tool: "pay",
  args,
  requested_at: "2026-11-21T03:00:00.000Z",
});

function openTerminal(): ApprovalTerminal & { readonly input: PassThrough; readonly printed: () => string } {
  const stderr = new PassThrough();
  const output = createOutput(new PassThrough(), stderr);
  const mask = (text: string): string => text.replaceAll("key-1", "***");
  const readFile = async (path: string) => (path === "a.md" ? "one\ntwo key-1\n" : undefined);
  return { input: new PassThrough(), output, mask, readFile, printed: () => String(stderr.read() ?? "") };
}

const forever = new AbortController().signal;

test.each([
  ["y", { approved: true }],
  ["Yes", { approved: true }],
  ["", { approved: false }],
  ["n", { approved: false }],
  ["use the test account", { approved: false, reason: "use the test account" }],
])("the answer %j means %j", async (line, decision) => {
  const terminal = openTerminal();
  const word = createTerminalApprovals(terminal).request(request("a1", { amount: 5 }), forever);
  terminal.input.write(`${line}\n`);
  expect(await word).toEqual(decision);
  expect(terminal.printed()).toMatch(decision.approved ? /\nApproved\.\n$/ : /\nDenied\.\n$/);
});

test.each([
  ['{"guests": 4}', { type: "object" }, { approved: true, result: { guests: 4 } }],
  ["12", { type: "string" }, { approved: true, result: "12" }],
  ["12", { type: "integer" }, { approved: true, result: 12 }],
  ["y", { type: "string" }, { approved: true, result: "y" }],
  [" ", { type: "string" }, { approved: false }],
])("the answer %j to a question with the schema %j means %j", async (line, schema, decision) => {
  const terminal = openTerminal();
  const question = { kind: "question", message: "For how many, key-1?", schema } as const;
  const word = createTerminalApprovals(terminal).request({ ...request("a1", {}), ...question }, forever);
  terminal.input.write(`${line}\n`);
  expect(await word).toEqual(decision);
  expect(terminal.printed()).toMatch(
    /^pay asks: For how many, \*\*\*\?\nThe answer has this schema: \{[^}]*\}\nYour answer\?/,
  );
});

test("questions are asked one after the other, with all arguments and without keys", async () => {
  const terminal = openTerminal();
  const approvals = createTerminalApprovals(terminal);
  const long = "x".repeat(5_000);
  const words = [
    approvals.request(request("a1", { note: `${long} key-1` }), forever),
    approvals.request(request("a2", { amount: 2 }), forever),
  ];
  expect(await approvals.list()).toHaveLength(2);
  terminal.input.write("y\n");
  expect(await words[0]).toEqual({ approved: true });
  terminal.input.write("n\n");
  expect(await words[1]).toEqual({ approved: false });
  const printed = terminal.printed();
  expect(printed).toContain(long);
  expect(printed).not.toContain("key-1");
  expect(printed.match(/Approve it\?/g)).toHaveLength(2);
});

test("a write is shown as the change of the present file, without keys", async () => {
  const terminal = openTerminal();
  const args = { path: "a.md", content: "one\n" };
  const write = {
    ...request("a1", args),
    tool: "write",
    changes: { path: "a.md", in_project: true },
  } as const;
  const word = createTerminalApprovals(terminal).request(write, forever);
  terminal.input.write("y\n");
  await word;
  const lines = terminal.printed().split("\n");
  expect(lines.slice(0, 4)).toEqual(["write wants to change a.md", "@@ -1 +1 @@", " one", "-two ***"]);
});

test("a write whose present file cannot be shown is printed with all its arguments, and says so", async () => {
  const terminal = openTerminal();
  const args = { path: "b.md", content: "one\n" };
  const write = {
    ...request("a1", args),
    tool: "write",
    changes: { path: "b.md", in_project: true },
  } as const;
  const word = createTerminalApprovals(terminal).request(write, forever);
  terminal.input.write("n\n");
  await word;
  const printed = terminal.printed();
  expect(printed).toMatch(/write wants to run with \{\s+"path": "b.md"/);
  expect(printed).toContain("The present b.md cannot be shown.");
});

test("the end of the input denies the call", async () => {
  const terminal = openTerminal();
  const word = createTerminalApprovals(terminal).request(request("a1", {}), forever);
  terminal.input.end();
  expect(await word).toEqual({ approved: false, reason: "No person answered." });
});

test("an abort cancels the question, and the next one is asked", async () => {
  const terminal = openTerminal();
  const approvals = createTerminalApprovals(terminal);
  const stop = new AbortController();
  const first = approvals.request(request("a1", {}), stop.signal);
  stop.abort(new Error("stopped"));
  await expect(first).rejects.toThrow("stopped");
  const second = approvals.request(request("a2", {}), forever);
  terminal.input.write("y\n");
  expect(await second).toEqual({ approved: true });
});
