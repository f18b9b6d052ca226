import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { campaignTest, isCampaign, rounds } from "../../testing/campaign.suite.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";

const openProjectUrl = new URL("../open-project.ts", import.meta.url).href;

/** Runs code in a process of its own, with `openProject` and `root` at hand. */
function start(root: string, code: string): ChildProcess {
  const script = `
    const { openProject } = await import(${JSON.stringify(openProjectUrl)});
    const root = ${JSON.stringify(root)};
    ${code}
  `;
  return spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

async function outputOf(child: ChildProcess): Promise<string> {
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return output;
}

const manyFiles = (count: number): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      `p${index}/CLAUDE.md`,
      `## Rule ${index}\n\n${"text of it ".repeat(60)}\n`,
    ]),
  );

const report = `
  const project = await openProject({ root });
  const summary = await project.refresh();
  const { total_count } = project.specs.query({ q: "text", limit: 1 });
  console.log(JSON.stringify({ total_count, parsed: summary.parsed_files, specs: [...project.specs.all()].length }));
  await project.close();
`;

test("processes that find no index make one together, and all get the same answers", async () => {
  const count = rounds(200, 600);
  await using repository = await createTemporaryRepository(manyFiles(count));
  const outputs = await Promise.all([1, 2, 3].map(() => outputOf(start(repository.root, report))));
  for (const output of outputs) {
    expect(JSON.parse(output)).toEqual({ total_count: count, parsed: 0, specs: count });
  }
});

test("the next process completes an index whose first pass was killed", async () => {
  for (const delayMs of isCampaign ? [0, 60, 250] : [60]) {
    await using repository = await createTemporaryRepository(manyFiles(900));
    const child = start(repository.root, "await openProject({ root });");
    while (!existsSync(join(repository.root, ".kit", "index.db")) && child.exitCode === null)
      await setTimeout(2);
    await setTimeout(delayMs);
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "close");
    const project = await openProject({ root: repository.root });
    expect(project.indexing()).toBeUndefined();
    expect(project.specs.query({ q: "text", limit: 1 }).total_count).toBe(900);
    expect([...project.specs.all()].length).toBe(900);
    expect((await project.refresh()).parsed_files).toBe(0);
    await project.close();
  }
});

test("a writer that is killed between commits loses nothing that a pass cannot find again", async () => {
  await using repository = await createTemporaryRepository(manyFiles(30));
  const { root } = repository;
  const child = start(
    root,
    `
    const { writeFile } = await import("node:fs/promises");
    const project = await openProject({ root });
    for (let n = 0; ; n += 1) {
      await writeFile(root + "/p1/CLAUDE.md", "## Edit " + n + "\\n\\ntext\\n");
      await project.refresh();
      if (n === 5) console.log("running");
    }
  `,
  );
  if (child.stdout) await once(child.stdout, "data");
  await setTimeout(40);
  child.kill("SIGKILL");
  await once(child, "close");
  await repository.write("p1/CLAUDE.md", "## The last edit\n\ntext\n");
  const project = await openProject({ root });
  expect((await project.refresh()).rebuilt).toBeUndefined();
  expect(project.specs.query({ path: "p1" }).specs.map(({ title }) => title)).toEqual(["The last edit"]);
  expect(project.specs.query({ q: "text", limit: 1 }).total_count).toBe(30);
  await project.close();
});

test("an index that another process has made is seen at once", async () => {
  await using repository = await createTemporaryRepository(manyFiles(5));
  const project = await openProject({ root: repository.root });
  expect(project.specs.query({ q: "new" }).total_count).toBe(0);
  await repository.write("p9/CLAUDE.md", "## New rule\n\nnew text\n");
  expect(JSON.parse(await outputOf(start(repository.root, report)))).toMatchObject({ specs: 6 });
  expect(project.specs.query({ q: "new" }).total_count).toBe(1);
  expect(project.files()).toContain("p9/CLAUDE.md");
  expect(project.guidelines.list({ q: "new text" }).total_count).toBe(1);
  await project.close();
});

campaignTest("processes that index different changes at the same time do not undo each other's", async () => {
  await using repository = await createTemporaryRepository(manyFiles(20));
  const { root } = repository;
  const edit = (number: number): string => `
    const { writeFile } = await import("node:fs/promises");
    const project = await openProject({ root });
    for (let n = 0; n < 15; n += 1) {
      await writeFile(root + "/p${number}/CLAUDE.md", "## Edit " + n + "\\n\\ntext ${number}\\n");
      await project.refresh();
      const found = project.specs.query({ path: "p${number}" }).specs.map(({ title }) => title);
      if (found.join() !== "Edit " + n) throw new Error("Wanted edit " + n + ", found " + found);
    }
    await project.close();
  `;
  await Promise.all([1, 2, 3].map((number) => outputOf(start(root, edit(number)))));
  const project = await openProject({ root });
  expect(await project.refresh()).not.toHaveProperty("rebuilt");
  const found = project.specs.query({ q: "edit" }).specs.map(({ id, title }) => [id, title]);
  expect(found.sort()).toEqual([
    ["fw_c-edit-14", "Edit 14"],
    ["fw_c-edit-14-2", "Edit 14"],
    ["fw_c-edit-14-3", "Edit 14"],
  ]);
  await project.close();
});

test("an index that another process replaces is left for the new one", async () => {
  await using repository = await createTemporaryRepository(manyFiles(5));
  const { root } = repository;
  const project = await openProject({ root });
  const otherConfig = report.replace("{ root }", "{ root, config: { specs: { exclude: ['p1/**'] } } }");
  expect(JSON.parse(await outputOf(start(root, otherConfig)))).toMatchObject({ specs: 4 });
  await repository.write("p2/CLAUDE.md", "## Edited\n\ntext\n");
  await project.refresh();
  expect([...project.specs.all()].length).toBe(5);
  expect(project.specs.query({ path: "p2" }).specs[0]?.title).toBe("Edited");
  await project.close();
});
