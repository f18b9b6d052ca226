/**
 * Tries the packed extension in VS Code's own extension host, headless: `npm run test:vscode`. First in a folder without trust, where nothing
 * may start until a person trusts it; then the checks of `editors/vscode/test/checks.cjs`.
 */
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { openBrowser } from "../../tests/browser/open-browser.ts";
import { repositoryRoot } from "../files.ts";
import { prepareCode } from "./prepare-code.ts";

/** The longest time of one step, in ms. */
const limitMs = 240_000;
const code = prepareCode();
const data = mkdtempSync(join(tmpdir(), "kit-code-"));
const workspace = join(data, "workspace");
const marker = join(data, "started");
const results = join(data, "results.json");

cpSync(join(repositoryRoot, "examples/shop"), workspace, { recursive: true });
rmSync(join(workspace, ".kit"), { recursive: true, force: true });
// The folder's kit leaves a mark when anything starts it.
const kit = join(workspace, "node_modules/.bin/kit");
mkdirSync(join(workspace, "node_modules/.bin"), { recursive: true });
writeFileSync(
  kit,
  `#!/bin/sh\necho started >> '${marker}'\nexec '${join(repositoryRoot, "bin/kit.mjs")}' "$@"\n`,
);
chmodSync(kit, 0o755);
mkdirSync(join(data, "server/data/User"), { recursive: true });
const settings = {
  // In a browser VS Code saves after a second, and nothing would stay unsaved.
  "files.autoSave": "off",
  "security.workspace.trust.startupPrompt": "never",
  "telemetry.telemetryLevel": "off",
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "workbench.startupEditor": "none",
  "chat.disableAIFeatures": true,
  "git.enabled": false,
};
writeFileSync(join(data, "server/data/User/settings.json"), JSON.stringify(settings));

const folderOptions = [
  "--server-data-dir",
  join(data, "server"),
  "--extensions-dir",
  join(data, "extensions"),
];
const main = join(code, "out/server-main.js");
const vsix = join(repositoryRoot, "editors/vscode/dist/kit.vsix");
execFileSync(process.execPath, [main, ...folderOptions, "--install-extension", vsix], {
  env: { ...process.env, HOME: data },
});
const [installed = ""] = globSync(join(data, "extensions/kit.kit-*"));

const browser = await openBrowser();
let failed = false;
try {
  await inCode(browser, [], async (page, address) => {
    await page.goto(address);
    await page.getByText("Restricted Mode").first().waitFor({ timeout: limitMs });
    await sleep(10_000);
    check("nothing is started in a folder without trust", !existsSync(marker));
    await page.keyboard.press("F1");
    await page.keyboard.type("Workspaces: Manage Workspace Trust");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Trust", exact: true }).first().click({ timeout: limitMs });
    check("kit starts once a person trusts the folder", await appears(marker));
  });
  await inCode(browser, ["--disable-workspace-trust"], async (page, address, host) => {
    const { promise: ended, resolve: end } = Promise.withResolvers<unknown>();
    await page.exposeFunction("codeAutomationLog", () => undefined);
    await page.exposeFunction("codeAutomationExit", end);
    const remote = (path: string): string => `vscode-remote://${host}${path}`;
    const payload = [
      ["extensionDevelopmentPath", remote(installed)],
      ["extensionTestsPath", remote(join(repositoryRoot, "editors/vscode/test/checks.cjs"))],
    ];
    await page.goto(`${address}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
    const code = await Promise.race([ended, sleep(limitMs, "no end", { ref: false })]);
    const seen: { name: string; ms: number; error?: string }[] = existsSync(results)
      ? JSON.parse(readFileSync(results, "utf8"))
      : [];
    for (const { name, ms, error } of seen) check(`${name} (${ms} ms)`, error === undefined, error);
    check("the checks come to their end", code === 0 && seen.length > 0, String(code));
  });
} finally {
  await browser.close();
}
if (failed)
  for (const log of globSync(join(data, "server/data/logs/**/*kit*.log")))
    console.log(readFileSync(log, "utf8").slice(-3_000));
rmSync(data, { recursive: true, force: true, maxRetries: 3 });
process.exitCode = failed ? 1 : 0;

function check(name: string, isRight: boolean, error = ""): void {
  if (!isRight) failed = true;
  console.log(`${isRight ? "ok  " : "FAIL"} ${name}${isRight || error === "" ? "" : `\n     ${error}`}`);
}

/** Opens the workspace in a server of VS Code of its own. */
async function inCode(
  inside: Browser,
  options: readonly string[],
  use: (page: Page, address: string, host: string) => Promise<void>,
): Promise<void> {
  const host = `127.0.0.1:${await freePort()}`;
  const args = [
    ...["--host", "127.0.0.1", "--port", host.split(":")[1] ?? "", "--without-connection-token"],
    ...["--accept-server-license-terms", "--disable-telemetry"],
    // A built VS Code reads the test of the address only with it.
    "--enable-smoke-test-driver",
    // Otherwise the host takes its PATH from a login shell.
    "--force-disable-user-env",
  ];
  const server = spawn(process.execPath, [main, ...folderOptions, ...args, ...options], {
    stdio: "ignore",
    env: { ...process.env, HOME: data, KIT_TEST_RESULTS: results },
  });
  const context = await inside.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    for (
      let tries = 0;
      !(await fetch(`http://${host}/version`).then(
        ({ ok }) => ok,
        () => false,
      ));
      tries += 1
    ) {
      if (tries > 600) throw new Error("The server of VS Code does not answer.");
      await sleep(100);
    }
    const page = await context.newPage();
    await use(page, `http://${host}/?folder=${encodeURIComponent(workspace)}`, host);
  } finally {
    await context.close();
    const { promise, resolve } = Promise.withResolvers<unknown>();
    server.once("exit", resolve);
    server.kill();
    await promise;
  }
}

async function appears(file: string): Promise<boolean> {
  for (let tries = 0; tries < 600; tries += 1) {
    if (existsSync(file)) return true;
    await sleep(100);
  }
  return false;
}

async function freePort(): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const address = probe.address();
    probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
  });
  return await promise;
}
