import { SqliteSessionStore } from "../../../stores/sqlite/sqlite-store.ts";
import { virtual } from "../../virtual/virtual-sandbox.ts";
import { persistWorkspaces } from "../persistent-sandbox.ts";

/** A machine that changes a workspace until it is killed, and prints each saved change. */
const [file = "", folder = ""] = process.argv.slice(2);
const store = new SqliteSessionStore({ file });
const sandbox = await persistWorkspaces(virtual({ folder, isolation: "off" }), {
  store: store.workspaces,
  maxBytes: 100_000_000,
}).open({ agent: "writer", instance_id: "pr-7", session: "default" });
const existingFiles = (await sandbox.glob("**")).paths.length;
for (let index = existingFiles; ; index += 1) {
  // Larger than a piece, so that a kill can interrupt the write of one.
  await sandbox.writeFile(`file-${index}`, `${index} `.repeat(400_000));
  process.stdout.write(`${index}\n`);
}
