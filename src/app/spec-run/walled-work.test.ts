import { expect } from "vitest";
import { wallTest } from "../../sandboxes/host/wall/walled.suite.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { installedFolders } from "../verify/workplace.ts";
import { TaskBranch } from "./task-branch.ts";
import { specRepository } from "./testing/spec-repository.ts";
import { TaskWorkTree } from "./work-tree.ts";

wallTest(
  "commands in a work tree see packages and history, and neither kit's folder nor the user's checkout",
  async () => {
    await using repository = await specRepository({
      ".kit/engine/secret.txt": "of another run",
      "node_modules/dependency/index.js": "module.exports = 42;\n",
    });
    const { root, git } = repository;
    const branch = await TaskBranch.open(root, "cart");
    const base = await branch.begin();
    const work = new TaskWorkTree(branch, `${root}/.kit/work/cart.1`);
    await work.create(base);
    const sandbox = await local({
      root: work.root,
      readOnlyRepository: true,
      env: { PATH: await installedFolders(branch) },
    }).open({
      project_root: root,
      agent: "coder",
      instance_id: "1",
      session: "work",
    });
    try {
      const run = async (command: string): Promise<string> => {
        const { stdout, stderr } = await sandbox.exec({ command });
        return `${stdout}${stderr}`.trim();
      };
      expect(await run(`node -e 'console.log(require("dependency"))'`)).toBe("42");
      expect(await run("git log --format=%s")).toBe("Begin");
      expect(await run("cat ../../engine/secret.txt")).toContain("No such file");
      expect(await run(`cat ${root}/src/cart.mjs`)).toContain("No such file");
      await run(
        "git commit --allow-empty -qm Own; git branch other; git update-ref refs/heads/kit/cart HEAD",
      );
      expect(await git("for-each-ref", "--format=%(refname) %(objectname)")).toBe(
        `refs/heads/kit/cart ${base}\nrefs/heads/main ${base}`,
      );
    } finally {
      await sandbox.close();
      await work.remove();
    }
  },
);
