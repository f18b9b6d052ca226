import { describe, test } from "vitest";
import { type SessionStoreSubject, sessionStoreCases } from "./contract-cases.ts";

/** Registers the promises of `SessionStore` as tests of this repository. */
export function sessionStoreContract(subject: SessionStoreSubject & { readonly name: string }): void {
  describe(`${subject.name} as a session store`, () => {
    for (const { name, run } of sessionStoreCases(subject)) test(name, run);
  });
}
