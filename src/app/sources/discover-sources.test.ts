import { mkdirSync } from "node:fs";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { discoverSources } from "./discover-sources.ts";

async function discover(paths: readonly string[]): ReturnType<typeof discoverSources> {
  await using folder = await createTemporaryRepository(Object.fromEntries(paths.map((path) => [path, ""])));
  return await discoverSources(folder.root);
}

test.each([
  ["src/agents/reviewer.ts", "agent", "reviewer"],
  ["src/agents/team/back-end/reviewer.mts", "agent", "team.back-end.reviewer"],
  ["agents/reviewer.js", "agent", "reviewer"],
  [".agents/reviewer.mjs", "agent", "reviewer"],
  [".kit/agents/team/reviewer.ts", "agent", "team.reviewer"],
  ["src/workflows/summarize.ts", "workflow", "summarize"],
  ["workflows/nightly/report.ts", "workflow", "nightly.report"],
  [".kit/workflows/report.ts", "workflow", "report"],
] as const)("%s is the %s %s", async (path, kind, name) => {
  expect(await discover([path])).toEqual({ sources: [{ kind, name, path }], problems: [] });
});

test.each([
  ["a helper", "src/agents/_shared.ts"],
  ["a file in a folder of helpers", "src/agents/_lib/shared.ts"],
  ["a test", "src/agents/reviewer.test.ts"],
  ["a declaration", "src/agents/reviewer.d.ts"],
  ["another language", "src/agents/reviewer.py"],
  ["JSX", "src/agents/reviewer.tsx"],
  ["a hidden file", "src/agents/.reviewer.ts"],
  ["a skill's script", ".agents/skills/triage/run.ts"],
  ["a file elsewhere", "lib/agents/reviewer.ts"],
])("%s is not an agent", async (_name, path) => {
  expect(await discover([path])).toEqual({ sources: [], problems: [] });
});

test("the newer layout of two files with one name wins, and the other is named", async () => {
  const { sources, problems } = await discover([
    "agents/reviewer.ts",
    "src/agents/reviewer.ts",
    "src/agents/reviewer.mjs",
  ]);
  expect(sources.map(({ path }) => path)).toEqual(["src/agents/reviewer.mjs"]);
  expect(problems).toEqual([
    { path: "src/agents/reviewer.ts", message: 'src/agents/reviewer.mjs has the name "reviewer" already.' },
    { path: "agents/reviewer.ts", message: 'src/agents/reviewer.mjs has the name "reviewer" already.' },
  ]);
});

test("an agent and a workflow may have the same name", async () => {
  const { sources, problems } = await discover(["src/agents/report.ts", "src/workflows/report.ts"]);
  expect(sources).toHaveLength(2);
  expect(problems).toEqual([]);
});

test.each(["src/agents/two words.ts", "src/agents/a&b.ts", `src/agents/${"ü".repeat(70)}.ts`])(
  "%s has a name that no address can carry",
  async (path) => {
    const { sources, problems } = await discover([path]);
    expect(sources).toEqual([]);
    expect(problems[0]?.message).toContain("cannot be a name");
  },
);

test("a folder that is called like a file is a folder", async () => {
  await using folder = await createTemporaryRepository();
  mkdirSync(join(folder.root, "src/agents/reviewer.ts"), { recursive: true });
  expect(await discoverSources(folder.root)).toEqual({ sources: [], problems: [] });
});

test("a file whose name differs from another one's in case only is named", async () => {
  const { sources, problems } = await discover([
    "src/agents/Echo.ts",
    "src/agents/echo.ts",
    "src/workflows/echo.ts",
  ]);
  expect(sources.map(({ path }) => path)).toEqual(["src/agents/Echo.ts", "src/workflows/echo.ts"]);
  expect(problems).toEqual([
    {
      path: "src/agents/echo.ts",
      message: 'src/agents/Echo.ts has the name "echo" already, in another case.',
    },
  ]);
});

test.each(["__proto__", "..\u202ets", "a\u001b[2J", "a\nb"])(
  "src/webhooks/%j.ts is told, and shown without harm",
  async (name) => {
    await using folder = await createTemporaryRepository({
      [`src/webhooks/x${name}.ts`]: "",
      "src/webhooks/a.ts": "",
    });
    const { sources, problems } = await discoverSources(folder.root);
    expect(sources.map((source) => source.name)).toContain("a");
    if (name === "__proto__") return;
    expect(problems).toHaveLength(1);
    expect(problems[0]?.message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  },
);

test("linked agents and workflows are found inside the project; a link out of it is a problem", async () => {
  await using folder = await createTemporaryRepository({ "shared/a.ts": "", "src/agents/b.ts": "" });
  const at = (path: string): string => join(folder.root, path);
  await symlink("../../shared", at("src/agents/team"));
  await symlink("/", at("src/agents/all"));
  await symlink("loop", at("src/agents/loop"));
  await symlink("gone.ts", at("src/agents/c.ts"));
  await symlink("/tmp", at("src/workflows"));
  const { sources, problems } = await discoverSources(folder.root);
  expect(sources.map(({ name }) => name)).toEqual(["b", "team.a"]);
  expect(problems.map(({ message }) => message)).toEqual([
    "src/agents/all leads out of the project.",
    "src/agents/c.ts is a link to a missing file.",
    "src/agents/loop is a link to itself.",
    "src/workflows leads out of the project.",
  ]);
});
