import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createPython } from "./create-python.ts";

const onLinux = test.skipIf(process.platform !== "linux");

/** The processes whose parent is `parent`, from /proc. */
async function childrenOf(parent: number): Promise<readonly number[]> {
  const children: number[] = [];
  for (const name of await readdir("/proc")) {
    const stat = await readFile(`/proc/${name}/stat`, "utf8").catch(() => "");
    // The name of the program, in brackets, may hold anything; the state and the parent follow it.
    const [state, id] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (Number(id) === parent && state !== "Z") children.push(Number(name));
  }
  return children;
}

onLinux("a process that is killed from outside is a SystemError, and the next run has another", async () => {
  const python = createPython();
  const session = python.createSession();
  await session.run("kept = 1");
  const before = await childrenOf(process.pid);
  const functions = {
    kill: async () => {
      for (const pid of before) process.kill(pid, "SIGKILL");
      await new Promise(() => undefined);
    },
  };
  await expect(session.run("kill()", { functions })).rejects.toMatchObject({
    code: "python_error",
    exception: { type: "SystemError", message: "the interpreter broke down" },
  });
  expect((await session.run("kept")).result).toBe(1);
  await python.close();
  expect(await childrenOf(process.pid)).toEqual([]);
});

onLinux("processes without work end by themselves, and keep no host from ending", async () => {
  const python = createPython({ idleMs: 100 });
  await Promise.all([python.createSession().run("1"), python.createSession().run("2")]);
  await expect.poll(() => childrenOf(process.pid)).toEqual([]);
  expect((await python.createSession().run("3")).result).toBe(3);
  await python.close();
});

onLinux("a program that never closes its Python ends all the same", async () => {
  const { child, folder } = await startHost(`await python.createSession().run("1");`);
  const [code] = await once(child, "exit");
  expect(code).toBe(0);
  await rm(folder, { recursive: true });
});

onLinux("nothing computes on when its host is killed", async () => {
  const { child, folder } = await startHost(`
    void python.createSession().run("while True: pass", { resourceLimits: {} });
    void python.createSession().run("(10 ** 40000000) // (10 ** 20000000 + 1)", { resourceLimits: {} });
    await new Promise(() => setInterval(() => undefined, 1000));`);
  const pid = child.pid ?? 0;
  await expect.poll(() => childrenOf(pid)).toHaveLength(2);
  const computing = await childrenOf(pid);
  await new Promise((resolve) => setTimeout(resolve, 500));
  child.kill("SIGKILL");
  await once(child, "exit");
  const isGone = async (one: number): Promise<boolean> => {
    const stat = await readFile(`/proc/${one}/stat`, "utf8").catch(() => "");
    return stat === "" || stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  };
  for (const one of computing) await expect.poll(() => isGone(one)).toBe(true);
  await rm(folder, { recursive: true });
});

async function startHost(body: string): Promise<{ child: ReturnType<typeof spawn>; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), "kit-python-"));
  const file = join(folder, "host.mjs");
  const entry = new URL("./index.ts", import.meta.url).href;
  await writeFile(
    file,
    `import { createPython } from ${JSON.stringify(entry)};\nconst python = createPython({ maxRunning: 2 });\n${body}\n`,
  );
  return { child: spawn(process.execPath, ["--no-warnings", file], { stdio: "ignore" }), folder };
}
