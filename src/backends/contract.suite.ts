import { describe, test } from "vitest";
import { backendCases } from "../testing/backend/backend-cases.ts";
import type { BackendSubject } from "../testing/backend/backend-stage.ts";

/** The promises that every backend keeps, for the tests of this repository. */
export function backendContract(subject: BackendSubject & { readonly name: string }): void {
  describe(`agents under the backend ${subject.name}`, () => {
    for (const { name, run } of backendCases(subject)) test(name, run);
  });
}
