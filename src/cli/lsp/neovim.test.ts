import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { forKit, kitCommandLine } from "../testing/run-kit.ts";
import { requirements, rule, spec, steering, testFile, tests } from "./testing/checkout-spec.ts";

const isThere = spawnSync("nvim", ["--version"]).status === 0;
if (!isThere) test.skip("Neovim as a client: nvim is not installed.", () => undefined);

test.skipIf(!isThere)(
  "Neovim shows problems, hovers, definitions, completions and lenses of kit lsp",
  async () => {
    const files = {
      [spec]: requirements,
      [rule]: steering.replace("src/", "scr/"),
      "AGENTS.md": "# Names\n\nUse whole words.\n",
      [testFile]: tests,
    };
    await using repository = await createTemporaryRepository(files);
    const { stdout } = await promisify(execFile)(
      "nvim",
      [
        "--headless",
        "-u",
        "NONE",
        "-i",
        "NONE",
        "-n",
        "-c",
        `luafile ${join(import.meta.dirname, "testing/neovim.lua")}`,
      ],
      {
        env: {
          ...forKit(process.env),
          KIT_FOLDER: repository.root,
          KIT_LSP: JSON.stringify([...kitCommandLine(["lsp"])]),
          XDG_STATE_HOME: repository.root,
        },
      },
    );
    expect(JSON.parse(stdout)).toEqual({
      warned: true,
      problems: [[3, 19, 30, "glob_no_file"]],
      mended: true,
      modified: true,
      unknown: true,
      // Neovim counts bytes: three of a comment, four of an emoji, three of each ideograph.
      columns: [[1, 14, 26, "criterion_unknown"]],
      rules: expect.stringContaining("2 rules apply"),
      definition: [".kiro/specs/checkout/requirements.md", 10],
      completion: ["checkout#1.1", "checkout#1.2"],
      lenses: [
        [3, "1 of 2 criteria with tests"],
        [10, "1 test: without a result"],
      ],
      listed: [expect.stringContaining("checkout#1.2 places nothing")],
      stopped: true,
    });
    expect(readFileSync(join(repository.root, ".kiro/steering/money.md"), "utf8")).toContain("scr/");
  },
);
