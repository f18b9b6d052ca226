import { sessionStoreContract } from "../contract.suite.ts";
import { InMemorySessionStore } from "./memory-store.ts";

sessionStoreContract({ name: "InMemorySessionStore", create: () => new InMemorySessionStore() });
