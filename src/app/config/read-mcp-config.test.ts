import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { expect, test } from "vitest";
import { parseConfig } from "./config-schema.ts";

const issuesOf = (mcp: unknown): readonly string[] =>
  parseConfig({ mcp }).issues.map(({ path, message }) => `${path} ${message}`);

test("servers are read, as processes and as addresses", () => {
  const mcp = {
    mode: "search_execute",
    search_limit: 5,
    servers: {
      files: { command: "npx", args: ["-y", "some-server"], env: ["HOME"], cwd: "tools", allow: ["get_*"] },
      github: { url: "https://example.org/mcp", headers: { authorization: "Bearer x" }, timeout_seconds: 60 },
      one: { command: "x", env: { LEVEL: "debug" }, deny: ["drop"] },
    },
  };
  expect(parseConfig({ mcp })).toEqual({ config: { mcp }, issues: [] });
  expect(parseConfig({ mcp: {} }).issues).toEqual([]);
});

test.each([
  [{ mode: "both" }, 'mcp.mode must be one of direct, search_execute, not "both"'],
  [{ search_limit: 0 }, "mcp.search_limit must be a whole number from 1 to 100"],
  [{ server: {} }, "mcp.server is not a key of kit; did you mean mcp.servers?"],
  [{ servers: { a: {} } }, "mcp.servers.a needs either a command or a url"],
  [{ servers: { a: { command: "x", url: "http://y" } } }, "mcp.servers.a needs either a command or a url"],
  [
    { servers: { a: { comand: "x" } } },
    "mcp.servers.a.comand is not a key of kit; did you mean mcp.servers.a.command?",
  ],
  [{ servers: { a: { command: "x", env: [1] } } }, "mcp.servers.a.env[0] must be a text, not 1"],
  [{ servers: { a: { command: "x", env: { A: 1 } } } }, "mcp.servers.a.env.A must be a text, not 1"],
  [{ servers: { a: { command: "x", env: "HOME" } } }, "mcp.servers.a.env must be a list, not a text"],
  [{ servers: { a: { command: "x", timeout_seconds: 0 } } }, "must be a whole number from 1 to 86400, not 0"],
  [
    { servers: { "a.b": { command: "x" } } },
    "mcp.servers.a.b has a name that cannot be part of its tools' names",
  ],
  [{ servers: { a__b: { command: "x" } } }, "mcp.servers.a__b has a name"],
  [{ servers: { a: { url: "//x" } } }, "mcp.servers.a has a url that does not begin with http: or https:"],
])("%j is refused by name", (mcp, message) => {
  expect(issuesOf(mcp).join("\n")).toContain(message);
});

test("a fault of a server is reported without its keys", () => {
  const wrong = {
    servers: { a: { url: "http://user:s3cret@x", command: "s3cret", headers: { a: 1, b: "s3cret" } } },
  };
  const issues = issuesOf(wrong);
  expect(issues.length).toBeGreaterThan(0);
  expect(issues.join()).not.toContain("s3cret");
});

test("the examples of the guide are configurations", () => {
  const guide = readFileSync(join(import.meta.dirname, "../../../docs/mcp-client.md"), "utf8");
  const examples = [...guide.matchAll(/```toml\n(.*?)```/gs)].map(([, toml = ""]) => toml);
  expect(examples.length).toBeGreaterThan(2);
  for (const toml of examples) expect(parseConfig(parse(toml)).issues).toEqual([]);
});
