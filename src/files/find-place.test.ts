import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { rounds } from "../testing/campaign.suite.ts";
import { type FindPlaceOptions, findPlace, resolveInside } from "./find-place.ts";
import { readRegularFile, replaceFile } from "./replace-file.ts";
import { canHoldFolders } from "./walk.ts";

async function inFolder(work: (root: string) => Promise<void>): Promise<void> {
  const base = await realpath(await mkdtemp(join(tmpdir(), "kit-files-")));
  try {
    await mkdir(join(base, "root"));
    await work(join(base, "root"));
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}

async function read(options: FindPlaceOptions): Promise<string | undefined> {
  const place = await findPlace(options);
  if (place === undefined) return undefined;
  try {
    const bytes = await readRegularFile(place, 1_000_000);
    return bytes && new TextDecoder().decode(bytes);
  } finally {
    await place.close();
  }
}

// Where folders cannot be held open, names are checked instead; both ways must find the same.
const ways = [true, false].filter((holds) => !holds || canHoldFolders());

describe.each(ways)("with folders held open: %s", (holds) => {
  test("a path is resolved as the system would, or refused", async () => {
    const names = fc.constantFrom("a", "b", "c");
    const paths = fc.array(names, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
    const targets = fc.array(fc.constantFrom("a", "b", "c", "..", "."), { minLength: 1, maxLength: 4 });
    const trees = fc.array(
      fc.record({
        path: paths,
        kind: fc.constantFrom("file", "folder", "link"),
        target: targets.map((parts) => parts.join("/")),
        absolute: fc.boolean(),
      }),
      { maxLength: 12 },
    );
    const seen = { read: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(trees, fc.array(paths, { minLength: 5, maxLength: 10 }), async (tree, expected) => {
        await inFolder(async (root) => {
          for (const name of ["a", "b", "c"]) await writeFile(join(root, "..", name), "outside");
          for (const entry of tree) await create(root, entry);
          for (const path of expected) {
            const real = await realpath(join(root, path)).catch(() => "");
            const text = await readFile(join(root, path), "utf8").catch(() => undefined);
            const found = await read({ root, path, holds }).catch((error: unknown) => {
              if (!(error instanceof KitError)) throw error;
              return { code: error.code };
            });
            if (typeof found === "string" && text === undefined) {
              // The system needs a folder before a final dot of a link; findPlace ignores the dot.
              expect(tree.some(({ target }) => target.endsWith("/."))).toBe(true);
            } else if (typeof found === "string") {
              seen.read += 1;
              expect([path, found]).toEqual([path, text]);
              expect(await resolveInside({ root, path, holds })).toBe(relative(root, real));
            } else if (text !== undefined) {
              // The target lies outside, or the path leaves the root and returns, which is refused too.
              seen.refused += 1;
              expect([path, found]).toEqual([path, { code: "forbidden" }]);
              expect(text === "outside" || tree.some(({ target }) => target.includes(".."))).toBe(true);
            }
          }
        });
      }),
      {
        numRuns: rounds(75, 150),
        // Random paths rarely leave the root, or end in a dot after a file.
        examples: [
          [[{ path: "a", kind: "link", target: "../b", absolute: false }], ["a"]],
          [
            [
              { path: "b", kind: "file", target: "a", absolute: false },
              { path: "a", kind: "link", target: "b/.", absolute: false },
            ],
            ["a"],
          ],
        ],
      },
    );
    expect(seen.read).toBeGreaterThan(20);
    expect(seen.refused).toBeGreaterThan(0);
  });

  test("missing folders are created, also through links that stay inside", async () => {
    await inFolder(async (root) => {
      await mkdir(join(root, "sub"));
      await symlink("sub/new", join(root, "dangling"));
      const place = await findPlace({ root, path: "dangling/below/x.txt", createFolders: true, holds });
      if (place === undefined) throw new Error("There is no place.");
      await replaceFile(place, { content: "x" });
      await place.close();
      expect(place.path).toBe("sub/new/below/x.txt");
      expect(await read({ root, path: "sub/new/below/x.txt", holds })).toBe("x");
      expect(await readlink(join(root, "dangling"))).toBe("sub/new");
    });
  });

  test("a missing file is returned with the place where it would be created", async () => {
    await inFolder(async (root) => {
      await mkdir(join(root, "sub/deep"), { recursive: true });
      await symlink("sub/deep", join(root, "short"));
      await symlink("none/../../x", join(root, "out"));
      await symlink("none/../y", join(root, "in"));
      const resolved = (path: string): Promise<string> => resolveInside({ root, path, holds });
      expect(await resolved("short/a/b")).toBe("sub/deep/a/b");
      expect(await resolved("in/z")).toBe("y/z");
      await expect(resolved("out")).rejects.toMatchObject({ code: "forbidden" });
      await expect(findPlace({ root, path: "a/../b", holds })).rejects.toMatchObject({ code: "forbidden" });
      await expect(findPlace({ root, path: "/a", holds })).rejects.toMatchObject({ code: "invalid_request" });
    });
  });
});

test.skipIf(!canHoldFolders())("no descriptor stays open, whatever the outcome", async () => {
  await inFolder(async (root) => {
    await mkdir(join(root, "a/b"), { recursive: true });
    await symlink("../..", join(root, "a/out"));
    const before = (await readdir("/proc/self/fd")).length;
    for (const path of ["a/b/c", "a/out/x", "none/x", "a/b", "a\0"]) {
      for (const end of ["follow", "keep-link", "folder"] as const) {
        const place = await findPlace({ root, path, end }).catch(() => undefined);
        await place?.close();
      }
    }
    expect((await readdir("/proc/self/fd")).length).toBe(before);
  });
});

interface TreeEntry {
  readonly path: string;
  readonly kind: string;
  readonly target: string;
  readonly absolute: boolean;
}

/** Creates an entry, unless something is in its way. Follows no links. */
async function create(root: string, { path, kind, target, absolute }: TreeEntry): Promise<void> {
  const entry = join(root, path);
  const above = dirname(entry);
  await mkdir(above, { recursive: true }).catch(() => undefined);
  if ((await realpath(above).catch(() => "")) !== above) return;
  if (kind === "file") await writeFile(entry, path, { flag: "wx" }).catch(() => undefined);
  else if (kind === "folder") await mkdir(entry).catch(() => undefined);
  else await symlink(absolute ? join(root, target) : target, entry).catch(() => undefined);
}
