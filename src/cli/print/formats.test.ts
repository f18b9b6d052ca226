import { expect, test } from "vitest";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SpecGraph } from "../../protocol/spec-query.ts";
import { toDot, toMermaid } from "../commands/specs-graph.ts";
import { causeText } from "./cause.ts";
import { toGithubAnnotation } from "./diagnostics.ts";

const diagnostic: Diagnostic = {
  severity: "error",
  rule: "duplicate-id",
  message: "50% of a,b: say\nthe same\u001b[2J",
  path: "docs/a:b,c.md",
  line: 7,
};

test("a GitHub annotation stays one line and keeps its message apart from its properties", () => {
  expect(toGithubAnnotation(diagnostic)).toBe(
    "::error file=docs/a%3Ab%2Cc.md,line=7,title=duplicate-id::50%25 of a,b: say%0Athe same",
  );
  const { line: _, ...anywhere } = diagnostic;
  expect(toGithubAnnotation({ ...anywhere, severity: "warning" })).toMatch(
    /^::warning file=[^,]+,title=duplicate-id::/,
  );
});

const hostile = `"]; click n0 "javascript:alert(1)" <script>\\\n\u001b[2J#quot; \`x\` end`;
const graph: SpecGraph = {
  nodes: [
    { id: "spec-1", kind: "spec", title: hostile },
    { id: 'src/a"b.ts', kind: "file", title: 'src/a"b.ts' },
    { id: "test/a.test.ts", kind: "test", title: "test/a.test.ts" },
  ],
  edges: [
    { from: "spec-1", to: 'src/a"b.ts', kind: "code_ref" },
    { from: "spec-1", to: "test/a.test.ts", kind: "test_ref" },
    { from: "spec-1", to: "gone", kind: "related" },
  ],
};

test("a Mermaid label cannot end its quotes or add a statement or markup", () => {
  const lines = toMermaid(graph).trimEnd().split("\n");
  expect(lines).toHaveLength(6);
  expect(lines[1]).toMatch(/^ {2}n0\["[\p{L}\p{N} .,:/…_#;-]*"\]$/u);
  expect(lines[1]).not.toMatch(/[<>\\`]/);
  expect(lines.slice(2)).toEqual([
    '  n1(["src/a#34;b.ts"])',
    '  n2{{"test/a.test.ts"}}',
    "  n0 -->|code_ref| n1",
    "  n0 -->|test_ref| n2",
  ]);
});

test("a DOT string ends only at its own end", () => {
  const lines = toDot(graph).trimEnd().split("\n");
  expect(lines).toHaveLength(10);
  // The strings stand between unescaped quotes; nothing of the title is outside of them.
  const outside = (lines[3] ?? "").replace(/"(?:[^"\\]|\\.)*"/g, "");
  expect(outside).toBe("   [label=, shape=box];");
  expect(lines[6]).toBe('  "spec-1" -> "src/a\\"b.ts" [label="code_ref"];');
});

test.each([
  [{ type: "webhook", webhook: "github", delivery_id: "d1" }, "delivery d1 of the webhook github"],
  [{ type: "run", run_id: "run_1" }, "run_1"],
  [{ type: "schedule", schedule: "nightly" }, "the schedule nightly"],
  [{ type: "sender", principal: "alice" }, "alice"],
  [{ type: "prompt", agent: "a", instance_id: "b", session: "default", operation_id: "op_1" }, "op_1 of a/b"],
  [
    {
      type: "prompt",
      agent: "a",
      instance_id: "b",
      session: "s",
      operation_id: "op_1",
      dispatch_id: "dispatch_1",
    },
    "op_1 of a/b, session s (dispatch_1)",
  ],
  [undefined, undefined],
] as const)("the cause %j of a run or a dispatch is printed in words", (cause, text) => {
  expect(causeText(cause)).toBe(text);
});
