import "../../base/require-node.ts";

export type { RemoteOptions } from "../remote/remote-options.ts";

/** `kit/sandboxes/daytona`: machines of Daytona as sandboxes. */
export type { DaytonaOptions } from "./daytona-driver.ts";
export { daytona } from "./daytona-sandbox.ts";
