import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openTestApp } from "../../testing/test-app.ts";

const files = {
  "AGENTS.md": "# Shop\n\n## House\n\nBe brief.\n",
  "CLAUDE.md": "@AGENTS.md\n",
  ".cursor/rules/api.mdc": "---\nglobs: packages/api/**/*.ts\n---\nCHECK-EVERY-INPUT\n",
  ".cursor/rules/web.mdc": "---\nglobs: web/**/*.ts\n---\nNO-INLINE-STYLES\n",
  "packages/api/AGENTS.md": "## Api\n\nANSWER-IN-JSON\n",
  "packages/api/src/a.ts": "export {};\n",
  "packages/api/src/b.ts": "export {};\n",
  "web/c.ts": "export {};\n",
  ".kiro/specs/pay/requirements.md":
    "# Requirements\n\n### Requirement 1: Receipts\n\nWHEN a guest pays THEN the system SHALL send a receipt\n",
};

/** A project in a folder of its own, whose model follows a script and notes what it was told. */
async function open(
  script: Script,
  profile: AgentProfile | ((root: string) => AgentProfile) = {},
  tree: Readonly<Record<string, string>> = files,
) {
  const repository = await createTemporaryRepository(tree);
  const received: string[] = [];
  const offered: string[][] = [];
  const model = createScriptedModel((call, index) => {
    received.push(JSON.stringify(call.prompt));
    offered.push((call.tools ?? []).map(({ name }) => name));
    return typeof script === "function" ? script(call, index) : (script[index] ?? { text: "Done." });
  });
  const { root } = repository;
  const defaults = typeof profile === "function" ? profile(root) : profile;
  const app = await openTestApp({ root, model, sandbox: local({ root }), defaults });
  onTestFinished(async () => {
    await app.close();
    await repository[Symbol.asyncDispose]();
  });
  const session = (await app.instance("default", "1")).session();
  return { session, received, offered, root };
}

const read = (path: string, id = "c") => ({ toolCalls: [{ id, name: "read", input: { path } }] });

test("a session's own workspace holds the current files of the skills in the prompt", async () => {
  const skill = (text: string): string => `---\nname: triage\ndescription: Sorts.\n---\n\n${text}\n`;
  const tree = {
    ...files,
    ".agents/skills/triage/SKILL.md": skill("SORT-BY-DATE"),
    ".agents/skills/triage/labels/all.md": "LABELS-OF-OURS\n",
  };
  const paths = [".agents/skills/triage/SKILL.md", ".agents/skills/triage/labels/all.md"] as const;
  const script = [read(paths[0], "a"), read(paths[1], "b"), { text: "Read." }];
  const { session, received, root } = await open(
    script,
    (place) => ({ sandbox: virtual({ root: place }) }),
    tree,
  );
  await session.prompt("Sort.");
  expect(received[0]).toContain(paths[0]);
  expect(received[1]).toContain("SORT-BY-DATE");
  expect(received[2]).toContain("LABELS-OF-OURS");
  await writeFile(join(root, paths[0]), skill("SORT-BY-NAME"));
  const owner = {
    agent: "default",
    instance_id: "1",
    session: "default",
    project_root: root,
    skill_folders: [".agents/skills/triage"],
  };
  const again = await virtual({ root }).open(owner);
  expect(await again.readFile(paths[0])).toContain("SORT-BY-NAME");
  await again.close();
});

function times(text: string | undefined, word: string): number {
  return (text ?? "").split(word).length - 1;
}

test("the model gets the guidelines of a file when a tool first touches it, once per session", async () => {
  const { session, received } = await open([
    read("packages/api/src/a.ts"),
    read("packages/api/src/b.ts"),
    read("web/c.ts"),
    { text: "First." },
    read("packages/api/src/a.ts"),
    { text: "Second." },
  ]);
  await session.prompt("Look.");
  expect(received.slice(0, 4).map((reported) => times(reported, "CHECK-EVERY-INPUT"))).toEqual([0, 1, 1, 1]);
  expect(received.slice(0, 4).map((reported) => times(reported, "NO-INLINE-STYLES"))).toEqual([0, 0, 0, 1]);
  await session.prompt("Again.");
  expect(times(received.at(-1), "CHECK-EVERY-INPUT")).toBe(1);
  const history = await session.history();
  expect(
    history.filter((message) => message.role === "user" && message.source === "guidelines"),
  ).toHaveLength(2);
});

test("the guidelines of a file are shown again after a compaction has removed them", async () => {
  const { session, received } = await open(
    ({ prompt }, index) => {
      if (JSON.stringify(prompt[0]).includes("a colleague needs")) return { text: "SUMMARY" };
      return index === 0 || index === 3 ? read("web/c.ts", `c${index}`) : { text: "Done." };
    },
    { compaction: { keepRecentTokens: 1 } },
  );
  await session.prompt("Look.");
  expect(await session.compact()).toBe(true);
  await session.prompt("Look again.");
  expect(times(received.at(-1), "SUMMARY")).toBeGreaterThan(0);
  expect(times(received.at(-1), "NO-INLINE-STYLES")).toBe(1);
});

