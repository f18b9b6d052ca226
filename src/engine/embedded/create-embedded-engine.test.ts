import { join } from "node:path";
import { afterAll } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { engineContract } from "../contract.suite.ts";
import { createEmbeddedEngine } from "./create-embedded-engine.ts";

const root = testFolder(afterAll);
let count = 0;
let folder = "";

engineContract({
  name: "The embedded engine, on disk",
  create: (limits = {}) => {
    count += 1;
    folder = join(root, `${count}`);
    return createEmbeddedEngine({ folder, limits });
  },
  reopen: (limits = {}) => createEmbeddedEngine({ folder, limits }),
});

engineContract({
  name: "The embedded engine, in memory",
  create: (limits = {}) => createEmbeddedEngine({ limits }),
});
