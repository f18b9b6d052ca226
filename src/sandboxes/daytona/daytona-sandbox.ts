import type { SandboxFactory } from "../contract.ts";
import { createRemoteFactory } from "../remote/remote-factory.ts";
import type { DaytonaOptions } from "./daytona-driver.ts";

/**
 * A machine of Daytona for every session: started by the first tool that needs it, stopped when idle, and removed with
 * the session. Needs the package `@daytona/sdk`, and `DAYTONA_API_KEY`.
 *
 * @example
 * import { createAgent } from "kit";
 * import { daytona } from "kit/sandboxes/daytona";
 *
 * export default createAgent({ sandbox: daytona({ upload: true, network: ["registry.npmjs.org"] }), allowShell: true })
 */
export function daytona(options: DaytonaOptions = {}): SandboxFactory {
  return createRemoteFactory("daytona", options, async (root) => {
    const { createDaytonaDriver } = await import("./daytona-driver.ts");
    return createDaytonaDriver(options, root);
  });
}
