/** A server of a project on disk, until it is killed. Argument: the root. It sends its address as a message. */
import { join } from "node:path";
import { openProject } from "../../../src/project/open-project.ts";
import { createServer } from "../../../src/server/create-server.ts";
import { createEchoModel } from "../../../src/server/testing/echo-model.ts";
import { SqliteSessionStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { createTestService } from "../../../src/testing/test-service.ts";

const [root = ""] = process.argv.slice(2);
const service = await createTestService(
  {
    root,
    model: createEchoModel().model,
    store: new SqliteSessionStore({ file: join(root, "sessions.db") }),
    engineFolder: join(root, "engine"),
  },
  { leaseMs: 500 },
);
const server = createServer({ project: await openProject({ root }), service });
process.send?.((await server.listen({ port: 0 })).url);
