import { expect, test } from "vitest";
import { kiroAdapter } from "../adapters/kiro/kiro-adapter.ts";
import { assembleBlocks } from "../model/assemble-blocks.ts";
import { exportSpecs } from "./export-specs.ts";
import { textOutsideBlocks } from "./text-outside-blocks.ts";

const path = ".kiro/specs/auth/requirements.md";
const text = `# Requirements Document

## Introduction

Users log in.
They log out.

## Glossary

- User: a person

## Requirements

### Requirement 1

#### Acceptance Criteria

1. THE system SHALL log in
`;

function lossOf(source: string): string | undefined {
  const blocks = assembleBlocks([{ path, parsed: kiroAdapter.parse({ path, text: source }) }]).blocks;
  const written = exportSpecs(blocks, "fw_a").files[0]?.content ?? "";
  return textOutsideBlocks({ source: { path, text: source }, blocks, written });
}

test("text outside of blocks is listed with its lines and headings", () => {
  expect(lossOf(text)).toBe(
    `${path}: 3 lines outside of specs are left out: 5–6 (Introduction), 10 (Glossary).`,
  );
});

test("headings that the export writes anyway, comments and blank lines are no losses", () => {
  expect(
    lossOf(text.replace(/## Introduction[\s\S]*(?=## Requirements)/, "<!-- note -->\n\n")),
  ).toBeUndefined();
});

test("a file without any spec is lost whole, and said so", () => {
  expect(lossOf("# Notes\n\nOnly words.\n")).toBe(
    `${path}: no spec was read from it, so nothing of it is exported.`,
  );
});
