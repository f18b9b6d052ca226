import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";

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

Amounts are whole cents, never floating point. Never store amounts as decimals.

## Errors \u001b[2J\u001b[31mred

Throw \`ShopError\`.
`,
  ".cursorrules": "## Money\n\nAlways store amounts as decimals.\n",
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

/** 1 January 2026, so that whatever a test commits comes later. */
const began = 1_767_268_800;

/** A repository with sources of several tools, hostile characters in one, and a single commit. */
export async function createSampleProject(): Promise<TemporaryRepository> {
  const project = await createTemporaryRepository(files);
  await project.init();
  await project.commit("Begin the shop", began);
  return project;
}
