import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { guardOf } from "../../../agents/policy/protected-paths.ts";
import { findGuarded } from "./guarded-paths.ts";
import { createFolder, openFilled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const guard = guardOf({}, []);
const access = { write: true, guard };

const openWith = (files: Readonly<Record<string, string>>) => openFilled(folder, files);

/** Runs commands, one after the other, as a user with ordinary rights; returns what each returned or threw. */
function runAsUser(root: string, commands: readonly string[], more: object = { write: true }): string[] {
  const program = `
    const { local } = await import(${JSON.stringify(join(import.meta.dirname, "../../local/local-sandbox.ts"))});
    const { guardOf } = await import(${JSON.stringify(join(import.meta.dirname, "../../../agents/policy/protected-paths.ts"))});
    const sandbox = await local().open({ agent: "a", instance_id: "a", session: "a", project_root: ${JSON.stringify(root)} });
    const access = { ...${JSON.stringify(more)}, guard: guardOf({}, []) };
    const outcomes = [];
    for (const command of ${JSON.stringify(commands)})
      outcomes.push(await sandbox.exec({ command, access }).then(({ stdout, stderr }) => stdout + stderr, (error) => error.code + " " + error.message));
    await sandbox.close();
    console.log(JSON.stringify(outcomes));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    env: { ...process.env, HOME: join(root, "..") },
    ...(process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}),
  });
  expect(stdout, stderr).not.toBe("");
  return JSON.parse(stdout);
}

async function createUserRoot(name: string): Promise<string> {
  const root = join(folder, name, "ws");
  await mkdir(root, { recursive: true });
  if (process.getuid?.() === 0)
    for (const path of [join(folder, name), root]) await chown(path, 65_534, 65_534);
  return root;
}

const makes =
  "git init -q .; echo '{}' > package.json; mkdir .vscode a; echo x > .vscode/tasks.json; echo x > a/.envrc";
const refusedNames = ["a", "refused-.git", "refused-.vscode", "refused-package.json"];

for (const mode of ["0311", "0000", "0444", "0555", "0200"]) {
  wallTest(`new paths in a folder to which a command took the rights (${mode}) are refused`, async () => {
    const root = await createUserRoot(`mode-${mode}`);
    const [outcome, next] = runAsUser(root, [`mkdir p; cd p; ${makes}; chmod ${mode} .`, "echo next"]);
    expect(outcome).toContain('Renamed to "refused-');
    expect(next).toBe("next\n");
    expect((await readdir(join(root, "p"))).sort()).toEqual(refusedNames);
    expect(await readdir(join(root, "p/a"))).toEqual(["refused-.envrc"]);
  });
}

wallTest("new paths in the root are refused if a command took the rights to it", async () => {
  const root = await createUserRoot("mode-root");
  const [outcome] = runAsUser(root, [`${makes}; chmod 0311 .`]);
  expect(outcome).toContain('Renamed to "refused-');
  // The command makes no repository in the root.
  const refused = refusedNames.filter((name) => name !== "refused-.git");
  expect((await readdir(root)).filter((name) => name !== ".kit").sort()).toEqual(refused);
});

wallTest("no command runs in a workspace with a folder that kit cannot read", async () => {
  const root = await createUserRoot("unreadable");
  await mkdir(join(root, "p"));
  await writeFile(join(root, "p/.env"), "A=sesame");
  if (process.getuid?.() === 0)
    for (const path of ["p", "p/.env"]) await chown(join(root, path), 65_534, 65_534);
  await chmod(join(root, "p"), 0o311);
  // Its owner, if that is no root, cannot remove what it cannot list.
  onTestFinished(() => chmod(join(root, "p"), 0o755));
  for (const write of [true, false]) {
    const [outcome] = runAsUser(root, ["cat p/.env"], { write });
    expect(outcome).toMatch(/^unavailable .*"p"/);
  }
});

test("a search that ends at its limit says so", async () => {
  const root = join(folder, "limit");
  for (const name of ["a", "b", "c"]) await mkdir(join(root, name), { recursive: true });
  const search = (maxFolders: number) => findGuarded(root, { guard, skipped: [], maxFolders }).obstacle;
  expect(search(3)).toBe("has more than 3 folders");
  expect(search(4)).toBeUndefined();
});

wallTest(
  "folders deeper than paths can name are reported, and no command runs until they are gone",
  async () => {
    const { root, run } = await openWith({});
    const { stderr } = await run(
      "i=0; while [ $i -lt 25 ]; do n=$(printf '%0200d' $i); mkdir $n; cd -P $n 2>/dev/null || cd $n; i=$((i+1)); done; git init -q .",
      { access },
    );
    expect(stderr).toContain("cannot protect");
    await expect(run("true", { access })).rejects.toMatchObject({ code: "unavailable" });
    // Node names whole paths, which are too long here.
    execFileSync("rm", ["-rf", join(root, "0".repeat(200))]);
    expect((await run("echo ran", { access })).stdout).toBe("ran\n");
  },
);

wallTest("a workspace with more protected paths than mounts is refused", async () => {
  const { root, run } = await openWith({});
  for (let index = 0; index < 2_001; index += 1) await writeFile(join(root, `tsconfig.${index}.json`), "old");
  await expect(run("true", { access })).rejects.toMatchObject({ code: "unavailable" });
  for (let index = 0; index < 1_600; index += 1) await rm(join(root, `tsconfig.${index}.json`));
  const { stdout } = await run("echo new > tsconfig.2000.json || echo held", { access });
  expect(stdout).toBe("held\n");
});

wallTest("links in the place of folders with protected names are refused", async () => {
  const { root, run } = await openWith({ "src/lib.ts": "1", "s3/agents/mine.ts": "1" });
  const { stderr } = await run(
    `mkdir -p c/hooks g/workflows s2/agents packages/p; echo evil > c/settings.json; ln -s c .claude; ln -s g .github
    ln -s ../../g packages/p/.GitHub; mv src s0; echo evil > s2/agents/evil.ts; ln -s s2 src`,
    { access },
  );
  const evil = [".claude/settings.json", ".github/workflows", "packages/p/.GitHub", "src/agents/evil.ts"];
  for (const path of evil) expect(existsSync(join(root, path)), path).toBe(false);
  expect(stderr).toMatch(/\.claude.*\.github|\.github.*\.claude/);
  expect(await readdir(join(root, "g"))).toEqual(["workflows"]);
  expect(await readFile(join(root, "s3/agents/mine.ts"), "utf8")).toBe("1");
});

wallTest("protected names below the target of a link that was there are protected", async () => {
  const { root, run } = await openWith({ "s2/agents/a.ts": "old", "g/x": "", "s2/lib.ts": "old" });
  await symlink("s2", join(root, "src"));
  await symlink("g", join(root, ".github"));
  await run(
    "echo new > src/agents/a.ts; echo new > s2/agents/a.ts; echo new > src/lib.ts; mkdir g/workflows; echo new > g/workflows/a.yml; rm src; mkdir -p e/agents; ln -s e src",
    { access },
  );
  expect(await readFile(join(root, "src/agents/a.ts"), "utf8")).toBe("old");
  expect(await readFile(join(root, "src/lib.ts"), "utf8")).toBe("new\n");
  expect((await readdir(join(root, "g"))).sort()).toEqual(["refused-workflows", "x"]);
});

wallTest("a command that swaps folders shows no file of secrets to another command", async () => {
  const { root, run, sandbox } = await openWith({ "conf/a/.env.prod": "A=sesame", "conf/z/none.txt": "" });
  const swap = `import ctypes, os
libc = ctypes.CDLL(None)
while not os.path.exists("stop"):
    for _ in range(50): libc.renameat2(-100, b"conf/a", -100, b"conf/z", 2)
`;
  await writeFile(join(root, "swap.py"), swap);
  const attacker = run("touch ready; exec python3 swap.py", { access, timeoutMs: 60_000 });
  while (!existsSync(join(root, "ready"))) await new Promise((next) => setTimeout(next, 10));
  for (let round = 0; round < 60; round += 1) {
    const command = "cat conf/*/.env.prod; cat conf/*/.env.prod";
    const result = await sandbox
      .exec({ command, timeoutMs: 9_000, access: { write: false, guard } })
      .catch((error: unknown) => error);
    if (result instanceof Error) expect(result).toMatchObject({ code: "unavailable" });
    else expect(JSON.stringify(result)).not.toContain("sesame");
  }
  await writeFile(join(root, "stop"), "");
  await attacker;
});

wallTest("the state of other projects in the workspace is hidden", async () => {
  const { root, run } = await openWith({ "packages/b/.kit/sessions.db": "sesame" });
  for (const write of [true, false]) {
    const { stdout } = await run("cat packages/b/.kit/*; mv packages/b packages/c; cat packages/c/.kit/*", {
      access: { ...access, write },
    });
    expect(stdout).toBe("");
  }
  expect(existsSync(join(root, "packages/b/.kit/sessions.db"))).toBe(true);
});

wallTest.each([
  ["a folder", "d=$(printf 'n\\377'); mkdir \"$d\"; echo '{}' > \"$d/package.json\"", "true", "rm -r n*"],
  ["a file of secrets", "echo K=1 > \"$(printf '.env.\\377')\"", "cat .env.*", "rm .env.*"],
])(
  "no command runs in a workspace with %s whose name is no UTF-8, and the result of the one that made it says so",
  async (...[, make, next, remove]) => {
    const { root, run } = await openWith({ "a.txt": "a" });
    const made = await run(make, { access });
    expect(made.stderr).toContain("kit runs no command in it until then");
    await expect(run(next, { access })).rejects.toMatchObject({ code: "unavailable" });
    execFileSync("sh", ["-c", remove], { cwd: root });
    expect(await run("true", { access })).toMatchObject({ exit_code: 0 });
  },
);
