import type { SandboxFactory } from "../contract.ts";
import { createRemoteFactory } from "../remote/remote-factory.ts";
import type { RunloopOptions } from "./runloop-options.ts";

/**
 * A machine of Runloop for every session, started by the first tool that needs it, suspended when nothing happens, and
 * removed with the session. Needs the package `@runloop/api-client`, and `RUNLOOP_API_KEY`.
 *
 * @example
 * import { createAgent } from "kit";
 * import { runloop } from "kit/sandboxes/runloop";
 *
 * export default createAgent({ sandbox: runloop({ upload: true, network: ["registry.npmjs.org"] }), allowShell: true })
 */
export function runloop(options: RunloopOptions = {}): SandboxFactory {
  return createRemoteFactory("runloop", options, async (root) => {
    const { createRunloopDriver } = await import("./runloop-driver.ts");
    return createRunloopDriver(options, root);
  });
}
