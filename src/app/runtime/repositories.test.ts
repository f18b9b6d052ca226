import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import {
  createProjectContext,
  createRepositories,
  type IdleIndexes,
  type Repositories,
} from "./repositories.ts";

async function open(count: number, limits?: IdleIndexes) {
  const folder = await createTemporaryRepository({});
  const roots: string[] = [];
  for (let index = 0; index < count; index += 1) {
    await folder.write(`clone-${index}/AGENTS.md`, `RULE-${index}\n`);
    roots.push(join(folder.root, `clone-${index}`));
  }
  await folder.write("own/AGENTS.md", "RULE-OF-THE-PROJECT\n");
  const own = await openProject({ root: join(folder.root, "own"), indexFile: ":memory:" });
  const repositories = createRepositories(own, limits);
  onTestFinished(async () => {
    await repositories.close();
    await own.close();
    await folder[Symbol.asyncDispose]();
  });
  return { repositories, roots, own, folder };
}

const ruleOf = (repositories: Repositories, root: string): Promise<string | undefined> =>
  repositories.use(root, ({ guidelines }) => guidelines.explain("a.ts").applied[0]?.guideline.content);

/** How many indexes this process holds open. */
function heldIndexes(): number {
  const openFiles = readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)];
    } catch {
      return [];
    }
  });
  return new Set(openFiles.filter((path) => path.includes("kit-index-") && path.endsWith("index.db"))).size;
}

const onLinux = test.skipIf(process.platform !== "linux");

test("callers of one root share its index, and each root has its own", async () => {
  const { repositories, roots, own } = await open(2);
  const [first = "", second = ""] = roots;
  const seen = await Promise.all(
    [first, first, second].map((root) => repositories.use(root, (project) => project)),
  );
  expect(seen[0]).toBe(seen[1]);
  expect(seen[2]).not.toBe(seen[0]);
  expect(await ruleOf(repositories, first)).toContain("RULE-0");
  expect(await repositories.use(own.root, (project) => project)).toBe(own);
});

onLinux("an index is closed after a while without questions, and opened again for the next one", async () => {
  const before = heldIndexes();
  const { repositories, roots } = await open(1, { idleMs: 40 });
  const [root = ""] = roots;
  expect(await ruleOf(repositories, root)).toContain("RULE-0");
  expect(heldIndexes()).toBeGreaterThan(before + 1);
  await expect.poll(heldIndexes).toBe(before + 1);
  expect(await ruleOf(repositories, root)).toContain("RULE-0");
});

onLinux("however many clones there are, only those asked last are held open", async () => {
  const { repositories, roots } = await open(12, { maxIdle: 2 });
  const before = heldIndexes();
  for (const [index, root] of roots.entries()) {
    expect(await ruleOf(repositories, root)).toContain(`RULE-${index}`);
  }
  await expect.poll(heldIndexes).toBeLessThanOrEqual(before + 2);
});

onLinux("an index that is answering a question is not closed", async () => {
  const { repositories, roots } = await open(3, { idleMs: 20, maxIdle: 0 });
  const [first = "", second = ""] = roots;
  const answer = repositories.use(first, async ({ guidelines }) => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    await ruleOf(repositories, second);
    return guidelines.explain("a.ts").applied.length;
  });
  expect(await answer).toBe(1);
});

test("a root that cannot be opened fails each call, until it exists", async () => {
  const { repositories, folder } = await open(0);
  const root = join(folder.root, "late");
  await expect(ruleOf(repositories, root)).rejects.toMatchObject({ code: "invalid_request" });
  await folder.write("late/AGENTS.md", "RULE-LATE\n");
  expect(await ruleOf(repositories, root)).toContain("RULE-LATE");
});

test("an agent in the work tree of a task works in the project there, not at the top of its repository", async () => {
  const { own, folder } = await open(0);
  await folder.write("own/.kit/work/cart.1/.git", "gitdir: elsewhere\n");
  await folder.write("own/.kit/work/cart.1/shop/AGENTS.md", "RULE-OF-THE-WORK\n");
  const context = createProjectContext(own);
  onTestFinished(() => context.close());
  const at = join(own.root, ".kit/work/cart.1/shop");
  const repository = context.repositoryAt({ location: { folder: at, shared: true }, cwd: "" });
  expect(repository.workingFolder).toBe("");
});
