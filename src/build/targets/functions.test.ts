import { mkdirSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import type { KitConfig } from "../../app/config/config-schema.ts";
import { e2b } from "../../sandboxes/e2b/e2b-sandbox.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { testFolder } from "../../testing/test-folder.ts";
import type { Application } from "../application.ts";
import { loadBundler } from "../bundler.ts";
import { netlify } from "./netlify.ts";
import { vercel } from "./vercel.ts";

const root = testFolder(afterAll);

beforeAll(() => {
  mkdirSync(join(root, "node_modules"));
  symlinkSync(join(process.cwd(), "node_modules/pg"), join(root, "node_modules/pg"));
});

/** The part of an application that the targets of functions read. */
function appOf(config: KitConfig, profile: AgentProfile = {}, more: Partial<Application> = {}): Application {
  const part = {
    name: "shop",
    root,
    files: new Map(),
    snapshot: { files: new Map(), modules: [] },
    dependencies: {},
    variables: [],
    agents: [{ name: "a", path: "src/agents/a.ts", profile }],
    loaded: { file: "/nowhere/kit.config.ts", config },
    ...more,
  };
  return part as unknown as Application;
}

const refusals = (config: KitConfig, profile?: AgentProfile): readonly string[] =>
  vercel.problems(appOf(config, profile)).map(({ path, message }) => `${path} ${message}`);

test("a project that needs a disk or a lasting process is refused with the file and the reason", () => {
  expect(refusals({})).toEqual([]);
  expect(refusals({ engine: { kind: "postgres" }, store: "postgres://u:p@h:5432/d" })).toEqual([]);
  const said: readonly (readonly [KitConfig, AgentProfile, RegExp])[] = [
    [{ engine: { kind: "embedded" } }, {}, /^kit\.config\.ts has engine\.kind = "embedded"/],
    [{ engine: { folder: "work" } }, {}, /^kit\.config\.ts has engine\.folder/],
    [{ store: "sqlite" }, {}, /store = "sqlite": sessions in SQLite on a disk/],
    [{ store: "memory" }, {}, /store = "memory": sessions in the memory/],
    [{ mcp: { servers: { files: { command: "files" } } } }, {}, /the MCP server "files", a process/],
    [{}, { sandbox: local() }, /^src\/agents\/a\.ts works in the project's own folder/],
    [{ agent: { sandbox: "local" } }, {}, /works in the project's own folder/],
    [{}, { allowShell: true }, /runs commands in a virtual workspace/],
    [{ agent: { allowed_commands: ["git status"] } }, {}, /runs commands/],
    [{}, { subagents: [{ name: "below", allowedCommands: ["ls"] }] }, /runs commands/],
    [{}, { allowWrite: true }, /writes files in a virtual workspace/],
    [{ agent: { allow_write: true } }, {}, /writes files/],
  ];
  for (const [config, profile, message] of said) {
    const found = refusals(config, profile);
    expect(found, String(message)).toHaveLength(1);
    expect(found[0]).toMatch(message);
  }
  expect(refusals({}, { sandbox: e2b({ apiKey: "k" }), allowWrite: true, allowShell: true })).toEqual([]);
  expect(refusals({ mcp: { servers: { web: { url: "https://mcp.example" } } } })).toEqual([]);
});

test("without the driver of Postgres, the build tells how to install it", () => {
  const [problem] = netlify.problems(appOf({}, {}, { root: tmpdir() }));
  expect(problem).toMatchObject({ path: "package.json", hint: "Run: npm install pg" });
});

const text = (files: ReadonlyMap<string, Uint8Array> | undefined, path: string): string =>
  Buffer.from(files?.get(path) ?? new Uint8Array()).toString("utf8");

test("the output for Vercel follows its Build Output API, with the configured time limit", async () => {
  const { files } = (await vercel.bundle?.(appOf({ build: { max_seconds: 800 } }))) ?? {};
  expect(JSON.parse(text(files, "config.json"))).toEqual({
    version: 3,
    routes: [{ src: "/(.*)", dest: "/index" }],
    crons: [{ path: "/_kit/work", schedule: "* * * * *" }],
  });
  expect(JSON.parse(text(files, "functions/index.func/.vc-config.json"))).toEqual({
    runtime: "nodejs24.x",
    handler: "index.mjs",
    launcherType: "Nodejs",
    shouldAddHelpers: false,
    supportsResponseStreaming: true,
    maxDuration: 800,
  });
  expect(files?.has("functions/index.func/node_modules/pg/package.json")).toBe(true);
  expect(files?.has("functions/index.func/node_modules/pg-protocol/package.json")).toBe(true);
});

test("names of files and modules become string values of the generated module, whatever characters they have", async () => {
  const { parseAst } = await loadBundler();
  const hostile = fc.string({
    unit: fc.constantFrom("'", '"', "`", "\\", "\n", "\u2028", "${", "}", "*/", "//", ";", "a", "</script>"),
  });
  const shape = async (name: string, path: string): Promise<unknown> => {
    const app = appOf(
      {},
      {},
      {
        name,
        snapshot: { files: new Map([[path, new Uint8Array()]]), modules: [`${path}.ts`] },
      },
    );
    const code = text((await netlify.bundle?.(app))?.files, "server/application.mjs");
    const literals: unknown[] = [];
    const kinds: string[] = [];
    JSON.stringify(parseAst(code), (_, value) => {
      if (value?.type === "Literal") literals.push(value.value);
      else if (typeof value?.type === "string") kinds.push(value.type);
      return value;
    });
    expect(literals).toEqual(expect.arrayContaining([name, path, `${path}.ts`]));
    return kinds;
  };
  const plain = await shape("shop", "docs/a.md");
  await fc.assert(
    fc.asyncProperty(hostile, hostile, async (name, path) => {
      expect(await shape(`x${name}`, `x${path}`)).toEqual(plain);
    }),
    { numRuns: 25 },
  );
});
