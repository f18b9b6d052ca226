import type { RemoteSubject } from "../../remote/testing/remote.suite.ts";
import { runloop } from "../runloop-sandbox.ts";
import { startFakeRunloop } from "./fake-runloop.ts";

/** Runloop's own package, connected to the fake. */
export const runloopSubject: RemoteSubject = {
  name: "runloop",
  startFake: startFakeRunloop,
  factory: ({ url }, options) => runloop({ ...options, apiKey: "rl_test", apiUrl: url }),
};
