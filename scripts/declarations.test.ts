import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exportedDeclarations, findDeclaration } from "./declarations.ts";

test("exports are resolved to their declarations, which name the types they need", async () => {
  const folder = await mkdtemp(join(tmpdir(), "kit-declarations-"));
  try {
    const write = (name: string, text: string) => writeFile(join(folder, name), text);
    await write("index.d.ts", 'export { open, type Part as Piece } from "./part.js";\n');
    await write(
      "part.d.ts",
      'import type { Inner } from "./inner.js";\n/** A part. */\nexport interface Part {\n  inner: Inner;\n}\nexport declare function open(a: string): Part;\nexport declare function open(a: number): Part;\n',
    );
    await write("inner.d.ts", "export type Inner = Map<string, Inner>;\n");
    const found = exportedDeclarations(join(folder, "index.d.ts"));
    expect(found.map(({ name, refersTo }) => [name, refersTo])).toEqual([
      ["Part", ["Inner"]],
      ["open", ["Part"]],
    ]);
    expect(found[1]?.code.match(/declare function open/g)).toHaveLength(2);
    expect(found[0]?.code).not.toContain("A part");
    expect(findDeclaration(join(folder, "part.d.ts"), "Inner").refersTo).toEqual(["Inner"]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
