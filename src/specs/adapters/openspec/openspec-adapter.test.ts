import { expect, test } from "vitest";
import { openspecAdapter } from "./openspec-adapter.ts";

const parse = (path: string, text: string) =>
  openspecAdapter.parse({ path: `openspec/${path}`, text }).drafts;
const summary = (path: string, text: string) =>
  parse(path, text).map(({ id, spec_type, title, lifecycle }) => [
    id.kind === "base" && id.value,
    spec_type,
    title,
    lifecycle,
  ]);

test("it reads specs, changes and the project's conventions at any depth", () => {
  const paths = [
    "openspec/specs/cart/spec.md",
    "openspec/specs/shop/cart/design.md",
    "api/openspec/changes/add-x/proposal.md",
    "openspec/changes/add-x/specs/cart/spec.md",
    "openspec/changes/archive/2026-01-01-add-x/tasks.md",
    "openspec/project.md",
  ];
  expect(paths.filter((path) => !openspecAdapter.matches(path))).toEqual([]);
  const others = [
    "openspec/AGENTS.md",
    "openspec/specs/spec.md",
    "specs/cart/spec.md",
    "openspec/changes/a/b.md",
  ];
  expect(others.filter((path) => openspecAdapter.matches(path))).toEqual([]);
});

test("a requirement has its scenarios as criteria, and the purpose is a block, too", () => {
  const text = `# Cart

## Purpose
Holds books.

## Requirements

### Requirement: Add a book

The cart SHALL take a book.

\`\`\`md
#### Scenario: not one
\`\`\`

#### Scenario: In stock

- **GIVEN** a shelf
- **WHEN** a book is added
- **THEN** it lies in the cart
- **AND** the total is new

#### Scenario: Sold out
- **WHEN** none is left
- **THEN** it is refused

### requirement: Total
Sums.
`;
  const drafts = parse("specs/cart/spec.md", text);
  expect(drafts).toMatchObject([
    { id: { value: "openspec-cart-purpose" }, spec_type: "design", content: "Holds books." },
    {
      id: { value: "openspec-cart-add-a-book" },
      framework: "custom",
      spec_type: "requirement",
      title: "Add a book",
      tags: ["openspec", "cart"],
      feature: "openspec/specs/cart",
      span: { start_line: 8, end_line: 25 },
      metadata: {
        tool: "openspec",
        document: "spec",
        capability: "cart",
        requirement: "Add a book",
        acceptance_criteria: [
          {
            pattern: "complex",
            trigger: "given a shelf, when a book is added",
            response: "it lies in the cart AND the total is new",
          },
          { pattern: "event_driven", trigger: "none is left", response: "it is refused" },
        ],
        ears_patterns: [
          { line: 16, number: "1" },
          { line: 23, number: "2" },
        ],
      },
    },
    { title: "Total", content: "Sums." },
  ]);
});

test("a delta has its kind, and all but additions link to the requirement they change", () => {
  const text = `## ADDED Requirements
### Requirement: New
a
## modified requirements
### Requirement: Old
b
## REMOVED Requirements
### Requirement: Gone
c
## RENAMED Requirements
- FROM: \`### Requirement: Before\`
- TO: \`### Requirement: After\`
`;
  expect(
    parse("changes/add-x/specs/cart/spec.md", text).map(({ id, metadata, lifecycle, links }) => [
      id.kind === "base" && id.value,
      metadata.delta,
      lifecycle,
      links.map(({ target }) => target),
    ]),
  ).toEqual([
    ["openspec-change-add-x-cart-new", "added", "active", []],
    ["openspec-change-add-x-cart-old", "modified", "active", ["openspec-cart-old"]],
    ["openspec-change-add-x-cart-gone", "removed", "deprecated", ["openspec-cart-gone"]],
    ["openspec-change-add-x-cart-after", "renamed", "active", ["openspec-cart-before"]],
  ]);
});

test("removed requirements can be listed by name", () => {
  const text = "## REMOVED Requirements\n\n- `### Requirement: A`\n- `### Requirement: B`\n";
  expect(summary("changes/x/specs/cart/spec.md", text).map(([, , title]) => title)).toEqual(["A", "B"]);
});

test("an archived change is obsolete and links to nothing", () => {
  const text = "## MODIFIED Requirements\n### Requirement: Old\nb\n";
  const [draft] = parse("changes/archive/2026-01-01-x/specs/cart/spec.md", text);
  expect(draft).toMatchObject({
    lifecycle: "obsolete",
    links: [],
    tags: ["openspec", "cart", "2026-01-01-x", "archived"],
  });
});

test("each box of tasks.md is a task with its section and state", () => {
  const text =
    "## 1. Build\n- [x] 1.1 Write `src/a.ts`\n  in full\n  - [ ] nested\n## 2. Test\n- [ ] Try it\n";
  expect(
    parse("changes/x/tasks.md", text).map(({ id, content, metadata, mentions }) => [
      id.kind === "base" && id.value,
      content,
      metadata.status,
      metadata.section,
      mentions.map(({ path }) => path),
    ]),
  ).toEqual([
    ["openspec-change-x-tasks-1.1", "1.1 Write `src/a.ts`\nin full", "done", "1. Build", ["src/a.ts"]],
    ["openspec-change-x-tasks-nested", "nested", "open", "1. Build", []],
    ["openspec-change-x-tasks-try-it", "Try it", "open", "2. Test", []],
  ]);
});

test("a proposal is one design, a design one block per section, conventions are constraints", () => {
  expect(summary("changes/x/proposal.md", "## Why\n\nBecause.\n")).toEqual([
    ["openspec-change-x-proposal", "design", "Proposal: x", "active"],
  ]);
  expect(summary("changes/x/design.md", "# D\n\n## Context\n\na\n\n## Empty\n")).toEqual([
    ["openspec-change-x-design-context", "design", "Context", "active"],
  ]);
  expect(summary("project.md", "# P\n\n## Style\n\na\n")).toEqual([
    ["openspec-project-style", "constraint", "Style", "active"],
  ]);
  expect(parse("changes/x/proposal.md", " \n")).toEqual([]);
});
