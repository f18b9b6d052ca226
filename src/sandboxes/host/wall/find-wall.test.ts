import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { local } from "../../local/local-sandbox.ts";
import { virtual } from "../../virtual/virtual-sandbox.ts";
import { checkRequired, findWallOf, mergeIsolation } from "./find-wall.ts";
import { toolFolders } from "./system-folders.ts";
import { wallTest } from "./walled.suite.ts";

const owner = { agent: "tester", instance_id: "1", session: "default" };

test("required isolation on a machine without it runs no command, and the error tells how to enable it", () => {
  const none = {
    wall: "none",
    description: "Commands run without isolation: bubblewrap is not installed.",
    hint: "Install it: 'apt install bubblewrap'.",
  } as const;
  expect(() => checkRequired("required", none)).toThrow(
    /sandbox\.isolation is "required".*not installed\..*apt install bubblewrap/,
  );
  expect(() => checkRequired("auto", none)).not.toThrow();
});

test.each([
  ["win32", "kit cannot isolate commands on Windows."],
  ["freebsd", "kit cannot isolate commands on freebsd."],
] as const)("%s cannot isolate commands, and the hint names systems that can", async (platform, reason) => {
  const wall = await findWallOf(platform);
  expect(wall).toMatchObject({ wall: "none", reason, hint: expect.stringContaining("WSL 2") });
});

test("a workspace that contains system folders reports no isolation, and runs no command if isolation is required", async () => {
  const sandbox = await local({ root: "/", isolation: "required" }).open(owner);
  await expect(sandbox.exec({ command: "true" })).rejects.toMatchObject({ code: "unavailable" });
  const plain = await local({ root: "/" }).open(owner);
  expect(await plain.isolation?.()).toMatchObject({
    wall: "none",
    description: expect.stringContaining("run without isolation"),
  });
  expect((await plain.exec({ command: "echo $HOME" })).stdout).toBe(`${process.env.HOME}\n`);
});

wallTest("a sandbox and its factory describe the isolation in one line", async () => {
  for (const factory of [
    local({ root: join(import.meta.dirname) }),
    virtual({ folder: join(tmpdir(), "kit-none") }),
  ]) {
    const isolation = await factory.isolation?.({});
    expect(isolation).toMatchObject({
      wall: "bubblewrap",
      description: expect.stringMatching(/^Commands are walled in by bubblewrap:[^\n]+\.$/),
    });
    expect(await factory.isolation?.({ isolation: { isolation: "off" } })).toMatchObject({ wall: "none" });
  }
});

test("an option overrides the configuration, except 'required'", () => {
  expect(mergeIsolation({}, undefined).isolation).toBe("auto");
  expect(mergeIsolation({ isolation: "off" }, { isolation: "auto" }).isolation).toBe("off");
  expect(mergeIsolation({}, { isolation: "off" }).isolation).toBe("off");
  expect(mergeIsolation({ isolation: "off" }, { isolation: "required" }).isolation).toBe("required");
  const limits = { limits: { memoryMb: 1 } };
  expect(mergeIsolation(limits, { limits: { processes: 2, memoryMb: 3 } }).limits).toEqual({
    processes: 2,
    memoryMb: 1,
  });
});

test("a command sees the programs and libraries of the search path, never a home or a project", () => {
  const home = "/home/ann";
  for (const path of ["/", home, "/home", "/etc", "/etc/..", "/work", "relative:", "/usr/bin:/bin"]) {
    const seen = toolFolders(path, [home, "/work"]);
    for (const folder of ["/", "/home", "/work", "/etc", "/usr"]) expect(seen).not.toContain(folder);
  }
});
