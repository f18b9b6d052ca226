/** `kit/sandboxes/daytona`: machines of Daytona as sandboxes. */
import "../../base/require-node.ts";

export type { RemoteOptions } from "../remote/remote-options.ts";
export type { DaytonaOptions } from "./daytona-options.ts";
export { daytona } from "./daytona-sandbox.ts";
