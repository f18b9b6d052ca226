import { expect, test } from "vitest";
import { parsePatch } from "./patch.ts";

const patch = `diff --git a/src/cart.mjs b/src/cart.mjs
index 1111111..2222222 100644
--- a/src/cart.mjs
+++ b/src/cart.mjs
@@ -4,3 +4,3 @@ export const version = 1;
 // discount
--- tidy
+++ tidy
\\ No newline at end of file
diff --git a/src/a new.mjs b/src/a new.mjs
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/src/a new.mjs
@@ -0,0 +1 @@
+export {};
diff --git a/logo.png b/logo.png
deleted file mode 100644
Binary files a/logo.png and /dev/null differ
`;

test("a diff of Git is read file by file, also lines that look like its headers", () => {
  expect(parsePatch(patch)).toEqual([
    {
      path: "src/cart.mjs",
      lines: [
        { mark: "@", text: "to line 4" },
        { mark: " ", text: "// discount" },
        { mark: "-", text: "-- tidy" },
        { mark: "+", text: "++ tidy" },
        { mark: "@", text: "No newline at end of file" },
      ],
    },
    { path: "src/a new.mjs (a new file)", lines: [{ mark: "+", text: "export {};" }] },
    {
      path: "logo.png (deleted)",
      lines: [{ mark: "@", text: "Binary files a/logo.png and /dev/null differ" }],
    },
  ]);
});

test("the end of a diff that was cut says how much is missing", () => {
  const cut = `${patch.slice(0, patch.indexOf("tidy\n+++"))}\n… 900 more characters.\n`;
  expect(parsePatch(cut).at(-1)?.lines.at(-1)).toEqual({ mark: "@", text: "900 more characters." });
});
