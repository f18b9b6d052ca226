/** `kit/stores/memory`: sessions that live as long as the process. */
export { InMemorySessionStore } from "./memory-store.ts";
