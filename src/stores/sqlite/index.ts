/** `kit/stores/sqlite`: sessions in one SQLite file, with nothing but Node. */
export { SqliteSessionStore, type SqliteSessionStoreOptions } from "./sqlite-store.ts";
