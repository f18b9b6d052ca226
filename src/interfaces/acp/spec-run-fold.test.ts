import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import type { SpecTaskProgress } from "../../protocol/spec-run.ts";
import { contentOfTask, SpecRunFold } from "./spec-run-fold.ts";

const ajv = new Ajv2020({ strict: false, validateFormats: false });
const schemaFile = fileURLToPath(import.meta.resolve("@agentclientprotocol/sdk/schema/v1/schema.json"));
ajv.addSchema(JSON.parse(readFileSync(schemaFile, "utf8")), "acp");
const isUpdate = ajv.compile({ $ref: "acp#/$defs/SessionUpdate" });
const isContent = ajv.compile({ $ref: "acp#/$defs/ToolCallContent" });

const base = { task: "1", title: "Add up", path: "tasks.md", line: 4, criteria: [], attempt: 1, cost: 0 };
const context = {
  index: 1,
  timestamp: "2026-12-01T10:00:00.000Z",
  instance_id: "run_1-1",
  operation_id: "op_1",
};
const progress = (fields: Partial<SpecTaskProgress>): KitEvent => ({
  ...context,
  type: "log",
  level: "info",
  message: "",
  data: { spec_task: { ...base, ...fields } },
});
const plans = (updates: readonly SessionUpdate[]): string[] =>
  updates.flatMap((update) =>
    update.sessionUpdate === "plan"
      ? [update.entries.map(({ content, status }) => `${content}: ${status}`).join("; ")]
      : [],
  );

test("the plan has the tasks of the run, and one that was given up is still open", () => {
  const fold = new SpecRunFold();
  const updates = [
    ...fold.plan([
      { task: "1", title: "Add up" },
      { task: "2", title: "Tidy\nup\u202E" },
    ]),
    ...fold.push(progress({ state: "working" })),
    ...fold.push(progress({ state: "working" })),
    ...fold.push(progress({ state: "closed", commit: "0123456789abcdef" })),
    ...fold.push(progress({ task: "2", title: "Tidy", state: "denied", reason: "No." })),
  ];
  expect(updates.filter((update) => !isUpdate(update))).toEqual([]);
  expect(plans(updates)).toEqual([
    "1 Add up: pending; 2 Tidy up\\u202e: pending",
    "1 Add up: in_progress; 2 Tidy up\\u202e: pending",
    "1 Add up: completed; 2 Tidy up\\u202e: pending",
    "1 Add up: completed; 2 Tidy (denied): pending",
  ]);
});

test("equal ids of calls of two tasks are two calls, and a stop ends those that run", () => {
  const fold = new SpecRunFold();
  const call = { tool_call_id: "c1", tool: "read", args: { path: "a.md" }, type: "tool_start" } as const;
  const updates = [
    ...fold.push({ ...context, ...call, session: "work 1.1" }),
    ...fold.push({ ...context, ...call, session: "work 1.2", operation_id: "op_2" }),
    ...fold.push({ ...context, ...call, type: "tool_end", result: "x", is_error: false, duration_ms: 1 }),
    ...fold.endOpen(),
  ];
  expect(updates.filter((update) => !isUpdate(update))).toEqual([]);
  expect(updates).toMatchObject([
    { toolCallId: "op_1 c1", title: "1.1 read a.md" },
    { toolCallId: "op_2 c1", title: "1.2 read a.md" },
    { toolCallId: "op_1 c1", status: "completed" },
    { toolCallId: "op_2 c1", status: "failed" },
  ]);
  // The file is in a work tree, and not where the editor would open it.
  expect(JSON.stringify(updates)).not.toContain("locations");
});

test("the question about a task has each changed part, and what is no text of a file", () => {
  const diff = `diff --git a/src/a.ts b/src/a.ts
index 1..2 100644
--- a/src/a.ts
+++ b/src/a.ts
@@ -1,3 +1,3 @@ head
 one
--- two
+++ two
 three
@@ -9 +9,0 @@
-nine
diff --git a/new file.md b/new file.md
new file mode 100644
index 0..1
--- /dev/null
+++ b/new file.md\t
@@ -0,0 +1 @@
+diff --git a/x b/x
\\ No newline at end of file
diff --git a/old.md b/old.md
deleted file mode 100644
--- a/old.md
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/logo.png b/logo.png
index 1..2 100644
Binary files a/logo.png and b/logo.png differ
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
`;
  const task = { ...base, state: "waiting", work_tree: "/work", diff } as const;
  const content = contentOfTask(task);
  expect(content.filter((each) => !isContent(each))).toEqual([]);
  expect(content.slice(0, 4)).toEqual([
    {
      type: "diff",
      path: "/work/src/a.ts",
      oldText: "one\n-- two\nthree\n",
      newText: "one\n++ two\nthree\n",
    },
    { type: "diff", path: "/work/src/a.ts", oldText: "nine\n", newText: "" },
    { type: "diff", path: "/work/new file.md", oldText: null, newText: "diff --git a/x b/x\n" },
    { type: "diff", path: "/work/old.md", oldText: "gone\n", newText: "" },
  ]);
  expect(JSON.stringify(content.slice(4))).toMatch(/Binary files .* differ.*new mode 100755/);
  const cut = contentOfTask({ ...task, diff: `${diff.slice(0, 110)}\n… 900 more characters.\n` });
  expect(JSON.stringify(cut)).toContain("… 900 more characters.");
});

test("a line of a file that imitates heads hides nothing from the person, and its separators are visible", () => {
  const diff = `diff --git a/a.ts b/a.ts
--- a/a.ts
+++ b/a.ts
@@ -1 +1,5 @@
 one\r
+// ok \u2028diff --git a/docs/x.md b/docs/x.md
+steal(\u202E);
+// \u2028+++ b/docs/x.md\u2028@@ -1 +1 @@
+// nice \rcomment
`;
  const content = contentOfTask({ ...base, state: "waiting", work_tree: "/work", diff });
  expect(content).toEqual([
    { type: "content", content: { type: "text", text: expect.stringContaining("written as escapes") } },
    {
      ...{ type: "diff", path: "/work/a.ts", oldText: "one\r\n" },
      newText:
        "one\r\n// ok \\u2028diff --git a/docs/x.md b/docs/x.md\nsteal(\\u202e);\n// \\u2028+++ b/docs/x.md\\u2028@@ -1 +1 @@\n// nice \\u000dcomment\n",
    },
  ]);
});
