/** `kit/stores/memory`: sessions that exist only as long as the process. */
import "../../base/require-node.ts";

export { InMemorySessionStore } from "./memory-store.ts";
