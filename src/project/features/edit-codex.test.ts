import fc from "fast-check";
import { expect, test } from "vitest";
import { canonical } from "../../base/json-text.ts";
import { parseToml, setTomlServer } from "./edit-codex.ts";

const keys = ["command", "args", "env", "env_vars"];
const set = (text: string, entry: Record<string, unknown> | undefined): string =>
  setTomlServer(text, "own", { entry, keys });

const text = `# codex
model = "x"

[mcp_servers.own] # ours
command = "old" # why
args = [
  "a", # first
]
startup_timeout_sec = 5

[mcp_servers.own.env]
A = "1"

# last
[tools]
web = true
`;

test("keys of one server change, and comments, keys of others and other tables stay", () => {
  expect(set(text, { command: "new", args: ["a"], env_vars: ["B"] })).toBe(`# codex
model = "x"

[mcp_servers.own] # ours
command = "new" # why
args = [
  "a", # first
]
startup_timeout_sec = 5
env_vars = ["B"]

# last
[tools]
web = true
`);
  expect(set(text, { command: "old", args: ["a"], env: { A: "1" } })).toBe(text);
});

test("a server is added at the end and removed again without a trace", () => {
  for (const before of ["", "a = 1", "a = 1\n", "a = 1\r\n\r\n# x\r\n", "[t]\nx = 1 # y\n\n"]) {
    const after = set(before, { command: 'say "hi"', args: ["\u007f"], env: { "a.b": "ü" } });
    expect(parseToml(after).mcp_servers).toEqual({
      own: { command: 'say "hi"', args: ["\u007f"], env: { "a.b": "ü" } },
    });
    expect(after.startsWith(before)).toBe(true);
    expect(set(after, undefined).trimEnd()).toBe(before.trimEnd());
  }
});

test.each([
  ["an inline table", 'mcp_servers = { own = { command = "old" } }\n'],
  ["a dotted key", 'mcp_servers.own.command = "old"\n'],
])("where the server is %s, nothing is guessed", (_name, before) => {
  expect(() => set(before, { command: "new" })).toThrow();
});

test("text that looks like a server in a string is left alone", () => {
  const before = 'note = """\n[mcp_servers.own]\ncommand = "old"\n"""\n';
  expect(set(before, { command: "new" })).toBe(`${before}\n[mcp_servers.own]\ncommand = "new"\n`);
});

test("long lines are edited in linear time, and a comment stays behind any form of text", () => {
  const spaces = " ".repeat(60_000);
  const started = performance.now();
  for (const line of [
    `a = """\n[mcp_servers.own]${spaces}x"""`,
    `[tools] #${spaces}x`,
    `[mcp_servers.own]${spaces}# x`,
  ])
    expect(set(`${line}\n[mcp_servers.z]\n`.replace(/^a/, "[t]\na"), undefined)).toContain("[mcp_servers.z]");
  for (const old of [`"${" #".repeat(30_000)}"`, `"x"${spaces}`, `"x" #${spaces}x`])
    expect(set(`[mcp_servers.own]\ncommand = ${old}\n`, { command: "new" })).toContain('command = "new"');
  for (const note of [
    `"""\n${"a = [\n".repeat(50_000)}"""`,
    `[${'"a=",\n'.repeat(50_000)}]`,
    `"${"x".repeat(900_000)}"`,
  ])
    expect(set(`[mcp_servers.own]\nnote = ${note}\ncommand = "x"\n`, { command: "new" })).toContain(
      'command = "new"',
    );
  expect(performance.now() - started).toBeLessThan(4_000);
  for (const old of ['"a # \\" b"', "'a # b'", '"""a " # b"""', "1#", '{ "#" = "#" }'])
    expect(set(`[mcp_servers.own]\ncommand = ${old} # why # not\n`, { command: "new" })).toBe(
      `[mcp_servers.own]\ncommand = "new"${old === "1#" ? "# " : " "}# why # not\n`,
    );
});

const value = fc.oneof(
  fc.string(),
  fc.array(fc.string(), { maxLength: 2 }),
  fc.dictionary(fc.string(), fc.string(), { maxKeys: 2 }),
);
const entry = fc.dictionary(fc.constantFrom(...keys), value, { minKeys: 1 });
const other = fc.constantFrom(
  "# note",
  "",
  "[tools]",
  "x = 1 # y",
  "[mcp_servers.them]",
  'command = "o"',
  "[[list]]",
  "args = [\n '[', # c\n]",
);

test("any edits in a row give the last settings, and keep the lines of others", () => {
  fc.assert(
    fc.property(
      fc.array(other, { maxLength: 6 }),
      fc.array(entry, { minLength: 1, maxLength: 3 }),
      (lines, entries) => {
        const before = lines.map((line) => `${line}\n`).join("");
        try {
          parseToml(before);
        } catch {
          return;
        }
        let after = before;
        for (const each of entries) {
          after = set(after, each);
          expect(canonical(Object(parseToml(after).mcp_servers).own)).toBe(canonical(each));
          expect(after.startsWith(before)).toBe(true);
        }
        expect(set(after, undefined).trimEnd()).toBe(before.trimEnd());
      },
    ),
    { numRuns: 500 },
  );
});
