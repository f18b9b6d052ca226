import { spawnSync } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";

const source = new URL("../../", import.meta.url).href;
/** Raise it for what every prompt needs; load what only some need with the first use. */
const mostModules = 341;

/** Runs a command line in a process of its own; gives the modules of kit that it loads, by their path. */
function modulesOf(args: readonly string[], cwd: string): readonly string[] {
  const script = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load(url, context, next) { if (url.startsWith("${source}")) loaded.push(url.slice(${source.length})); return next(url, context); } });
    const { main } = await import("${source}cli/main.ts");
    await main(${JSON.stringify(args)});
    console.error("loaded " + JSON.stringify(loaded));`;
  const { stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    cwd,
    encoding: "utf8",
  });
  const line = stderr.split("\n").find((text) => text.startsWith("loaded "));
  return JSON.parse(line?.slice("loaded ".length) ?? "[]");
}

test("a prompt loads only the modules that it needs: no engine, workflow, Python, command policy or vendor", () => {
  const folder = testFolder(onTestFinished);
  const shop = join(folder, "shop");
  const isState = (path: string): boolean => path.endsWith("/.kit");
  cpSync(fileURLToPath(new URL("../../../examples/shop", import.meta.url)), shop, {
    recursive: true,
    filter: (path) => !isState(path),
  });
  const modules = modulesOf(["run", "--prompt", "What do you know?"], shop);
  expect(modules).toContain("agents/turn/turn-loop.ts");
  expect(modules.length).toBeLessThanOrEqual(mostModules);
  const unneeded =
    /^engine\/embedded\/|backend-(?:run|turn)|policy\/forms\/|check-command|workflow|^server\/|(?:e2b|modal|daytona|runloop)-sandbox|python-session/;
  const needed = [
    "app/service/built-in-workflows.ts",
    "app/service/workflow-runs.ts",
    "protocol/built-in-workflows.ts",
    "workflows/define-workflow.ts",
  ];
  expect(modules.filter((path) => unneeded.test(path) && !needed.includes(path))).toEqual([]);
});
