import { expect, test } from "vitest";
import { isTestPath } from "./mentions.ts";

test.each([
  "src/auth/login.test.ts",
  "src/auth/login.spec.tsx",
  "tests/auth.py",
  "tests/unit/test_auth.py",
  "pkg/auth/login_test.go",
  "spec/models/user_spec.rb",
  "src/test/java/LoginTest.java",
  "Auth/LoginTests.cs",
  "src/__tests__/login.js",
  "crates/auth/src/tests.rs",
  "e2e/login.ts",
  "web/login.cy.ts",
  "features/returns.feature",
  "test.mjs",
])("%s is a test", (path) => {
  expect(isTestPath(path)).toBe(true);
});

test.each([
  "src/auth/login.ts",
  "specs/001-login/spec.md",
  "tests/fixtures/data.json",
  "tests/README.md",
  "src/contest.ts",
  "src/latest.py",
  "src/attestation/verify.go",
  "src/Manifest.java",
  "src/inspect.rb",
  ".test",
  "tests",
  "src/unit.ts",
])("%s is not a test", (path) => {
  expect(isTestPath(path)).toBe(false);
});
