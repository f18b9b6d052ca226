import "../../base/require-node.ts";

export type { VirtualOptions } from "./virtual-options.ts";

/** `kit/sandboxes/virtual`: a workspace of its own for every session. */
export { virtual } from "./virtual-sandbox.ts";
