// biome-ignore-all lint/suspicious/noTemplateCurlyInString: settings write variables in this form
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ToolTarget, toolTargets } from "../../protocol/enums.ts";
import { readServers, renderServer } from "./mcp-servers.ts";

const kit = (server: object) => readServers("kit", { s: server });
const rendered = (target: ToolTarget, server: object): unknown => {
  const [read] = kit(server).servers;
  return read === undefined ? undefined : renderServer(target, read);
};

const remote = {
  url: "https://example.org/mcp",
  headers: { Authorization: "Bearer ${TOKEN}", "X-Id": "${ID}", "X-Plain": "shop" },
};
const local = {
  command: "npx",
  args: ["-y", "server"],
  env: { HOME: "${HOME}", LEVEL: "debug" },
  cwd: "tools",
};

test("each tool gets variables in its own form, and none is replaced", () => {
  process.env.TOKEN = "never-written";
  expect(toolTargets.map((target) => rendered(target, remote))).toEqual([
    { type: "http", ...remote },
    remote,
    {
      url: remote.url,
      bearer_token_env_var: "TOKEN",
      env_http_headers: { "X-Id": "ID" },
      http_headers: { "X-Plain": "shop" },
    },
    "has a url, and Junie starts servers as processes only.",
    {
      url: remote.url,
      headers: { Authorization: "Bearer ${env:TOKEN}", "X-Id": "${env:ID}", "X-Plain": "shop" },
    },
    {
      type: "http",
      url: remote.url,
      headers: { Authorization: "Bearer ${env:TOKEN}", "X-Id": "${env:ID}", "X-Plain": "shop" },
    },
  ]);
  delete process.env.TOKEN;
  expect(rendered("copilot", local)).toEqual({
    type: "stdio",
    ...local,
    env: { HOME: "${env:HOME}", LEVEL: "debug" },
    cwd: "${workspaceFolder}/tools",
  });
  expect(rendered("copilot", { command: "x", cwd: "/srv/tools" })).toMatchObject({ cwd: "/srv/tools" });
  expect(rendered("codex", { ...local, cwd: "." })).toEqual({
    ...{ command: "npx", args: ["-y", "server"], env: { LEVEL: "debug" }, env_vars: ["HOME"] },
  });
  expect(rendered("fw_c", local)).toBe("needs a cwd, which Claude Code does not document.");
  expect(rendered("codex", { command: "x", env: { A: "${B}" } })).toContain("gives env.A another variable");
  expect(rendered("codex", { url: remote.url, headers: { A: "x ${B}" } })).toContain(
    "mixes a variable and text",
  );
  expect(rendered("junie", { command: "x", env: ["HOME"] })).toContain("where Junie replaces none");
});

const secret = `sk-${"a1".repeat(12)}`;

test.each([
  ["env.API_TOKEN", { command: "x", env: { API_TOKEN: "abcdefghijkl" } }],
  ["env.ANY", { command: "x", env: { ANY: secret } }],
  ["headers.Authorization", { url: "https://a.example/", headers: { Authorization: "Bearer abcdefghijkl" } }],
  ["args[1]", { command: "x", args: ["--api-key", "abcdefghijkl"] }],
  ["args[0]", { command: "x", args: ["--token=abcdefghijkl"] }],
  ["args[0]", { command: "x", args: [secret] }],
  ["url", { url: "https://user:pw@a.example/" }],
  ["url", { url: "https://a.example/?api_key=abcdefghijkl" }],
  ["url", { url: `https://ghp_${"a1".repeat(12)}@a.example/` }],
  ["url", { url: "https:abcdefghijkl@a.example" }],
  ["env.DATABASE", { command: "x", env: { DATABASE: "postgres://app:hunter2@db/x" } }],
  ["env.DATABASE", { command: "x", env: { DATABASE: "postgres://app:hun/ter2@db/x" } }],
  ["args[0]", { command: "x", args: ["redis://:hunter2@db"] }],
  ["command", { command: "run redis://:hunter2@db" }],
  ["cwd", { command: "x", cwd: secret }],
  ["env.CERT", { command: "x", env: { CERT: "cert\n-----BEGIN RSA PRIVATE KEY-----\nabcdefghijkl1" } }],
  ["env.PGPASSWORD", { command: "x", env: { PGPASSWORD: "hunter2" } }],
  ["env.OPTS", { command: "x", env: { OPTS: `{"token":"ghp_${"a1".repeat(12)}"}` } }],
])("a secret in %s is refused with its place, and never printed", (place, server) => {
  const { servers, leftOut } = kit(server);
  expect(servers).toEqual([]);
  expect(leftOut).toEqual([
    expect.stringContaining(`mcp.servers.s has a value in ${place} that looks like a secret`),
  ]);
  expect(leftOut.join()).not.toMatch(/abcdefghijkl|a1a1|pw|hunter2|ter2/);
});

