/** `kit/stores/sqlite`: sessions in one SQLite file, with nothing but Node. */
import "../../base/require-node.ts";

export { SqliteSessionStore, type SqliteSessionStoreOptions } from "./sqlite-store.ts";
