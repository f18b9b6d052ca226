import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { readLines } from "./read-lines.ts";

test("links inside the project are other names of a file; links to secrets and out of the project are not", async () => {
  await using folder = await createTemporaryRepository({
    "src/app.ts": "one\n",
    ".env": "TOP-SECRET",
    "keys/a.pem": "TOP-SECRET",
  });
  const at = (path: string): string => join(folder.root, path);
  symlinkSync("src/app.ts", at("alias.ts"));
  symlinkSync("src", at("linked"));
  symlinkSync(".env", at("innocent.txt"));
  symlinkSync("keys/a.pem", at("innocent.md"));
  symlinkSync("/etc", at("out"));
  symlinkSync("/etc/hostname", at("out.txt"));
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  for (const path of ["src/app.ts", "alias.ts", "linked/app.ts"])
    expect(await readLines(project, { path })).toMatchObject({ path: "src/app.ts", lines: ["one"] });
  for (const path of ["innocent.txt", "innocent.md", "out/hostname", "out.txt", "keys/a.pem"])
    await expect(readLines(project, { path }), path).rejects.toMatchObject({ code: "not_found" });
  await project.close();
});
