import { readdirSync, readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { createPython } from "./create-python.ts";

const python = createPython();
afterAll(() => python.close());

const attempts: readonly string[] = [
  "open('/etc/passwd').read()",
  "open('out.txt', 'w')",
  "from pathlib import Path\nPath('/etc/passwd').read_text()",
  "from pathlib import Path\nPath('/tmp/kit-python').write_text('x')",
  "from pathlib import Path\nlist(Path('/').iterdir())",
  "from pathlib import Path\nPath('/etc').exists()",
  "import os\nos.environ",
  "import os\nos.getenv('HOME')",
  "import os\nos.system('id')",
  "import os\nos.listdir('/')",
  "import os\nos.fork()",
  "import os\nos.popen('id')",
  "import subprocess",
  "import socket",
  "import urllib.request",
  "import http.client",
  "import ctypes",
  "import importlib",
  "import multiprocessing",
  "import threading",
  "import signal",
  "import shutil",
  "import pickle",
  "import builtins",
  "__import__('os')",
  "eval('1')",
  "exec('x = 1')",
  "compile('1', 'x', 'eval')",
  "globals()",
  "().__class__.__bases__[0].__subclasses__()",
  "(lambda: 0).__globals__",
  "(lambda: 0).__code__",
  "[].__class__.__mro__",
  "type('X', (), {})",
  "getattr([], '__class__').__base__",
  "'{0.__class__.__mro__}'.format([])",
  "input()",
  "breakpoint()",
  "import sys\nsys.modules",
  "import sys\nsys._getframe()",
  "import sys\nsys.exit(0)",
  "import asyncio\nasyncio.create_subprocess_exec('id')",
  "import asyncio\nasyncio.open_connection('127.0.0.1', 80)",
];

for (const code of attempts) {
  test(`${JSON.stringify(code)} is refused`, async () => {
    const before = readdirSync(".");
    await expect(python.createSession().run(code)).rejects.toMatchObject({ code: "python_error" });
    expect(readdirSync(".")).toEqual(before);
  });
}

test("Python can call functions by their given names only", async () => {
  const called: string[] = [];
  const functions = { allowed: () => called.push("allowed") };
  const session = python.createSession();
  for (const code of [
    "toString()",
    "constructor()",
    "hasOwnProperty('a')",
    "__proto__()",
    "call()",
    "new()",
  ]) {
    await expect(session.run(code, { functions })).rejects.toMatchObject({
      exception: { type: "NameError" },
    });
  }
  expect(called).toEqual([]);
});

test.skipIf(process.platform !== "linux")("the process inherits nothing of the environment", async () => {
  process.env.KIT_TEST_SECRET = "secret-of-the-host";
  const session = python.createSession();
  const before = new Set(childProcesses());
  await session.run("1");
  const run = session.run("wait()", {
    functions: { wait: () => childProcesses().filter((pid) => !before.has(pid)) },
  });
  const pids = (await run).result as readonly number[];
  delete process.env.KIT_TEST_SECRET;
  const own = [...before, ...pids].map((pid) => readFileSync(`/proc/${pid}/environ`, "utf8"));
  expect(own.length).toBeGreaterThan(0);
  expect(own.join("\n")).not.toContain("secret-of-the-host");
});

function childProcesses(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1] === String(process.pid)
        );
      } catch {
        return false;
      }
    });
}
