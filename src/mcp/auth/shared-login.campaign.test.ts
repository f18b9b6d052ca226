import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { logInNow, serveWithLogin } from "./login.suite.ts";

const client = join(import.meta.dirname, "testing/race-client.ts");
const run = promisify(execFile);

// The server ends an access token after 2.5 seconds, says nothing of it, and ends the login when an old refresh token comes again.
test("six processes that share a login make all of their 144 calls over rotating refresh tokens", async () => {
  const { config, logins, login, oauth } = await serveWithLogin({ lifetime: 2.5, hidesLifetime: true });
  await logInNow(login);
  const runs = Array.from({ length: 6 }, () => run(process.execPath, [client, config.url ?? "", logins]));
  const counts = (await Promise.all(runs)).map(({ stdout }) => Number(stdout));
  expect(counts).toEqual([24, 24, 24, 24, 24, 24]);
  expect(oauth.isDead).toBe(false);
  expect(oauth.counts.refreshes).toBeGreaterThan(1);
});

test("processes that are killed while they renew leave a login that works, or one that says that it has ended", async () => {
  const { config, logins, login, oauth } = await serveWithLogin({ lifetime: 0.2, hidesLifetime: true });
  await logInNow(login);
  for (let round = 0; round < 8; round += 1) {
    const killed = execFile(process.execPath, [client, config.url ?? "", logins]);
    await new Promise((done) => setTimeout(done, 900 + 60 * round));
    killed.kill("SIGKILL");
    await new Promise((done) => killed.once("exit", done));
    const { server, tokens } = login.file.read();
    expect(server).toBe(config.url);
    if (oauth.isDead) break;
    expect(tokens?.refresh_token).toBeDefined();
  }
  const answered = async (): Promise<number> =>
    Number((await run(process.execPath, [client, config.url ?? "", logins])).stdout);
  // The request of a killed process can reach the server after its end.
  const isOver = oauth.isDead || ((await answered()) === 0 && oauth.isDead);
  if (isOver) {
    oauth.isDead = false;
    await logInNow(login);
  }
  expect(await answered()).toBe(24);
});
