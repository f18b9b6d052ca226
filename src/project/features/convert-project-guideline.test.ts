import { readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import type { Project } from "../project.ts";

const steering = "---\ninclusion: fileMatch\nfileMatchPattern: 'src/**'\n---\n# Tests\n\nOne per rule.\n";

function idOf(project: Project, title: string): string {
  return project.guidelines.list({}).guidelines.find((guideline) => guideline.title === title)?.id ?? "none";
}

async function withProject(
  files: Readonly<Record<string, string>>,
  use: (project: Project, root: string) => Promise<void>,
  readOnly = false,
): Promise<void> {
  await using folder = await createTemporaryRepository(files);
  const project = await openProject({ root: folder.root, readOnly, indexFile: ":memory:" });
  try {
    await use(project, folder.root);
  } finally {
    await project.close();
  }
}

test("a preview writes nothing", async () => {
  await withProject({ ".kiro/steering/tests.md": steering }, async (project, root) => {
    const result = await project.guidelines.convert({ guideline_id: idOf(project, "Tests"), format: "fw_c" });
    expect(result).toMatchObject({ filename: "CLAUDE.md", frontmatter: {} });
    expect(result.written_to).toBeUndefined();
    expect(await readdir(root)).toEqual([".kiro"]);
  });
});

test("a section is merged into the conventional file, whose other bytes stay", async () => {
  const before = "\ufeff# Ours\r\n\r\n## Tests\r\nold\r\n\r\n## Last\r\nx";
  await withProject({ ".kiro/steering/tests.md": steering, "CLAUDE.md": before }, async (project, root) => {
    const request = { guideline_id: idOf(project, "Tests"), format: "fw_c", preview: false } as const;
    const result = await project.guidelines.convert(request);
    expect(result.written_to).toBe("CLAUDE.md");
    const after = await readFile(join(root, "CLAUDE.md"), "utf8");
    expect(after).toBe(
      before.replace("Tests\r\nold", "Tests\r\n\r\n_File pattern: `src/**`_\r\n\r\nOne per rule."),
    );
    const claude = project.guidelines.list({ source: "fw_c", q: "one per rule" });
    expect(claude.guidelines).toMatchObject([
      { title: "Tests", source_file: "CLAUDE.md", file_pattern: "src/**" },
    ]);
    await project.guidelines.convert(request);
    expect(await readFile(join(root, "CLAUDE.md"), "utf8")).toBe(after);
  });
});

test("a steering file with other content is a conflict without overwrite", async () => {
  const files = { "CLAUDE.md": "## Tests\n\nNew.\n", ".kiro/steering/tests.md": steering };
  await withProject(files, async (project, root) => {
    const request = {
      guideline_id: project.guidelines.list({ source: "fw_c" }).guidelines[0]?.id ?? "",
      format: "steering",
      preview: false,
    } as const;
    await expect(project.guidelines.convert(request)).rejects.toMatchObject({ code: "conflict" });
    expect(await readFile(join(root, ".kiro/steering/tests.md"), "utf8")).toBe(steering);
    const result = await project.guidelines.convert({ ...request, overwrite: true });
    expect(result.written_to).toBe(".kiro/steering/tests.md");
    const written = "---\ninclusion: always\n---\n\n# Tests\n\nNew.\n";
    expect(await readFile(join(root, ".kiro/steering/tests.md"), "utf8")).toBe(written);
    expect((await project.guidelines.convert(request)).written_to).toBe(".kiro/steering/tests.md");
  });
});

test("conversions that run at once all arrive", async () => {
  const sections = Array.from({ length: 12 }, (_, at) => `## Rule ${at}\n\nText ${at}.\n`);
  await withProject({ "AGENTS.md": sections.join("\n") }, async (project, root) => {
    const { guidelines } = project.guidelines.list({});
    const convert = (id: string) =>
      project.guidelines.convert({ guideline_id: id, format: "fw_b", preview: false });
    await Promise.all(guidelines.map(({ id }) => convert(id)));
    const text = await readFile(join(root, ".cursorrules"), "utf8");
    expect(text.match(/^## Rule \d+$/gm)).toHaveLength(12);
  });
});

test("an unknown guideline, a read-only project and a file that is not text are refused", async () => {
  await withProject({ "AGENTS.md": "## A\n\na\n" }, async (project, root) => {
    const unknown = { guideline_id: "../etc", format: "fw_c", preview: false } as const;
    await expect(project.guidelines.convert(unknown)).rejects.toMatchObject({ code: "guideline_not_found" });
    await writeFile(join(root, "CLAUDE.md"), Buffer.from([0x23, 0x20, 0xff, 0xfe, 0x0a]));
    const request = { guideline_id: idOf(project, "A"), format: "fw_c", preview: false } as const;
    await expect(project.guidelines.convert(request)).rejects.toMatchObject({ code: "conflict" });
  });
  await withProject(
    { "AGENTS.md": "## A\n\na\n" },
    async (project, root) => {
      const request = { guideline_id: idOf(project, "A"), format: "fw_c" } as const;
      expect((await project.guidelines.convert(request)).content).toBe("## A\n\na\n");
      const write = project.guidelines.convert({ ...request, preview: false });
      await expect(write).rejects.toMatchObject({ code: "forbidden" });
      expect(await readdir(root)).toEqual(["AGENTS.md"]);
    },
    true,
  );
});

test("a guideline in its own format is returned byte for byte, also after an edit of its file", async () => {
  await withProject({ "CLAUDE.md": "## A\n\nfirst  \n\n## B\n\nsecond\n" }, async (project, root) => {
    const id = idOf(project, "B");
    await writeFile(join(root, "CLAUDE.md"), "# New\n\nintro\n\n## A\n\nfirst\n\n## B\r\n\r\n* second  \n");
    const result = await project.guidelines.convert({ guideline_id: id, format: "fw_c" });
    expect(result).toMatchObject({ content: "## B\r\n\r\n* second  ", losses: [] });
  });
});

test("a link to a file of the project is followed, one that leads out is refused", async () => {
  await withProject({ "AGENTS.md": "## A\n\na\n", "RULES.md": "# Rules\n" }, async (project, root) => {
    await symlink("RULES.md", join(root, "CLAUDE.md"));
    await symlink("/etc/hostname", join(root, ".cursorrules"));
    const id = idOf(project, "A");
    const result = await project.guidelines.convert({ guideline_id: id, format: "fw_c", preview: false });
    expect(result.written_to).toBe("RULES.md");
    expect(await readlink(join(root, "CLAUDE.md"))).toBe("RULES.md");
    const escaping = project.guidelines.convert({ guideline_id: id, format: "fw_b", preview: false });
    await expect(escaping).rejects.toMatchObject({
      code: "forbidden",
      message: ".cursorrules leads out of the project.",
    });
  });
});

test("a preview shows the file that a write changes, and a write that is bound to it changes nothing else", async () => {
  const files = {
    "AGENTS.md": "## A\n\na\n",
    "CLAUDE.md": "# Ours\n",
    ".kiro/steering/a.md": "# A\n\nmine\n",
    ".rules": "```\nopen\n",
  };
  await withProject(files, async (project, root) => {
    const guideline_id = project.guidelines.list({ source: "agents" }).guidelines[0]?.id ?? "";
    const preview = async (format: "fw_c" | "steering" | "gemini" | "zed") =>
      (await project.guidelines.convert({ guideline_id, format })).change;
    expect(await preview("fw_c")).toMatchObject({ path: "CLAUDE.md", action: "update", before: "# Ours\n" });
    expect(await preview("gemini")).toMatchObject({ path: "GEMINI.md", action: "create" });
    expect(await preview("steering")).toMatchObject({
      path: ".kiro/steering/a.md",
      action: "conflict",
      before: "# A\n\nmine\n",
      after: expect.stringContaining("\na\n"),
    });
    const closed = await preview("zed");
    expect(closed).toMatchObject({ path: ".rules", action: "conflict" });
    expect(closed?.after).toBeUndefined();
    expect(closed?.reason).toContain("open");

    for (const format of ["fw_c", "steering", "gemini"] as const) {
      const change = await preview(format);
      const path = change?.path ?? "";
      await writeFile(join(root, path), "# Another\n");
      const write = { guideline_id, format, preview: false, overwrite: true } as const;
      await expect(
        project.guidelines.convert({ ...write, expected: change?.digest ?? "" }),
      ).rejects.toMatchObject({ code: "conflict", meta: { files: [path] } });
      expect(await readFile(join(root, path), "utf8")).toBe("# Another\n");
      const again = await preview(format);
      await project.guidelines.convert({ ...write, expected: again?.digest ?? "" });
      expect(await readFile(join(root, path), "utf8")).toBe(again?.after);
    }
  });
});

test.each([
  [".cursorrules", "fw_b", "- Prefer const\n"],
  [".cursor/rules/react.mdc", "fw_b", "---\ndescription: d\nglobs: *.tsx\n---\n# React\n\nHooks.\n"],
  ["CLAUDE.md", "fw_c", "# T\n\n## Security\nAll.\n\n## Other\nx\n"],
  [".claude/rules/api.md", "fw_c", "---\npaths: api/**\n---\n# Api\n\nx\n"],
  [".kiro/steering/any-name.md", "steering", "# Title\n\nx\n"],
  [".clinerules", "cline", "## A\r\nx\r\n"],
] as const)("a guideline of %s converted to %s changes nothing", async (path, format, text) => {
  await withProject({ [path]: text }, async (project, root) => {
    for (const { id } of project.guidelines.list({}).guidelines) {
      const preview = await project.guidelines.convert({ guideline_id: id, format });
      expect(preview).toMatchObject({ losses: [], change: { path, action: "unchanged", before: text } });
      expect(text).toContain(preview.content);
      const written = await project.guidelines.convert({ guideline_id: id, format, preview: false });
      expect(written.written_to).toBe(path);
    }
    expect(await readFile(join(root, path), "utf8")).toBe(text);
    expect(await readdir(root)).toHaveLength(1);
  });
});

test("the content of a conversion is what its file then has, line ends included", async () => {
  const files = {
    "AGENTS.md": "## A\n\n- one\n- two\n\n## B\n\n### Sub\n\nx\n",
    "CLAUDE.md": "# Ours\r\n\r\nText.\r\n",
  };
  await withProject(files, async (project, root) => {
    for (const { id } of project.guidelines.list({ source: "agents" }).guidelines) {
      for (const format of [
        "fw_c",
        "fw_b",
        "gemini",
        "zed",
        "steering",
        "copilot",
        "windsurf",
        "cline",
      ] as const) {
        const preview = await project.guidelines.convert({ guideline_id: id, format });
        const result = await project.guidelines.convert({ guideline_id: id, format, preview: false });
        const text = await readFile(join(root, result.written_to ?? ""), "utf8");
        expect(text).toBe(preview.change?.after);
        expect(result.content).toBe(preview.content);
        expect(text).toContain(result.content);
      }
    }
  });
});
