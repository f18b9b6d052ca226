import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "smol-toml";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AgentWrites } from "../sources/agent-writes.ts";
import { toProfile } from "./agent-config.ts";
import { AllowRuleFile } from "./allow-rule-file.ts";

const toml = '[agent.approvals]\ntools = ["bash"] # ask us\n';
const writer = { agent: "mender", instance_id: "1", session: "default", tool: "bash" };
const rule = { tool: "bash", command: "git status" };
let root: string;
let file: string;
let writes: AgentWrites;
let rules: AllowRuleFile;

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "kit-allow-")));
  file = join(root, "kit.toml");
  writeFileSync(file, toml);
  writes = new AgentWrites(root);
  rules = new AllowRuleFile({ file, defaults: toProfile({ approvals: { tools: ["bash"] } }), writes });
});
afterEach(() => {
  writes.close();
  rmSync(root, { recursive: true });
});

test("kit writes no rule to a file that an agent has changed, until a person accepts it", async () => {
  writes.wrote(file, writer);
  await expect(rules.write(rule)).rejects.toMatchObject({ code: "forbidden" });
  expect(readFileSync(file, "utf8")).toBe(toml);
  writes.accepted(file);
  await rules.write(rule);
  expect(readFileSync(file, "utf8")).toContain("git status");
});

test("a rule that a person writes while an agent's command runs does not block the file", async () => {
  writes.check(file);
  const end = writes.begin(writer);
  await rules.write(rule);
  end();
  expect(() => new AgentWrites(root).check(file)).not.toThrow();
  expect(readFileSync(file, "utf8")).toContain("git status");
});

test("concurrent writes of rules all reach the file, each complete", async () => {
  const tools = Array.from({ length: 12 }, (_, at) => `tool-${at}`);
  await Promise.all(tools.map((tool) => rules.write({ tool })));
  const { agent } = parse(readFileSync(file, "utf8")) as {
    agent: { approvals: { allow: { tool: string }[] } };
  };
  expect(agent.approvals.allow.map(({ tool }) => tool)).toEqual(tools);
  expect(readdirSync(root).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test.each([
  [undefined, "no kit.toml"],
  ["kit.config.ts", "is code"],
])("a project with %s says why it takes none", async (name, why) => {
  const ruleFile = new AllowRuleFile({
    file: name === undefined ? undefined : join(root, name),
    defaults: toProfile({ approvals: { tools: ["bash"] } }),
    writes,
  });
  expect(ruleFile.describe([rule]).problem).toContain(why);
  await expect(ruleFile.write(rule)).rejects.toMatchObject({ code: "unavailable" });
});
