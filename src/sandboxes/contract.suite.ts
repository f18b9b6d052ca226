import { describe, test } from "vitest";
import { type SandboxSubject, sandboxCases } from "./contract-cases.ts";

/** Registers the promises of `Sandbox` as tests of this repository. */
export function sandboxContract(subject: SandboxSubject & { readonly name: string }): void {
  describe(`${subject.name} as a sandbox`, () => {
    for (const { name, run } of sandboxCases(subject)) test(name, run);
  });
}
