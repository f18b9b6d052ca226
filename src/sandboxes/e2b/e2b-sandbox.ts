import type { SandboxFactory } from "../contract.ts";
import { createRemoteFactory } from "../remote/remote-factory.ts";
import type { E2bOptions } from "./e2b-driver.ts";

/**
 * A machine of E2B for every session: started by the first tool that needs it, paused when idle, and removed with the
 * session. Needs the package `e2b`, and `E2B_API_KEY`.
 *
 * @example
 * import { createAgent } from "kit";
 * import { e2b } from "kit/sandboxes/e2b";
 *
 * export default createAgent({ sandbox: e2b({ upload: true, network: ["registry.npmjs.org"] }), allowShell: true })
 */
export function e2b(options: E2bOptions = {}): SandboxFactory {
  return createRemoteFactory("e2b", options, async (root) => {
    const { createE2bDriver } = await import("./e2b-driver.ts");
    return createE2bDriver(options, root);
  });
}
