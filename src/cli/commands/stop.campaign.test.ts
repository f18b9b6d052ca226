import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { startOf } from "../../processes/is-alive.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { bootMark } from "../running-server.ts";
import { beginProcess, runKit } from "../testing/run-kit.ts";
import { endAll, type Running, serveKit } from "../testing/served-kit.ts";

const running: Running = new Map();
afterEach(() => endAll(running));

test("stop ends the servers of this project and of no other, and says which", async () => {
  await using project = await createTemporaryRepository({ "kit.toml": "" });
  await using other = await createTemporaryRepository({ "kit.toml": "" });
  const none = await runKit(["stop"], { cwd: project.root });
  expect([none.exitCode, none.stderr]).toEqual([
    1,
    expect.stringContaining("No server runs for this project."),
  ]);
  const [mine, its] = await Promise.all(
    [project, other].map(({ root }) =>
      serveKit(running, ["dev", "--port", "0"], { cwd: root, begin: beginProcess }),
    ),
  );
  const { stderr, exitCode } = await runKit(["stop"], { cwd: project.root });
  expect(exitCode).toBe(0);
  expect(stderr).toContain(`Stopped the server at ${mine?.url}`);
  await expect(fetch(`${mine?.url}/health`)).rejects.toThrow();
  expect((await fetch(`${its?.url}/health`)).status).toBe(200);
  expect(its?.stdout()).toContain("'kit stop' (process ");
});

test("stop --now kills a server, as a crash would", async () => {
  await using project = await createTemporaryRepository({ "kit.toml": "" });
  const served = await serveKit(running, ["start", "--port", "0"], {
    cwd: project.root,
    begin: beginProcess,
  });
  expect((await runKit(["stop", "--now"], { cwd: project.root })).exitCode).toBe(0);
  await expect(fetch(`${served.url}/health`)).rejects.toThrow();
});

test.skipIf(startOf(process.pid) === "0")(
  "stop leaves a process alone that only has the id of a server",
  async () => {
    await using project = await createTemporaryRepository({ "kit.toml": "" });
    const served = await serveKit(running, ["start", "--port", "0"], { cwd: project.root });
    const folder = join(project.root, ".kit/servers");
    mkdirSync(folder, { recursive: true });
    const record = {
      url: served.url,
      pid: process.ppid,
      started_at: "2026-01-01T00:00:00.000Z",
      boot: bootMark(),
    };
    for (const started of [undefined, "1"]) {
      // The record of this process, which the served kit shares, names another start.
      for (const pid of [process.ppid, process.pid])
        writeFileSync(join(folder, `${pid}.json`), JSON.stringify({ ...record, pid, process: started }));
      expect((await runKit(["stop", "--now"], { cwd: project.root })).exitCode).toBe(1);
    }
    expect((await fetch(`${served.url}/health`)).status).toBe(200);
  },
);
