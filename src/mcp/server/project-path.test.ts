import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { toProjectPath } from "./bounds.ts";

test("toProjectPath accepts relative and absolute paths, also through links, of files that need not exist", () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "kit-paths-")));
  try {
    const root = join(base, "project");
    mkdirSync(join(root, "src"), { recursive: true });
    symlinkSync(root, join(base, "link"));
    const paths = [
      "src/a.ts",
      "./src//a.ts",
      join(root, "src/a.ts"),
      join(base, "link/src/a.ts"),
      "src/../src/a.ts",
    ];
    expect(paths.map((path) => toProjectPath(path, root))).toEqual(paths.map(() => "src/a.ts"));
    expect(toProjectPath("..hidden/a.ts", root)).toBe("..hidden/a.ts");
    for (const path of ["../x", "/etc/passwd", base, root, ".", "", `${root}-other/a.ts`]) {
      expect(() => toProjectPath(path, root), path).toThrow("not inside the project");
    }
  } finally {
    rmSync(base, { recursive: true });
  }
});
