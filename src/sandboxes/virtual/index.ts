import "../../base/require-node.ts";

export type { VirtualOptions } from "./virtual-options.ts";

/** `kit/sandboxes/virtual`: a separate workspace for every session. */
export { virtual } from "./virtual-sandbox.ts";
