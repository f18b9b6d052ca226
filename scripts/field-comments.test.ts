import { expect, test } from "vitest";
import { readFieldComments } from "./field-comments.ts";

test("a field of a record gets the comment in its schema's source, in the type and as the description", async () => {
  const comments = await readFieldComments();
  const approval = new Set(["approved", "args", "reason", "result"]);
  expect(comments.of("reason", approval, "protocol/approval")).toBe(
    "For a denied call: the model reads it as the result.",
  );
  const run = new Set(["index", "timestamp", "instance_id", "operation_id", "type", "workflow"]);
  expect(comments.of("workflow", run, "protocol/event")).toBeUndefined();
  expect(comments.ofSchema("diagnosticSchema")).toContain("A fault in an input file");
});

test("fields that two records share keep the comments of their record", async () => {
  const comments = await readFieldComments();
  const blocks = new Set(["agent", "instance_id", "order", "limit", "cursor"]);
  expect(comments.of("limit", blocks, "protocol/stale")).toBe("Blocks per page, 1 to 1,000; default 50.");
  const sessions = new Set([...blocks, "search", "status", "since", "until", "parents_only", "count"]);
  expect(comments.of("limit", sessions, "protocol/session-page")).toBe("1 to 1,000; default 50.");
});
