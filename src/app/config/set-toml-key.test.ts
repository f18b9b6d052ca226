import fc from "fast-check";
import { parse } from "smol-toml";
import { expect, test } from "vitest";
import { addTomlTable, setTomlKey } from "./set-toml-key.ts";

const path = ["agent", "sandbox"];

test.each([
  ["", '[agent]\nsandbox = "e2b"\n'],
  ["# ours\n", '# ours\n\n[agent]\nsandbox = "e2b"\n'],
  ["[agent]\n", '[agent]\nsandbox = "e2b"\n'],
  [
    "[agent] # ours\nmax_turns = 5 # enough\n\n# the server\n[server]\nport = 1\n",
    '[agent] # ours\nmax_turns = 5 # enough\nsandbox = "e2b"\n\n# the server\n[server]\nport = 1\n',
  ],
  ["[agent]\r\nmax_turns = 5\r\n", '[agent]\r\nmax_turns = 5\r\nsandbox = "e2b"\r\n'],
  ["\uFEFF[agent]\nmax_turns = 5", '\uFEFF[agent]\nmax_turns = 5\nsandbox = "e2b"'],
  ['[ "agent" ]\n  max_turns = 5\n', '[ "agent" ]\n  max_turns = 5\n  sandbox = "e2b"\n'],
  ["agent.max_turns = 5\n[server]\n", 'agent.max_turns = 5\nagent.sandbox = "e2b"\n[server]\n'],
  ["[agent.approvals]\ntools = []\n", '[agent.approvals]\ntools = []\n\n[agent]\nsandbox = "e2b"\n'],
  // Lines that look like headings stand in a text, and lines of a list look like headings.
  [
    '[agent]\ninstructions = """\n[agent]\n[server]\n"""\nmax_turns = 5\n',
    '[agent]\nsandbox = "e2b"\ninstructions = """\n[agent]\n[server]\n"""\nmax_turns = 5\n',
  ],
])("%j becomes %j", (before, after) => {
  expect(setTomlKey(before, path, "e2b")).toBe(after);
});

test.each([
  ["agent = { max_turns = 5 }\n"],
  ['[agent]\nsandbox = "local"\n'],
  ["agent = 5\n"],
  ["[[agent]]\nmax_turns = 5\n"],
])("%j is left to a person", (before) => {
  expect(setTomlKey(before, path, "e2b")).toBeUndefined();
});

const line = fc.constantFrom(
  "# agent",
  "",
  "[server]",
  "[agent]",
  "[agent.approvals]",
  "[[specs.custom]]",
  "max_turns = 5",
  "tools = [\n  [1],\n  [2], # [agent]\n]",
  'text = """\n[agent]\nsandbox = 1\n"""',
  "text2 = '''\n[agent]'''",
  "agent.max_cost = 1.5",
  "since = 2026-01-01",
  'agent = { model = "a/b" }',
);

test("any file keeps all its lines, and gains nothing but the key", () => {
  let written = 0;
  fc.assert(
    fc.property(fc.array(line, { maxLength: 9 }), fc.constantFrom("\n", "\r\n"), (parts, eol) => {
      const before = parts.join("\n").replaceAll("\n", eol);
      try {
        parse(before);
      } catch {
        return;
      }
      const after = setTomlKey(before, path, 'e2b"\\');
      if (after === undefined) return;
      written++;
      const lines = after.split(/\r?\n/);
      let next = 0;
      for (const kept of before.replace(/(\r?\n)*$/, "").split(/\r?\n/)) {
        next = lines.indexOf(kept, next) + 1;
        expect(next).toBeGreaterThan(0);
      }
      expect(parse(after)).toMatchObject({ ...parse(before), agent: { sandbox: 'e2b"\\' } });
    }),
    { numRuns: 200 },
  );
  expect(written).toBeGreaterThan(20);
});

const allow = ["agent", "approvals", "allow"];

test.each([
  ["", '[[agent.approvals.allow]]\ntool = "bash"\n'],
  [
    '[agent.approvals] # ours\ntools = ["bash"] # all\n\n# the server\n[server]\nport = 1\n',
    '[agent.approvals] # ours\ntools = ["bash"] # all\n\n# the server\n[server]\nport = 1\n\n[[agent.approvals.allow]]\ntool = "bash"\n',
  ],
  [
    '[[agent.approvals.allow]]\ntool = "rm"\n\n# last\n[server]\n',
    '[[agent.approvals.allow]]\ntool = "rm"\n\n[[agent.approvals.allow]]\ntool = "bash"\n\n# last\n[server]\n',
  ],
  [
    '[agent]\r\napprovals.tools = ["bash"]\r\n',
    '[agent]\r\napprovals.tools = ["bash"]\r\n\r\n[[agent.approvals.allow]]\r\ntool = "bash"\r\n',
  ],
  [
    '[agent]\napprovals = { tools = ["bash"] } # ours\n',
    '[agent]\napprovals = { tools = ["bash"], allow = [{ tool = "bash" }] } # ours\n',
  ],
  [
    '[agent.approvals]\ntools = ["bash"]\nallow = [\n  { tool = "rm" }, # old\n]\n',
    '[agent.approvals]\ntools = ["bash"]\nallow = [\n  { tool = "rm" }, # old\n{ tool = "bash" }]\n',
  ],
  [
    "agent = { approvals = { tools = [] } }\n",
    'agent = { approvals = { tools = [], allow = [{ tool = "bash" }] } }\n',
  ],
])("%j with a table becomes %j", (before, after) => {
  expect(addTomlTable(before, allow, { tool: "bash" })).toBe(after);
});

test("an added table holds any text, keeps the existing content, and writes invisible characters as escapes", () => {
  const before = '# ours\n[agent.approvals]\ntools = ["bash"]\n';
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
      const after = addTomlTable(before, allow, { tool: "bash", args: text }) ?? "";
      expect(after.startsWith(before)).toBe(true);
      expect(parse(after)).toEqual({
        agent: { approvals: { tools: ["bash"], allow: [{ tool: "bash", args: text }] } },
      });
      expect(after.slice(before.length)).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }),
  );
  const hostile = 'x"\n[server]\nauth = "none\u202e\u200b';
  expect(addTomlTable("", allow, { tool: hostile })).toBe(
    '[[agent.approvals.allow]]\ntool = "x\\"\\n[server]\\nauth = \\"none\\U0000202e\\U0000200b"\n',
  );
});

test("no table is added to a file whose meaning would change", () => {
  expect(addTomlTable('agent = "none"\n', allow, { tool: "bash" })).toBeUndefined();
  expect(addTomlTable("[agent.approvals]\nallow = 1\n", allow, { tool: "bash" })).toBeUndefined();
});
