import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { testFolder } from "../testing/test-folder.ts";

const page = await readFile(new URL("../../docs/python.md", import.meta.url), "utf8");
const fences = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code);
const programs = fences.filter((code) => code.includes('"kit/python"'));

test("the documentation has programs to run", () => {
  expect(programs.length).toBeGreaterThanOrEqual(3);
});

for (const [index, code] of programs.entries()) {
  test(`program ${index + 1} of docs/python.md prints what its remarks say`, async () => {
    const folder = testFolder(onTestFinished);
    const file = join(folder, "example.ts");
    const entry = new URL("./index.ts", import.meta.url).href;
    await writeFile(file, code.replaceAll('"kit/python"', JSON.stringify(entry)));
    const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", file]);
    const said = [...code.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, remark]) => remark);
    expect(stdout.trim().replace(/\s+/g, " ")).toBe(said.join(" "));
  });
}
