/** A small project with specs and guidelines of several kinds, by path. */
export const shopFiles: Readonly<Record<string, string>> = {
  "AGENTS.md": "# Shop\n\n## Money\n\nAmounts are integers, in cents.\n",
  "CLAUDE.md":
    "# Claude\n\n## Tests\n\nEvery change has a test.\n\n## Style <script>alert(1)</script>\n\nShort functions.\n",
  ".cursor/rules/api.mdc":
    "---\ndescription: API rules\nglobs: src/api/**\nalwaysApply: false\n---\n\nValidate every input.\n",
  ".kiro/steering/security.md": "---\ninclusion: always\n---\n\n# Security\n\nNo secrets in logs.\n",
  ".kiro/specs/checkout/requirements.md":
    "# Requirements\n\n### Requirement 1: Place an order\n\n**User Story:** As a customer, I want to order, so that I get books.\n\n#### Acceptance Criteria\n\n1. WHEN the customer pays THEN the system SHALL store the order in `src/api/orders.ts`\n2. IF the payment fails THEN the system SHALL keep the basket\n\n### Requirement 2: Cancel an order\n\n**User Story:** As a customer, I want to cancel.\n\n#### Acceptance Criteria\n\n1. WHEN the customer cancels THEN the system SHALL refund the payment\n",
  ".kiro/specs/checkout/tasks.md":
    "# Tasks\n\n- [x] 1. Store orders in `src/api/orders.ts`\n  - _Requirements: 1.1_\n- [ ] 2. Refund payments\n  - _Requirements: 2.1_\n",
  "src/api/orders.ts": "export const orders = [];\n",
  "src/api/orders.test.ts": "// checkout#1.1\n",
  "README.md": "# Shop\n",
};
