/** Tests the screen of a run of `kit.spec` in a real browser, against a server in this process, with a real run. */
import { expect, onTestFinished } from "vitest";
import { loadConfig } from "../../../src/app/config/load-config.ts";
import { openProjectService } from "../../../src/app/service/open-project-service.ts";
import type { CoderMode } from "../../../src/app/spec-run/testing/coder.ts";
import { specRepository } from "../../../src/app/spec-run/testing/spec-repository.ts";
import { openProject } from "../../../src/project/open-project.ts";
import type { SpecRunBody } from "../../../src/protocol/spec-run.ts";
import { wallTest } from "../../../src/sandboxes/host/wall/walled.suite.ts";
import { createServer } from "../../../src/server/create-server.ts";
import { InMemorySessionStore } from "../../../src/stores/memory/memory-store.ts";
import { browserForTests } from "../browser-for-tests.ts";
import { checkWidths, openScreen, violations } from "./open-console.ts";

const modes: readonly CoderMode[] = ["honest", "hurried"];

const browser = browserForTests();

/** A server of a repository with the spec `cart`; `start` begins a run of its tasks. */
async function serveSpec() {
  const repository = await specRepository({}, modes);
  const { root, git } = repository;
  const loaded = await loadConfig({ cwd: root, environment: {} });
  const project = await openProject({ root, config: loaded.config, indexFile: ":memory:" });
  const service = await openProjectService({
    project,
    loaded,
    store: new InMemorySessionStore(),
  });
  const options = { limits: { closeGraceMs: 500 }, project, service };
  const server = createServer(options);
  const readOnly = createServer({ ...options, console: "read" });
  const [{ port }, other] = await Promise.all([server.listen({ port: 0 }), readOnly.listen({ port: 0 })]);
  onTestFinished(async () => {
    await Promise.all([server.close(), readOnly.close()]);
    await service.close({ timeoutMs: 0 });
    await project.close();
    await repository[Symbol.asyncDispose]();
  });
  return {
    git,
    url: `http://127.0.0.1:${port}`,
    readOnlyUrl: `http://127.0.0.1:${other.port}`,
    async start(body: Omit<SpecRunBody, "feature">): Promise<string> {
      return (await service.startRun("kit.spec", { feature: "cart", ...body })).run_id;
    },
  };
}

wallTest(
  "a spec run shows a refused attempt and its tests, and closes the task that a person accepts",
  async () => {
    const { url, git, start } = await serveSpec();
    const runId = await start({ agent: "hurried", tasks: ["1.1", "2"] });
    await using opened = await openScreen(browser, { url, path: "/" });
    const { page } = opened;
    await page.getByRole("link", { name: /Task 2 of cart/ }).click({ timeout: 90_000 });
    await page.getByRole("heading", { name: "Tasks of cart" }).waitFor();
    expect(page.url()).toBe(`${url}/console/runs/${runId}`);
    await page.getByText("1 of 2 closed · 1 waits for you").waitFor();

    const first = page.getByRole("listitem").filter({ hasText: "Add up" }).first();
    await first.getByText("Add up").click();
    await first.getByRole("heading", { name: "Attempt 1: refused" }).waitFor();
    await first.getByText("asserts-nothing").waitFor();
    await first.getByText("cart#1.1 adds up").waitFor();
    await first.getByText(/faults were put into the changed lines: [1-9]/).waitFor();
    await expect.poll(() => violations(page)).toEqual([]);

    await page.getByText("added: export const tidied = true;").waitFor();
    await page.getByRole("button", { name: "Accept" }).click();
    await page.getByText("2 of 2 closed").waitFor();
    await page.getByText("git merge kit/cart").waitFor();
    await page.getByText("Tidy up", { exact: true }).click();
    await page.getByText("A person has accepted it.").waitFor();
    expect(await page.getByRole("button", { name: "Accept" }).count()).toBe(0);
    expect(await git("log", "--format=%s", "main..kit/cart")).toBe("Tidy up\nAdd up");
    await checkWidths(opened, "the run");
  },
);

wallTest(
  "the agent gets what a person misses as its next prompt, and a read-only page has no decision",
  async () => {
    const { url, readOnlyUrl, start } = await serveSpec();
    const runId = await start({ agent: "honest", tasks: ["2"] });
    await using opened = await openScreen(browser, { url, path: "/console/approvals", width: 390 });
    const { page } = opened;
    await page.getByRole("heading", { name: "Task 2 of cart: Tidy up" }).waitFor({ timeout: 90_000 });
    await page.getByRole("link", { name: "Look at the change and decide" }).click();
    await page.getByRole("button", { name: "Accept" }).waitFor();
    await using looking = await openScreen(browser, { url: readOnlyUrl, path: `/console/runs/${runId}` });
    await looking.page.getByText("added: export const tidied = true;").waitFor();
    expect(await looking.page.getByRole("button", { name: /Accept|Not yet/ }).count()).toBe(0);
    await page.getByLabel("What is missing?").fill("Explain it.");
    await page.getByRole("button", { name: "Not yet" }).click();
    await page.getByText("attempt 2").waitFor();
    await page.getByRole("button", { name: "Not yet" }).click();
    await page.getByText("not accepted", { exact: true }).waitFor();
    await page.getByText("0 of 1 closed · 1 not done").waitFor();
    expect(opened.faults).toEqual([]);
  },
);
