import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { expect, test } from "vitest";

const src = join(import.meta.dirname, "../..");

/** Loaded before the engine starts, parts of vendors, or no work of a server. */
const isOther =
  /^(app\/(cluster|config\/(config-schema|load-config)|service\/(fenced-store|housekeeping|load-own-code|open-project-service|sync-schedules)|sources|trust)|engine\/|stores\/|backends\/(google-adk|graph|openai-agents)|mcp\/create-mcp-client|models\/recording|project\/(features\/find-overlaps|open-(indexed-)?project|watch)|sandboxes\/(daytona|e2b|modal|runloop))/;

test("a module that work loads while it runs is loaded with the engine", () => {
  const rooms = [
    "agents",
    "app",
    "backends",
    "engine",
    "mcp",
    "models",
    "project",
    "python",
    "sandboxes",
    "workflows",
  ];
  const lazy = new Set<string>();
  for (const room of rooms) {
    for (const path of readdirSync(join(src, room), { recursive: true, encoding: "utf8" })) {
      const file = posix.join(room, path.replaceAll("\\", "/"));
      if (!file.endsWith(".ts") || /\.(test|suite)\.ts$|\/testing\//.test(file)) continue;
      if (file.endsWith("/load-own-code.ts")) continue;
      const code = readFileSync(join(src, file), "utf8").replace(/^\s*(\/\/|\*).*$/gm, "");
      for (const [, to = ""] of code.matchAll(/(?<!typeof )\bimport\(\s*"(\.[^"]+)"/g))
        lazy.add(posix.join(dirname(file), to));
    }
  }
  const code = readFileSync(join(src, "app/service/load-own-code.ts"), "utf8");
  const loaded = [...code.matchAll(/import\("(\.[^"]+)"\)/g)].map(([, to = ""]) =>
    posix.join("app/service", to),
  );
  expect([...lazy].filter((path) => !isOther.test(path) && !loaded.includes(path))).toEqual([]);
});
