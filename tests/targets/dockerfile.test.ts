import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTargetProject, type TargetProject } from "./target-project.ts";

const packages = fileURLToPath(new URL("../../vendors/node_modules", import.meta.url));
const linter = join(packages, "dockerfile-utils");

interface Linter {
  validate(text: string): readonly { readonly message: string }[];
}

describe.skipIf(!existsSync(linter))("a Dockerfile (skipped without npm run test:targets)", () => {
  let project: TargetProject;
  let validate: Linter["validate"];
  beforeAll(async () => {
    project = await createTargetProject();
    const main = pathToFileURL(join(linter, "lib/main.js")).href;
    ({ validate } = (await import(main)) as unknown as Linter);
  });
  afterAll(async () => {
    await project?.remove();
  });

  test.each(["docker", "fly", "railway"])(
    "for the target %s has no finding of the linter",
    async (target) => {
      const { exitCode, stderr } = await project.kit(["build", "--target", target]);
      expect(stderr).toBe("");
      expect(exitCode).toBe(0);
      const text = await readFile(join(project.root, "build", target, "Dockerfile"), "utf8");
      expect(validate(text)).toEqual([]);
      expect(validate(`${text}RUNN true\n`).map(({ message }) => message)).toEqual([
        "Unknown instruction: RUNN",
      ]);
    },
  );
});
