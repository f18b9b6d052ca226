import { posix } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import { fromWorkingFolder, toWorkspacePath, type Workspace } from "./workspace-path.ts";

const root = "/some/where/root";
const workspace: Workspace = {
  root,
  calledRoot: "/link",
  environment: async () => ({}),
  outerRules: () => [],
  isolation: {},
  hidden: [],
  ownFolder: () => Promise.reject(new Error("No command runs here.")),
  closing: new AbortController().signal,
};
const pieces = fc.constantFrom(
  "a",
  "b",
  "..",
  ".",
  "",
  "..a",
  "%2e%2e",
  "．．",
  "root",
  "a b",
  "ü",
  "\\",
  "-rf",
);
const texts = fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join("/"));
const folders = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 3 }).map((parts) => parts.join("/"));

test("every path is either below the root or refused", () => {
  const absolute = texts.map((text) => `${root}/${text}`);
  const elsewhere = texts.map((text) => `/some/where/${text}`);
  const any = fc.oneof(texts, absolute, elsewhere, fc.string({ unit: "binary" }));
  fc.assert(
    fc.property(folders, any, (cwd, path) => {
      let inside: string;
      try {
        inside = toWorkspacePath({ workspace, cwd }, path);
      } catch (error) {
        expect(error).toBeInstanceOf(KitError);
        // The error does not repeat an absolute path from outside.
        if (path.startsWith("/some")) expect(String(error)).not.toContain("/some");
        return;
      }
      expect(inside.split("/")).not.toContain("..");
      expect(inside).not.toMatch(/^\/|\0|\/\/|(^|\/)\.(\/|$)/);
      // Without links, the system resolves the text to the same path.
      const system = posix.resolve(root, cwd, path);
      expect(posix.join(root, inside)).toBe(system);
    }),
    { numRuns: 5_000 },
  );
});

test("a result path, resolved from the working folder, is the original path", () => {
  const files = folders.map((folder) => posix.join(folder, "file.txt"));
  fc.assert(
    fc.property(folders, files, (cwd, path) => {
      expect(toWorkspacePath({ workspace, cwd }, fromWorkingFolder(cwd, path))).toBe(path);
    }),
  );
  expect(toWorkspacePath({ workspace, cwd: "a" }, "/link/b/../c")).toBe("c");
  expect(fromWorkingFolder("a/b", "a/c/x")).toBe("../c/x");
  expect(fromWorkingFolder("a", "a/x")).toBe("x");
});
