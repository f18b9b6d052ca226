/** A feature with one requirement, its plan, a test of it, and a rule for its code. */
export const requirements = `# Requirements: checkout

### Requirement 1: Pay

**User Story:** As a customer, I want to pay, so that the books are mine.

#### Acceptance Criteria

1. WHEN the charge is accepted THEN the system SHALL place the order
2. WHEN the charge is declined THEN the system SHALL place nothing
`;
export const tasks = `# Implementation Plan

- [ ] 1. Build it
  - _Requirements: 1.2_
`;
export const tests = `import { test } from "node:test";
test("checkout#1.2 places nothing", () => {});
`;
export const steering = `---
inclusion: fileMatch
fileMatchPattern: "src/**/*.ts"
---

# Money

Use cents.
`;
export const spec = ".kiro/specs/checkout/requirements.md";
export const plan = ".kiro/specs/checkout/tasks.md";
export const rule = ".kiro/steering/money.md";
export const testFile = "src/checkout.test.ts";
