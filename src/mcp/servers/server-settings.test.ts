import { expect, test } from "vitest";
import { maskSecrets } from "../../agents/secrets.ts";
import { toServerSettings } from "./server-settings.ts";

const env = { PATH: "/bin", HOME: "/home/ann", GITHUB_TOKEN: "ghp_0123456789", LEVEL: "debug" };
// The table as it appears in a configuration.
const variable = (name: string): string => `\${${name}}`;
const world = { root: "/project", env };

test("a process gets PATH and the listed variables, and nothing else", () => {
  const settings = toServerSettings("s", { command: "x", env: ["LEVEL"] }, world);
  expect(settings.endpoint).toEqual({
    kind: "process",
    command: "x",
    args: [],
    env: { PATH: "/bin", LEVEL: "debug" },
    cwd: "/project",
  });
  expect(settings).toMatchObject({ connectTimeoutMs: 30_000, listTimeoutMs: 30_000, callTimeoutMs: 120_000 });
});

test("values can contain variables, and the folder is relative to the project", () => {
  const config = {
    command: "x",
    env: { TOKEN: variable("GITHUB_TOKEN"), MODE: `a-${variable("LEVEL")}` },
    cwd: "tools",
    timeout_seconds: 5,
  };
  const settings = toServerSettings("s", config, world);
  expect(settings.endpoint).toMatchObject({
    env: { TOKEN: "ghp_0123456789", MODE: "a-debug" },
    cwd: "/project/tools",
  });
  expect(settings).toMatchObject({ connectTimeoutMs: 5_000, listTimeoutMs: 5_000, callTimeoutMs: 5_000 });
});

test("values with secret names and all variables in headers are masked, other values are not", () => {
  const process = toServerSettings("s", { command: "x", env: ["GITHUB_TOKEN", "LEVEL", "HOME"] }, world);
  expect(process.secrets).toEqual(["ghp_0123456789"]);
  const headers = {
    authorization: `Bearer ${variable("GITHUB_TOKEN")}`,
    "x-level": variable("LEVEL"),
    "x-api-key": "literal-key",
  };
  const { secrets } = toServerSettings("s", { url: "https://example.org/mcp", headers }, world);
  const text = "Bearer ghp_0123456789, debug, literal-key, Z2hwXzAxMjM0NTY3ODk=";
  for (const secret of ["ghp_0123456789", "debug", "literal-key", "Z2hwXzAxMjM0NTY3ODk"]) {
    expect(maskSecrets(text, secrets)).not.toContain(secret);
  }
});

test("a missing variable makes the server unusable, and the fault names it", () => {
  const one = toServerSettings("s", { command: "x", env: ["NONE", "LEVEL"] }, world);
  expect(one.fault).toBe("It needs NONE, which is not set.");
  const headers = { a: `${variable("NONE")} ${variable("OTHER")}` };
  expect(toServerSettings("s", { url: "http://localhost/", headers }, world).fault).toContain(
    "NONE, OTHER, which are not",
  );
  expect(toServerSettings("s", { command: "x", env: ["toString"] }, world).fault).toContain("toString");
});

test("the fault of an invalid header does not show its value", () => {
  const odd = { ...world, env: { TOKEN: "line\nbreak" } };
  const settings = toServerSettings(
    "s",
    { url: "http://localhost/", headers: { a: variable("TOKEN") } },
    odd,
  );
  expect(settings.fault).toBe('The header "a" has characters that a header cannot carry.');
});

test.each([
  ["a b", { command: "x" }, "mcp.servers.a b has a name"],
  ["s", {}, "needs either a command or a url"],
  ["s", { command: "x", url: "http://localhost" }, "needs either a command or a url"],
  ["s", { url: "ftp://localhost" }, "does not begin with http: or https:"],
  ["s", { url: "no address" }, "does not begin with http: or https:"],
  ["s", { url: "http://ann:pass@localhost" }, "has a password in its url"],
  ["s", { url: "http://localhost", args: ["a"] }, "has args"],
  ["s", { url: "http://localhost", env: ["A"] }, "has env"],
  ["s", { command: "x", headers: {} }, "has headers"],
])("the configuration of %j, %j, is refused", (name, config, message) => {
  expect(() => toServerSettings(name, config, world)).toThrow(message);
});
