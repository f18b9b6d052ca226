import { describe, test } from "vitest";
import { type EngineSubject, engineCases } from "./contract-cases.ts";

/** The promises of `Engine`, for the tests of this repository. */
export function engineContract(subject: EngineSubject & { readonly name: string }): void {
  describe(`${subject.name} as an engine`, () => {
    for (const { name, run } of engineCases(subject)) test(name, run);
  });
}