test.each([
  { command: "x", env: { TOKEN_FILE: "/run/secrets/token", AUTH: "none", KEY: "/etc/key.pem" } },
  { command: "x", args: ["--token", "--verbose-output", "tokenizer-model"] },
  { url: "https://a.example/${ID}", headers: { "X-Api-Key": "${API_KEY}" } },
  { command: "x", env: { DB: "postgres://app:${PASSWORD}@db/x", AT: "http://localhost:8080/@scope/x" } },
])("%j holds no secret", (server) => {
  expect(kit(server).leftOut.join()).not.toContain("secret");
});

test("an address whose parts are variables is carried, and refused with a secret beside them", () => {
  const read = (url: string) => readServers("fw_c", { s: { url } }).leftOut.join();
  expect(read("https://${USER}:${PASSWORD}@a.example:${PORT}/?key=${KEY}")).toBe("");
  for (const url of ["abcdefghijkl@a.example:${PORT}/", "a.example:${PORT}/?api_key=abcdefghijkl"])
    expect(read(`https://${url}`)).toContain("has a value in url that looks like a secret");
});

test.each<[Parameters<typeof readServers>[0], unknown, string]>([
  ["copilot", { url: "u", headers: { A: "${input:token}" } }, "is no variable of the environment there"],
  ["fw_c", { command: "x", env: { A: "${B:-secret}" } }, "is no variable of the environment there"],
  ["fw_b", { command: "x", env: { A: "${B}" } }, "is no variable of the environment there"],
  ["kit", { command: "x", args: ["${B}"] }, "has a ${…} in args"],
  ["junie", { command: "x", env: { A: "${B}" } }, "is no variable"],
  ["codex", { command: "x", env: { A: "${B}" } }, "which Codex does not replace"],
  ["codex", { command: "x", env_vars: [{ name: "A", source: "remote" }] }, "in a form that is not carried"],
  ["codex", { command: "x", cwd: "/srv" }, "has a cwd"],
  ["steering", { command: "x", disabled: true }, "is switched off there"],
  ["codex", { command: "x", enabled: false }, "is switched off there"],
  ["fw_c", { type: "sse", url: "u" }, "has a type that not every tool knows"],
  ["fw_c", { command: "x", url: "u" }, "needs either a command or a url"],
  ["fw_c", { command: 1 }, "something else than a text in command"],
  ["fw_c", { command: "x", args: "y" }, "args that are not a list"],
  ["fw_c", { command: "x", env: [1, {}] }, "is no variable"],
  ["fw_c", "x", "is not a table of settings"],
])("%s: %j is left out, because it %s", (source, server, why) => {
  const { servers, leftOut } = readServers(source, { s: server });
  expect([servers, leftOut]).toEqual([[], [expect.stringContaining(why)]]);
  expect(leftOut.join()).not.toContain("secret");
});

test.each(["__proto__", "../x", "a\nb", "", "x".repeat(65)])("a server named %j is not carried", (name) => {
  const { servers, leftOut } = readServers("fw_c", Object.fromEntries([[name, { command: "x" }]]));
  expect([servers.length, leftOut.length]).toEqual([0, 1]);
});

const name = fc.stringMatching(/^[A-Z][A-Z_]{0,6}$/).filter((each) => !/KEY|PAT|PWD|DSN|JWT|PASS/.test(each));
const plain = fc.string({ maxLength: 7 }).filter((text) => !text.includes("$"));
const server = fc.record({
  command: fc.constantFrom("npx", "uvx"),
  args: fc.array(plain, { minLength: 1, maxLength: 3 }),
  env: fc.dictionary(name, plain, { minKeys: 1, maxKeys: 3 }),
  passed: fc.uniqueArray(name, { maxLength: 2 }),
});

test("the settings of a tool read back as the same server", () => {
  fc.assert(
    fc.property(server, fc.constantFrom(...toolTargets), ({ passed, ...written }, target) => {
      const env = { ...written.env, ...Object.fromEntries(passed.map((each) => [each, `\${${each}}`])) };
      const { servers } = kit({ ...written, env });
      const [first] = servers;
      if (first === undefined) throw new Error("left out");
      const entry = renderServer(target, first);
      if (typeof entry === "string") expect([target, passed.length > 0]).toEqual(["junie", true]);
      else
        expect(readServers(target, { s: entry })).toEqual({ servers: [{ ...first, left: [] }], leftOut: [] });
    }),
    { numRuns: 500 },
  );
});
