/** `kit/stores/sqlite`: sessions in one SQLite file, without another package. */
import "../../base/require-node.ts";

export { SqliteSessionStore, type SqliteSessionStoreOptions } from "./sqlite-store.ts";
