import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A repository in a temporary folder, with sources of several tools and one commit. */
export interface SampleProject {
  readonly root: string;
  write(path: string, text: string): void;
  git(...args: readonly string[]): string;
  remove(): void;
}

const files: Readonly<Record<string, string>> = {
  ".gitignore": ".kit/\n",
  ".kiro/specs/checkout/requirements.md": `# Requirements

### Requirement 1: Guests pay without an account

**User Story:** As a guest, I want to pay at once, so that I need no account.

#### Acceptance Criteria

1. WHEN a guest pays THEN the system SHALL send a receipt.
2. IF the card is declined THEN the system SHALL keep the cart.

### Requirement 2: Refunds

**User Story:** As a customer, I want my money back.

#### Acceptance Criteria

1. WHEN an order is cancelled THEN the system SHALL refund it within a day.
`,
  ".kiro/specs/checkout/design.md": `# Design

## Cart

The cart lives in \`src/checkout/cart.ts\` and is tested in \`src/checkout/cart.test.ts\`.
`,
  ".kiro/specs/checkout/tasks.md": `# Tasks

- [x] 1. Build the cart
  - Write \`src/checkout/cart.ts\`
  - _Requirements: 1.1_
- [ ] 2. Pay back
  - _Requirements: 2.1, 9.9_
`,
  "CLAUDE.md": `# Shop

## Money

Amounts are whole cents, never floating point.

## Errors \u001b[2J\u001b[31mred

Throw \`ShopError\`.
`,
  ".cursorrules": "## Money\n\nAmounts are decimals.\n",
  ".cursor/rules/tests.mdc": `---
description: Tests
globs: **/*.test.ts
alwaysApply: false
---
Name the criterion that a test is about.
`,
  "src/checkout/cart.ts": "export const total = (cents: number[]) => cents.reduce((a, b) => a + b, 0);\n",
  "src/checkout/cart.test.ts": `test("Requirement 1.1: a guest gets a receipt (checkout#1.1)", () => {});\n`,
};

const began = "2026-01-01T12:00:00Z";
const author = {
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.org",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.org",
};

export function createSampleProject(): SampleProject {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "kit-sample-")));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const git = (...args: readonly string[]): string =>
    execFileSync("git", args, {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, ...author },
      stdio: ["ignore", "pipe", "pipe"],
    });
  for (const [path, text] of Object.entries(files)) write(path, text);
  git("init", "--quiet", "--initial-branch=main");
  git("add", "--all");
  // Long ago, so that whatever a test commits comes later.
  execFileSync("git", ["commit", "--quiet", "--message=Begin the shop"], {
    cwd: root,
    env: { ...process.env, ...author, GIT_AUTHOR_DATE: began, GIT_COMMITTER_DATE: began },
  });
  return { root, write, git, remove: () => rmSync(root, { recursive: true, force: true }) };
}