test("in a working folder below the root, the paths of tools have the same guidelines", async () => {
  const { session, received } = await open([read("src/a.ts")], { cwd: "packages/api" });
  await session.prompt("Look.");
  expect(received.map((reported) => times(reported, "CHECK-EVERY-INPUT"))).toEqual([0, 1]);
  expect(times(received[1], "NO-INLINE-STYLES")).toBe(0);
  // The tools about guidelines do not know of the folder, and their paths are told to start elsewhere.
  expect(received[0]).toContain("Paths of files and commands start in `packages/api`.");
});

test("a task in a folder has its working folder in the prompt; a task at the root does not", async () => {
  const { session, received } = await open([{ text: "Done." }, { text: "Done." }]);
  await session.prompt("Look.");
  await session.task("Look there.", { cwd: "packages/api" });
  expect(received.map((reported) => reported.includes("start in `packages/api`"))).toEqual([false, true]);
});

test("in a sandbox inside or outside of the project, guidelines apply to the files behind the paths", async () => {
  const script = [read("src/a.ts"), read("AGENTS.md", "d")];
  const part = await open(script, (root) => ({ sandbox: local({ root: `${root}/packages/api` }) }));
  await part.session.prompt("Look.");
  expect(part.received.map((reported) => times(reported, "CHECK-EVERY-INPUT"))).toEqual([0, 1, 1]);
  const other = await createTemporaryRepository({ "web/c.ts": "export {};\n" });
  onTestFinished(() => other[Symbol.asyncDispose]());
  const strange = await open([read("web/c.ts")], { sandbox: local({ root: other.root }) });
  await strange.session.prompt("Look.");
  expect(times(strange.received[1], "NO-INLINE-STYLES")).toBe(0);
});

test("the instructions of the project and of the working folder are in the system prompt, each once", async () => {
  const { session, received } = await open([{ text: "Done." }], { cwd: "packages/api" });
  await session.prompt("Hello.");
  expect(times(received[0], "Be brief.")).toBe(1);
  expect(times(received[0], "ANSWER-IN-JSON")).toBe(1);
  expect(received[0]).not.toContain("@AGENTS.md");
});

test("instructions that only the workspace has are in the prompt, too", async () => {
  const workspaceFiles = { "AGENTS.md": "OF-THE-WORKSPACE\n" };
  const { session, received } = await open([{ text: "Done." }], (root) => ({
    sandbox: virtual({ root, files: workspaceFiles }),
  }));
  await session.prompt("Hello.");
  expect(received[0]).toContain("OF-THE-WORKSPACE");
  expect(received[0]).toContain("Be brief.");
});

test("specs and guidelines are available as tools about this project", async () => {
  const { session, received, offered } = await open([
    {
      toolCalls: [
        { id: "1", name: "spec_search", input: { q: "receipt" } },
        { id: "2", name: "spec_impact", input: { files: ["web/c.ts"] } },
        { id: "3", name: "guidelines_for", input: { file: "web/c.ts" } },
      ],
    },
  ]);
  await session.prompt("Look.");
  expect(offered[0]).toEqual(expect.arrayContaining(["spec_search", "spec_impact", "guidelines_for"]));
  expect(received[1]).toContain(".kiro/specs/pay/requirements.md:3");
  expect(received[1]).toContain("NO-INLINE-STYLES");
});

test("in a project without guidelines, the model sees the samples only through a tool, not as rules", async () => {
  const ask = { toolCalls: [{ id: "2", name: "guidelines_for", input: { file: "c.ts" } }] };
  const { session, received } = await open([read("c.ts"), ask], {}, { "c.ts": "export {};\n" });
  await session.prompt("Look.");
  expect(received[1]).not.toContain("Guidelines of this repository");
  expect(received[2]).toContain("This repository has no guidelines. The following are samples");
});

test("specs, guidelines and instructions can be switched off", async () => {
  const off = { specs: false, guidelines: false, projectInstructions: false };
  const { session, received, offered } = await open([read("web/c.ts")], off);
  await session.prompt("Look.");
  expect(offered[0]).toContain("read");
  for (const name of ["spec_search", "spec_impact", "guidelines_for"]) expect(offered[0]).not.toContain(name);
  expect(received[1]).not.toContain("NO-INLINE-STYLES");
  expect(received[0]).not.toContain("Be brief.");
});

test("long instructions and guidelines are cut between characters", async () => {
  const emoji = "\u{1F600}".repeat(40_000);
  const folder = await createTemporaryRepository({
    "AGENTS.md": `a${emoji}`,
    ".cursor/rules/api.mdc": `---\nglobs: api.ts\n---\na${emoji}`,
    "api.ts": "",
  });
  const received: string[] = [];
  const model = createScriptedModel(({ prompt }) => {
    received.push(JSON.stringify(prompt));
    return received.length === 1 ? read("api.ts") : { text: "Done." };
  });
  const app = await openTestApp({ root: folder.root, model, sandbox: local({ root: folder.root }) });
  onTestFinished(async () => {
    await app.close();
    await folder[Symbol.asyncDispose]();
  });
  await (await app.instance("default", "1")).session().prompt("Look.");
  expect(received[0]).toContain("[cut]");
  expect(received[1]).toContain("[cut: guidelines_for has the whole]");
  // JSON escapes one half of a surrogate pair, which is not a character.
  expect(received[1]).not.toMatch(/\\ud[89a-f]/i);
});
