import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, readdir, readFile, readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { guardOf } from "../../../agents/policy/protected-paths.ts";
import { virtual } from "../../virtual/virtual-sandbox.ts";
import { createFolder, openFilled, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const access = { write: true, guard: guardOf({}, []) };

const openWith = (files: Readonly<Record<string, string>>) => openFilled(folder, files);

const evil = "core.fsmonitor '$PWD/run.sh'";
/** Makes a repository that runs `run.sh`, and how the person looks into it. */
const repositories: Readonly<Record<string, readonly [command: string, cwd: string]>> = {
  "in a folder": [`git init -q a/b; git -C a/b config ${evil}`, "a/b"],
  "in another letter case": ["git init -q a; mv a/.git a/.GIT", "a"],
  "that a file names": [
    `git init -q --bare s; git -C s config core.bare false; git -C s config core.worktree ..; git -C s config ${evil}; mkdir a; echo 'gitdir: ../s' > a/.git`,
    "a",
  ],
  "behind a link": [`git init -q a; git -C a config ${evil}; mv a/.git real; ln -s ../real a/.git`, "a"],
  "without .git": [
    `git init -q --bare a; git -C a config core.bare false; git -C a config core.worktree $PWD; git -C a config ${evil}`,
    "a",
  ],
  "of a linked worktree without .git": [
    `git init -q --bare s; mkdir a; echo ../s > a/commondir; echo 'ref: refs/heads/main' > a/HEAD; git -C s config core.bare false; git -C s config core.worktree $PWD; git -C s config ${evil}`,
    "a",
  ],
  "that is the root": [
    `git init -q --bare s; mv s/* .; printf '[core]\\n\\tbare = false\\n\\tworktree = %s\\n\\tfsmonitor = %s\\n' "$PWD/w" "$PWD/run.sh" > config; mkdir w`,
    "w",
  ],
};

for (const [name, [command, cwd]] of Object.entries(repositories)) {
  wallTest(`a repository ${name} that a command made is none after it, and the result says so`, async () => {
    const { root, run } = await openWith({ "run.sh": `#!/bin/sh\ntouch ${folder}/ran\n` });
    await chmod(join(root, "run.sh"), 0o755);
    const { stderr } = await run(command.replaceAll("$PWD/run.sh", join(root, "run.sh")), {
      access: { write: true },
    });
    expect(stderr).toContain('Renamed to "refused-');
    try {
      execFileSync("git", ["status"], {
        cwd: join(root, cwd),
        stdio: "ignore",
        env: { ...process.env, GIT_CEILING_DIRECTORIES: folder },
      });
      expect.unreachable("Git found a repository.");
    } catch (error) {
      expect(error).toMatchObject({ status: 128 });
    }
    expect(existsSync(join(folder, "ran"))).toBe(false);
  });
}

wallTest("repositories that were there are read-only, and their folders cannot be replaced", async () => {
  const { root, run } = await openWith({ "lib/deep/a.txt": "a" });
  execFileSync("git", ["init", "-q", join(root, "lib/deep")]);
  execFileSync("git", ["init", "-q", "--bare", join(root, "fixtures/bare")]);
  const { stdout, stderr } = await run(
    "git -C lib/deep config a.b c; echo x > lib/deep/.git/commondir; mv lib old; echo x > fixtures/bare/config; echo b > lib/deep/a.txt; cat lib/deep/a.txt; ls lib fixtures",
    { access: { write: true } },
  );
  expect(stdout).toBe("b\nfixtures:\nbare\n\nlib:\ndeep\n");
  expect(stderr).not.toContain("refused");
});

wallTest("protected names at any depth stay as they are, and new ones are refused", async () => {
  const files = [
    "packages/p/package.json",
    "packages/p/.npmrc",
    "packages/p/.vscode/tasks.json",
    "node_modules/left-pad/index.js",
    "packages/p/node_modules/x/i.js",
  ];
  const { root, run } = await openWith(Object.fromEntries(files.map((file) => [file, "old"])));
  await symlink("tasks.json", join(root, "packages/p/.vscode/link.json"));
  await symlink("nowhere", join(root, ".envrc"));
  const created = [
    ".npmrc",
    ".mcp.json",
    ".gitattributes",
    ".pre-commit-config.yaml",
    ".vscode/tasks.json",
    ".husky/pre-commit",
    ".devcontainer/x",
    ".github/workflows/a.yml",
    "src/webhooks/evil.ts",
    "kit.config.ts",
    ".env",
    "packages/new/package.json",
    "packages/p/node_modules2",
  ];
  const { stdout, stderr } = await run(
    `for f in ${files.join(" ")}; do echo new > $f; rm -f $f; mv $(dirname $f) moved; done 2>/dev/null
    mv packages/p packages/q 2>/dev/null; rm -rf packages 2>/dev/null
    rm .envrc; echo evil > .envrc
    for f in ${created.join(" ")}; do mkdir -p $(dirname $f); echo new > $f; done
    mkdir node_modules/evil; echo cache > node_modules/.cache/a && cat node_modules/.cache/a`,
    { access },
  );
  expect(stdout).toBe("cache\n");
  for (const file of files) expect(await readFile(join(root, file), "utf8")).toBe("old");
  expect(await readlink(join(root, ".envrc"))).toBe("nowhere");
  for (const file of created.slice(0, -1)) {
    expect(existsSync(join(root, file)), file).toBe(false);
    expect(stderr).toContain(
      file.startsWith("src/webhooks")
        ? "src/webhooks"
        : file.startsWith(".github")
          ? ".github/workflows"
          : (file.split("/")[0] ?? ""),
    );
  }
  expect(await readFile(join(root, "packages/new/refused-package.json"), "utf8")).toBe("new\n");
  expect(existsSync(join(root, "packages/p/node_modules2"))).toBe(true);
  expect(await readdir(join(root, "node_modules/.cache"))).toEqual([]);
  const again = await run("cat node_modules/.cache/a; echo new > a.txt", { access });
  expect([again.stdout, again.stderr]).toEqual(["cache\n", ""]);
});

wallTest("granted paths can be made and changed", async () => {
  const { root, run } = await openWith({ "packages/p/package.json": "old", "node_modules/a/i.js": "old" });
  const guard = guardOf({}, ["packages/p/package.json", "node_modules", ".npmrc"]);
  const { stderr } = await run(
    "for f in packages/p/package.json node_modules/a/i.js .npmrc; do echo new > $f; done",
    { access: { write: true, guard } },
  );
  expect(stderr).toBe("");
  for (const file of ["packages/p/package.json", "node_modules/a/i.js", ".npmrc"])
    expect(await readFile(join(root, file), "utf8")).toBe("new\n");
});

wallTest("files of secrets appear empty to every command, at any depth and behind links", async () => {
  const { root, run } = await openWith({
    ".env": "A=sesame",
    ".env.production": "A=sesame",
    "apps/web/.env.local": "A=sesame",
    ".env.example": "A=",
    "config/prod.vars": "A=sesame",
  });
  await symlink("config/prod.vars", join(root, ".env.linked"));
  for (const write of [true, false]) {
    const { stdout } = await run(
      "cat .env .env.production apps/web/.env.local .env.example .env.linked; rev .env; grep -r sesame .; python3 -c 'print(open(\".env\").read())' 2>/dev/null; tar -cf - . | tr -d '\\0' | grep -c sesame",
      { access: { ...access, write } },
    );
    expect(stdout.trim()).toMatch(/^A=\s+0$/);
  }
  const guard = guardOf({}, [".env"]);
  expect((await run("cat .env .env.production", { access: { guard } })).stdout).toBe("A=sesame");
});

wallTest("paths that Git's settings name are protected, also if they are missing", async () => {
  const { root, run } = await openWith({ "tools/hooks/pre-commit": "old", "shared.gitconfig": "[alias]\n" });
  execFileSync("git", ["init", "-q", root]);
  for (const [key, value] of [
    ["core.hooksPath", "tools/hooks"],
    ["include.path", "../shared.gitconfig"],
    ["core.fsmonitor", "./bin/monitor --x"],
    ["credential.helper", "!bin/helper"],
  ] as const)
    execFileSync("git", ["-C", root, "config", key, value]);
  const { stderr } = await run(
    "echo x > tools/hooks/pre-commit; echo x > tools/hooks/new; echo x > shared.gitconfig; mv tools old; mkdir bin; echo x | tee bin/monitor bin/helper bin/other",
    { access: { write: true } },
  );
  expect(await readFile(join(root, "tools/hooks/pre-commit"), "utf8")).toBe("old");
  expect(await readFile(join(root, "shared.gitconfig"), "utf8")).toBe("[alias]\n");
  expect((await readdir(join(root, "bin"))).sort()).toEqual(["other", "refused-helper", "refused-monitor"]);
  expect(stderr).toContain("bin/monitor");
});

wallTest("the next kit refuses what a command made whose kit was killed", async () => {
  const { root } = await openWith({ "a.txt": "a" });
  const program = `
    const { local } = await import(${JSON.stringify(join(import.meta.dirname, "../../local/local-sandbox.ts"))});
    const sandbox = await local().open({ agent: "a", instance_id: "a", session: "a", project_root: ${JSON.stringify(root)} });
    await sandbox.exec({ command: "git init -q evil; touch made; sleep 100", access: { write: true } });`;
  const kit = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "ignore" });
  const exited = new Promise((resolve) => kit.once("exit", resolve));
  const end = Date.now() + 20_000;
  while (!existsSync(join(root, "made")) && Date.now() < end)
    await new Promise((next) => setTimeout(next, 20));
  kit.kill("SIGKILL");
  await exited;
  expect(existsSync(join(root, "evil/.git/HEAD"))).toBe(true);
  await openWalled(folder, { root });
  expect(await readdir(join(root, "evil"))).toEqual(["refused-.git"]);
  expect(existsSync(join(root, "evil/refused-.git/HEAD"))).toBe(false);
});

wallTest("commands make repositories in a virtual workspace, which is the model's own", async () => {
  const sandbox = await virtual({ folder: join(folder, "virtual") }).open({
    agent: "a",
    instance_id: "1",
    session: "s",
  });
  const exec = (command: string) => sandbox.exec({ command, access });
  await exec("git init -q dep; git init -q .; echo '{}' > dep/package.json");
  const { stdout, stderr } = await exec("git -C dep add . && git -C dep status --short; git status --short");
  expect([stdout, stderr]).toEqual(["A  package.json\n?? dep/\n", ""]);
  await rm(join(folder, "virtual"), { recursive: true });
});

wallTest("files of secrets in protected folders appear empty", async () => {
  const folders = [".devcontainer", ".vscode/deep", "src/agents", "sub/.github/workflows", ".husky"];
  const { run } = await openWith(
    Object.fromEntries(
      folders.flatMap((each) => [
        [`${each}/.env`, "own-secret"],
        [`${each}/a.txt`, "seen"],
      ]),
    ),
  );
  const { stdout } = await run("grep -rh . --include=.env --include=a.txt .; echo x > .husky/a.txt", {
    access,
  });
  expect(stdout).toBe("seen\n".repeat(folders.length));
});
