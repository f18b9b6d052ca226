import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { faultsOfPublicNames } from "./public-names.ts";

function faultsOf(code: string): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "kit-public-names-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "made.ts"), code);
  const names = [...code.matchAll(/export (?:async )?(?:function|class|interface|type) (\w+)/g)].map(
    ([, name]) => name,
  );
  writeFileSync(join(folder, "index.ts"), `export { ${names.join(", ")} } from "./made.ts";\n`);
  return faultsOfPublicNames([join(folder, "index.ts")]).map(({ fault }) => fault);
}

test("a public function or class without an example is a fault, even if its neighbour has one", () => {
  const example = "/**\n * Makes one.\n *\n * @example\n * make();\n */\n";
  expect(faultsOf(`${example}export function make(): void {}\n`)).toEqual([]);
  expect(faultsOf(`${example}export function make(): void {}\n\nexport async function other() {}\n`)).toEqual(
    ["other is public and has no @example."],
  );
  expect(faultsOf("/** A plain one. */\nexport class Plain {}\n")).toEqual([
    "Plain is public and has no @example.",
  ]);
});

test("an object type with names of both cases is a fault, but a deprecated alias does not count", () => {
  expect(
    faultsOf("export interface Call { readonly toolName: string; readonly tool_call_id: string }\n"),
  ).toEqual(["Call mixes cases: tool_call_id, toolName."]);
  expect(
    faultsOf("export type Call = { readonly inner: { tool_name: string; callId: string } };\n"),
  ).toHaveLength(1);
  expect(
    faultsOf(
      "export interface Call {\n  readonly callId: string;\n  /** @deprecated Use `callId`. */\n  readonly call_id: string;\n}\n",
    ),
  ).toEqual([]);
});
