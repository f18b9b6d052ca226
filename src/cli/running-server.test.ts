import { readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { announceServer, findRunningServers } from "./running-server.ts";

test("a server is found again after its state folder was deleted, and Git still ignores the folder", async () => {
  const { root, ...repository } = await createTemporaryRepository({});
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const announced = announceServer(root, url);
  onTestFinished(async () => {
    announced[Symbol.dispose]();
    server.close();
    await repository[Symbol.asyncDispose]();
  });
  expect(await findRunningServers(root)).toMatchObject([{ url, pid: process.pid }]);
  rmSync(join(root, ".kit"), { recursive: true });
  expect(await findRunningServers(root)).toEqual([]);
  await expect.poll(() => findRunningServers(root)).toMatchObject([{ url }]);
  expect(readdirSync(join(root, ".kit"))).toContain(".gitignore");
});
