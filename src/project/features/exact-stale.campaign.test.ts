import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { StaleReport } from "../../protocol/stale.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { staleSpecs } from "./stale.ts";

let repository: TemporaryRepository;
let time = 1_000_000;
beforeEach(async () => {
  repository = await createTemporaryRepository({ ".gitignore": ".kit/\n" });
  await repository.init();
});
afterEach(() => repository[Symbol.asyncDispose]());

const path = ".kiro/specs/cart/requirements.md";
const sections = 3;

/** A file with a requirement per text, which names `src/<number>.ts`. */
const requirements = (texts: readonly string[]): string =>
  `# Requirements\n${texts.map((text, at) => `\n### Requirement ${at + 1}: Part\n\nCode: \`src/${at}.ts\`\n\n${text}\n`).join("")}`;
const code = (lines: readonly number[], indent = ""): string =>
  lines.map((line) => `${indent}${line}\n`).join("");

const commit = (message: string): Promise<string> => {
  time += 100;
  return repository.commit(message, time);
};

async function stale(): Promise<StaleReport["stale"]> {
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  try {
    return (await staleSpecs(project)).stale;
  } finally {
    await project.close();
  }
}
const staleNumbers = async (): Promise<readonly string[]> =>
  (await stale()).map(({ id }) => id.replace(/^.*req/, ""));

test("an edit of another section does not make a stale block fresh", async () => {
  await repository.write(path, requirements(["a", "b", "c"]));
  for (let at = 0; at < sections; at += 1) await repository.write(`src/${at}.ts`, code([1, 2]));
  const base = await commit("all");
  await repository.write("src/0.ts", code([1, 2, 3]));
  await commit("code");
  await repository.write("src/0.ts", code([1, 4, 3]));
  const last = await commit("code again");
  await repository.write(path, requirements(["a", "b", "other"]));
  await commit("a remark elsewhere");
  expect(await stale()).toMatchObject([
    {
      line: 3,
      base,
      files: [{ path: "src/0.ts", commit: last, commits: 2, lines_added: 2, lines_removed: 1 }],
    },
  ]);
  await repository.write(path, requirements(["new", "b", "other"]));
  expect(await stale(), "its author is at work on the block").toEqual([]);
  await commit("the block");
  expect(await stale()).toEqual([]);
});

test("a commit that only re-indents code makes nothing stale, and moving a block makes nothing fresh", async () => {
  await repository.write(path, requirements(["a", "b", "c"]));
  await repository.write("src/0.ts", code([1, 2]));
  await repository.write("src/1.ts", code([1, 2]));
  await commit("all");
  await repository.write("src/0.ts", code([1, 2], "\t  "));
  await commit("indent");
  expect(await stale()).toEqual([]);
  await repository.write("src/1.ts", code([1, 3]));
  await commit("code");
  await repository.write(path, `# Words\n\nSome lines above.\n\n${requirements(["a", "b", "c"])}`);
  await commit("lines above");
  expect(await staleNumbers()).toEqual(["2"]);
  await repository.write("src/1.ts", code([1, 2], " "));
  expect(await staleNumbers(), "the work tree is as the block knows it").toEqual([]);
});

test("a block of a branch is as old as its own commit after the merge", async () => {
  await repository.write(path, requirements(["a", "b", "c"]));
  for (let at = 0; at < sections; at += 1) await repository.write(`src/${at}.ts`, code([1, 2]));
  await commit("all");
  await repository.git("checkout", "--quiet", "-b", "side");
  await repository.write(path, requirements(["side", "b", "c"]));
  const side = await commit("spec on a branch");
  await repository.write("src/0.ts", code([1, 2, 3]));
  await commit("code on a branch");
  await repository.git("checkout", "--quiet", "main");
  await repository.write(path, requirements(["a", "b", "main"]));
  await commit("spec on main");
  await repository.git("merge", "--quiet", "--no-edit", "side");
  expect(await stale()).toMatchObject([{ base: side, line: 3, files: [{ commits: 1, lines_added: 1 }] }]);
});

test("drift is found in a project below the top of its repository", async () => {
  await repository.write(`shop/${path}`, requirements(["a"]));
  await repository.write("shop/src/0.ts", "1\n");
  await commit("all");
  await repository.write("shop/src/0.ts", "2\n");
  await commit("code");
  const project = await openProject({ root: `${repository.root}/shop`, indexFile: ":memory:" });
  const { stale: found, notes } = await staleSpecs(project);
  expect(notes).toEqual([]);
  expect(found).toMatchObject([
    { files: [{ path: "src/0.ts", commits: 1, lines_added: 1, lines_removed: 1 }] },
  ]);
  await project.close();
});

const edit = fc.oneof(
  fc.record({ kind: fc.constant("spec" as const), at: fc.nat(sections - 1), value: fc.nat(2) }),
  fc.record({ kind: fc.constant("code" as const), at: fc.nat(sections - 1), value: fc.nat(2) }),
  fc.record({ kind: fc.constant("indent" as const), at: fc.nat(sections - 1), value: fc.nat(2) }),
);

test("for any history of edits, a replay over all commits finds the same blocks stale", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(edit, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 8 }),
      async (commits) => {
        const texts = ["0", "0", "0"];
        const values = [0, 0, 0];
        const indents = [0, 0, 0];
        const snapshots: { readonly texts: readonly string[]; readonly values: readonly number[] }[] = [];
        const save = async (): Promise<void> => {
          await repository.write(path, requirements(texts));
          for (let at = 0; at < sections; at += 1)
            await repository.write(`src/${at}.ts`, code([values[at] ?? 0], " ".repeat(indents[at] ?? 0)));
          await commit("edit");
          snapshots.push({ texts: [...texts], values: [...values] });
        };
        await save();
        for (const edits of commits) {
          for (const { kind, at, value } of edits) {
            if (kind === "spec") texts[at] = String(value);
            else if (kind === "code") values[at] = value;
            else indents[at] = value;
          }
          await save();
        }
        const expected = Array.from({ length: sections }, (_, at) => at).filter((at) => {
          const since = snapshots.findLastIndex((snapshot) => snapshot.texts[at] !== texts[at]) + 1;
          return snapshots[since]?.values[at] !== values[at];
        });
        expect(await staleNumbers()).toEqual(expected.map((at) => String(at + 1)));
        await repository[Symbol.asyncDispose]();
        repository = await createTemporaryRepository({ ".gitignore": ".kit/\n" });
        await repository.init();
      },
    ),
    { numRuns: rounds(4, 30) },
  );
});
