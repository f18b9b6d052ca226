import { existsSync } from "node:fs";
import { cp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import type { Session } from "../../agents/session/session.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Sandbox, SandboxFactory, SandboxOwner } from "../../sandboxes/contract.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { openTestApp } from "../../testing/test-app.ts";

const service = {
  "AGENTS.md": "# Service\n\nRULE-OF-THE-SERVICE\n",
  ".cursor/rules/all.mdc": "---\nglobs: src/**/*.ts\n---\nGUIDELINE-OF-THE-SERVICE\n",
  "src/a.ts": "export {};\n",
  ".kiro/specs/serve/requirements.md":
    "# Requirements\n\n### Requirement 1: Refunds\n\nWHEN a guest returns THEN the system SHALL refund\n",
};

const shop = {
  "AGENTS.md": "# Shop\n\nRULE-OF-THE-SHOP\n",
  "packages/api/AGENTS.md": "RULE-OF-THE-API\n",
  "packages/api/src/b.ts": "export {};\n",
  ".cursor/rules/all.mdc": "---\nglobs: src/**/*.ts\n---\nGUIDELINE-OF-THE-SHOP\n",
  "src/a.ts": "export {};\n",
  ".kiro/specs/pay/requirements.md":
    "# Requirements\n\n### Requirement 1: Receipts\n\nWHEN a guest pays THEN the system SHALL send a receipt\n",
};

async function repository(files: Readonly<Record<string, string>>): Promise<TemporaryRepository> {
  const made = await createTemporaryRepository(files);
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

/** Each instance works in the clone of its name. */
function inCloneOfInstance(folder: string): SandboxFactory {
  const clone = ({ instance_id }: SandboxOwner): SandboxFactory => local({ root: join(folder, instance_id) });
  return {
    name: "clone",
    open: (owner) => clone(owner).open(owner),
    locate: (owner) => clone(owner).locate?.(owner),
  };
}

/** Clones of the shop below one folder, and the service's project, whose model notes what it is told. */
async function open(script: Script, clones: readonly string[] = ["one"], profile: AgentProfile = {}) {
  const origin = await repository(shop);
  await origin.init();
  await origin.commit("Begin", 1_700_000_000);
  await origin.write("src/a.ts", "export const paid = true; // .kiro/specs/pay/requirements.md\n");
  await origin.commit("Pay", 1_700_000_100);
  const folder = await repository({});
  for (const name of clones) await cp(origin.root, join(folder.root, name), { recursive: true });
  const project = await repository(service);
  const received: string[] = [];
  const offered: (readonly string[])[] = [];
  const model = createScriptedModel((call, index) => {
    received.push(JSON.stringify(call.prompt));
    offered.push((call.tools ?? []).map(({ name }) => name));
    return typeof script === "function" ? script(call, index) : (script[index] ?? { text: "Done." });
  });
  const store = new InMemorySessionStore();
  const starts: Extract<KitEvent, { type: "operation_start" }>[] = [];
  const app = await openTestApp({
    root: project.root,
    model,
    store,
    sandbox: inCloneOfInstance(folder.root),
    defaults: profile,
  });
  onTestFinished(() => app.close());
  app.onEvent((event) => event.type === "operation_start" && starts.push(event));
  const session = async (id: string): Promise<Session> => (await app.instance("default", id)).session();
  return { session, received, offered, folder, project, store, starts };
}

const read = (path: string, id = "c") => ({ toolCalls: [{ id, name: "read", input: { path } }] });

test("an agent in a clone of another repository gets the rules, specs and history of the clone", async () => {
  const { session, received } = await open([
    read("src/a.ts"),
    {
      toolCalls: [
        { id: "1", name: "spec_search", input: { q: "receipt" } },
        { id: "2", name: "spec_search", input: { q: "refund" } },
        { id: "3", name: "spec_impact", input: { since: "HEAD~1" } },
        { id: "4", name: "guidelines_for", input: { file: "src/a.ts" } },
      ],
    },
  ]);
  await (await session("one")).prompt("Review.");
  expect(received[0]).toContain("RULE-OF-THE-SHOP");
  expect(received[1]).toContain("GUIDELINE-OF-THE-SHOP");
  expect(received[2]).toContain(".kiro/specs/pay/requirements.md:3");
  expect(received[2]).toContain("src/a.ts");
  expect(received[2]).not.toContain(".kiro/specs/serve");
  expect(received.join()).not.toMatch(/(RULE|GUIDELINE)-OF-THE-SERVICE/);
});

test("instances in two clones get the rules of their clone, also changes during a session", async () => {
  const { session, received, folder } = await open(
    ({ prompt }) =>
      prompt.at(-1)?.role === "user" ? read("src/a.ts", `c${prompt.length}`) : { text: "Ok." },
    ["one", "two"],
  );
  await folder.write("two/AGENTS.md", "RULE-OF-TWO\n");
  await folder.write("two/.cursor/rules/all.mdc", "---\nglobs: src/**/*.ts\n---\nGUIDELINE-OF-TWO\n");
  const [one, two] = [await session("one"), await session("two")];
  await Promise.all([one.prompt("Review."), two.prompt("Review.")]);
  const reported = received.filter((text) => text.includes("RULE-OF-THE-SHOP"));
  expect(reported.join()).toContain("GUIDELINE-OF-THE-SHOP");
  expect(reported.join()).not.toContain("OF-TWO");
  const others = received.filter((text) => text.includes("RULE-OF-TWO"));
  expect(others.join()).toContain("GUIDELINE-OF-TWO");
  expect(others.join()).not.toContain("OF-THE-SHOP");
  await folder.write("one/AGENTS.md", "CHANGED-RULE\n");
  await folder.write("one/.cursor/rules/new.mdc", "---\nglobs: src/**/*.ts\n---\nNEW-GUIDELINE\n");
  received.length = 0;
  await one.prompt("Once more.");
  // The beginning of the prompt stays as it is, and what has changed is told behind the history.
  expect(received[0]).toMatch(/RULE-OF-THE-SHOP.*This replaces what was said.*CHANGED-RULE/);
  expect(received[1]).toContain("NEW-GUIDELINE");
  // A clone that takes the place of another one is that other one from then on.
  await rename(join(folder.root, "one"), join(folder.root, "old"));
  await rename(join(folder.root, "two"), join(folder.root, "one"));
  received.length = 0;
  await one.prompt("And now?");
  expect(received[0]).toContain("RULE-OF-TWO");
});

test("kit writes nothing to the clone, and runs no code of its configuration", async () => {
  const { session, received, folder } = await open([read("src/a.ts")]);
  await folder.write("one/kit.config.ts", `import "node:fs"; globalThis.wasRun = true; export default {};\n`);
  await (await session("one")).prompt("Review.");
  expect(received[1]).toContain("GUIDELINE-OF-THE-SHOP");
  expect(existsSync(join(folder.root, "one/.kit"))).toBe(false);
  expect("wasRun" in globalThis).toBe(false);
});

test("paths that a clone's kit.toml leaves out are left out", async () => {
  const { session, received, folder } = await open([read("src/a.ts")]);
  await folder.write("one/kit.toml", '[guidelines]\nexclude = [".cursor/**"]\n');
  await (await session("one")).prompt("Review.");
  expect(received[1]).not.toContain("GUIDELINE-OF-THE-SHOP");
});

test("a workspace inside a repository has that repository's rules, with paths of the workspace", async () => {
  const { session, received } = await open([
    read("src/b.ts"),
    { toolCalls: [{ id: "1", name: "guidelines_for", input: { file: "packages/api/src/b.ts" } }] },
  ]);
  await (await session("one/packages/api")).prompt("Review.");
  expect(received[0]).toContain("RULE-OF-THE-SHOP");
  expect(received[0]).toContain("RULE-OF-THE-API");
  expect(received[0]).toContain("Paths of files and commands start in `packages/api`.");
  expect(received[2]).toContain("RULE-OF-THE-API");
});

test("a repository inside the project has its own rules, and a plain folder those of the project", async () => {
  const inside = await repository({
    ...service,
    "work/tree/AGENTS.md": "RULE-OF-THE-TREE\n",
    "plain/x.ts": "",
  });
  await inside.write("work/tree/.git", "gitdir: elsewhere\n");
  const received: string[] = [];
  const model = createScriptedModel(({ prompt }) => {
    received.push(JSON.stringify(prompt));
    return { text: "Done." };
  });
  for (const [folderName, rule] of [
    ["work/tree", "RULE-OF-THE-TREE"],
    ["plain", "RULE-OF-THE-SERVICE"],
    ["", "RULE-OF-THE-SERVICE"],
    ["..", "RULE-OF-THE-SERVICE"],
  ] as const) {
    const app = await openTestApp({
      root: inside.root,
      model,
      sandbox: local({ root: join(inside.root, folderName) }),
    });
    await (await app.instance("default", "1")).session().prompt("Hello.");
    await app.close();
    expect([folderName, received.at(-1)?.match(/RULE-OF-[A-Z-]+/g)]).toEqual([folderName, [rule]]);
  }
});

test("a task works in its parent's repository, in its own working folder", async () => {
  const { session, received } = await open([]);
  await (await session("one")).task("Look there.", { cwd: "packages/api" });
  expect(received[0]).toContain("RULE-OF-THE-SHOP");
  expect(received[0]).toContain("RULE-OF-THE-API");
});

test("a session that creates a repository in its workspace works in that repository", async () => {
  const { session, received, folder, project } = await open([], ["one"], {
    sandbox: virtual({ folder: join((await repository({})).root, "all") }),
  });
  const own = await session("1");
  await own.prompt("Hello.");
  expect(received[0]).toContain("RULE-OF-THE-SERVICE");
  const files = await own.fs();
  const { stdout } = await files.exec({ command: ["pwd"] });
  await cp(join(folder.root, "one"), stdout.trim(), { recursive: true });
  await own.prompt("And now?");
  expect(received[1]).toMatch(/RULE-OF-THE-SERVICE.*This replaces what was said.*RULE-OF-THE-SHOP/);
  expect(project.root).not.toBe(folder.root);
});

test("a remote sandbox has instructions but no index, and the prompt says so", async () => {
  const clone = await repository({ ...shop });
  const inner = local({ root: clone.root });
  const remote: SandboxFactory = {
    name: "remote",
    async open(owner) {
      const { hostRoot: _, ...sandbox }: Sandbox = await inner.open(owner);
      return sandbox;
    },
  };
  const { session, received, offered } = await open([read("src/a.ts")], [], { sandbox: remote });
  await (await session("1")).prompt("Review.");
  expect(received[0]).toContain("RULE-OF-THE-SHOP");
  expect(received[0]).toContain("specs and guidelines cannot be looked up");
  for (const name of ["spec_search", "spec_impact", "guidelines_for"]) expect(offered[0]).not.toContain(name);
  expect(offered[0]).toContain("read");
  expect(received.join()).not.toMatch(/OF-THE-SERVICE/);
});

test("an agent's own tool can have the name of a spec tool, in every repository", async () => {
  const toolCalls: string[] = [];
  const tool = {
    name: "spec_search",
    description: "Mine.",
    input: { type: "object", properties: {} },
    execute: () => {
      toolCalls.push("mine");
      return "mine";
    },
  };
  const { session, received } = await open(
    [{ toolCalls: [{ id: "1", name: "spec_search", input: {} }] }],
    ["one"],
    { tools: [tool] },
  );
  await (await session("one")).prompt("Review.");
  expect(toolCalls).toEqual(["mine"]);
  expect(received[1]).toContain("mine");
});

test("a workspace is created when a tool first needs it, not for a prompt alone", async () => {
  const folder = (await repository({})).root;
  const { session } = await open([{ text: "Hello." }, read("missing.txt")], [], {
    sandbox: virtual({ folder }),
  });
  const own = await session("1");
  await own.prompt("Hello.");
  expect(await own.abort()).toBe(false);
  expect(await readdir(folder)).toEqual([]);
  await own.prompt("Look.");
  expect(await readdir(folder)).toHaveLength(1);
});

test("the first entry and the start of an operation say the commit of the repository in which it works", async () => {
  const { session, folder, store, starts } = await open([read("src/a.ts")], ["one", "two"]);
  const own = async (...args: readonly string[]): Promise<string> => folder.git("-C", "two", ...args);
  const first = await own("rev-parse", "HEAD");
  await own("checkout", "--quiet", "HEAD~1");
  const before = await own("rev-parse", "HEAD");
  for (const [id, commit] of [
    ["one", first],
    ["two", before],
  ] as const) {
    await (await session(id)).prompt("Review.");
    await (await session(id)).prompt("Again.");
    const ofInstance = starts.filter(({ instance_id }) => instance_id === id);
    expect(ofInstance.map(({ repository }) => repository)).toEqual([{ commit }, { commit }]);
    const entries = await store.read({ agent: "default", instance_id: id, session: "default" }, 0);
    const owned = entries.filter(({ operation_id }) => operation_id !== undefined);
    const operations = [...Map.groupBy(owned, ({ operation_id }) => operation_id).values()];
    expect(operations.map(([entry]) => entry?.repository)).toEqual([{ commit }, { commit }]);
    expect(operations.flatMap((all) => all.slice(1)).filter((entry) => "repository" in entry)).toEqual([]);
  }
  // Outside of Git there is none.
  await rm(join(folder.root, "one/.git"), { recursive: true });
  await (await session("one")).prompt("And now?");
  expect(starts.at(-1)).not.toHaveProperty("repository");
});
