import type { RemoteSubject } from "../../remote/testing/remote.suite.ts";
import { e2b } from "../e2b-sandbox.ts";
import { startFakeE2b } from "./fake-e2b.ts";

/** E2B's own package, connected to the fake. */
export const e2bSubject: RemoteSubject = {
  name: "e2b",
  startFake: startFakeE2b,
  factory: ({ url }, options) => e2b({ ...options, apiKey: "e2b_test", apiUrl: url, sandboxUrl: url }),
};
