/** Loads one case of the corpus as kit would. Run as a separate process, it prints the outcome. */
import { lstat, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KitError, loadSkill, openProject, type Project } from "kit";
import { createServer } from "kit/server";
import { readFrontMatter, scanMarkdown } from "kit/specs";
import type { CaseReport, LoadedRecord } from "./case-report.ts";
import { type MarkdownCase, matchPathOf, pathOfCase } from "./markdown-case.ts";

/** The source of one case. */
export interface LaidOutCase {
  /** The project's folder, absolute. */
  readonly root: string;
  readonly markdownCase: MarkdownCase;
}

/** The processor time that `slowness` takes on the machine for which the cases state their limits. */
const usualMs = 300;

// Arguments: the project's root, and the case as JSON in a file.
if (import.meta.main) {
  const [root = "", caseFile = ""] = process.argv.slice(2);
  const markdownCase: MarkdownCase = JSON.parse(await readFile(caseFile, "utf8"));
  await warmUp();
  process.stdout.write(JSON.stringify(await loadCase({ root, markdownCase })));
}

export async function loadCase(laidOut: LaidOutCase): Promise<CaseReport> {
  const { root, markdownCase } = laidOut;
  const rssBefore = process.resourceUsage().maxRSS;
  const cpuBefore = process.cpuUsage();
  const project = await openProject({ root, indexFile: ":memory:" });
  try {
    const file = matchPathOf(markdownCase);
    const matched = file === undefined ? undefined : project.guidelines.list({ file }).total_count;
    const skill = markdownCase.kind === "skill" ? await readSkill(laidOut) : {};
    const cpu = process.cpuUsage(cpuBefore);
    const rssGrowthMb = (process.resourceUsage().maxRSS - rssBefore) / 1024;
    return {
      cpu_ms: (cpu.user + cpu.system) / 1000 / slowness(),
      rss_growth_mb: rssGrowthMb,
      records: recordsOf(project),
      diagnostics: [...project.specs.diagnostics(), ...project.guidelines.diagnostics()],
      ids_again: await idsOfSecondLoad(root),
      steering: await convertAll(project),
      replies: await repliesOf(project),
      polluted: "polluted" in {} || "PWNED" in globalThis,
      ...(matched === undefined ? {} : { matched }),
      ...skill,
      ...(await scanOf(laidOut)),
    };
  } finally {
    await project.close();
  }
}

/** How many times slower this machine is now than a usual one, 1 to 3: it finds the words of short lines. */
function slowness(): number {
  const from = process.cpuUsage();
  const words: RegExpMatchArray[] = [];
  for (let line = 0; line < 100_000; line += 1) {
    words.push(...[...`# Heading ${line}`.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)]);
  }
  const { user, system } = process.cpuUsage(from);
  return Math.min(3, Math.max(1, (user + system) / 1000 / usualMs));
}

/** Loads a harmless project first, so that the start of Node is not measured. */
export async function warmUp(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "kit-warm-up-"));
  try {
    const steering = join(folder, ".kiro/steering");
    await mkdir(steering, { recursive: true });
    await writeFile(join(steering, "a.md"), "---\ninclusion: always\n---\n# A\n\nText.\n");
    await writeFile(join(folder, "CLAUDE.md"), "# B\n\n## C\n\nText.\n");
    const warm = await openProject({ root: folder, indexFile: ":memory:" });
    await warm.close();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Loads the file as an agent would. */
async function readSkill({ root, markdownCase }: LaidOutCase): Promise<Pick<CaseReport, "skill">> {
  try {
    const { name, description, instructions } = await loadSkill(pathOfCase(markdownCase), { root });
    return { skill: { name, description, instructions } };
  } catch (error) {
    if (error instanceof KitError) return { skill: { problem: error.message } };
    throw error;
  }
}

function recordsOf(opened: Project): readonly LoadedRecord[] {
  const guidelines = opened.guidelines
    .list({})
    .guidelines.filter((guideline) => !guideline.is_sample)
    .map(({ id, title, content, source_file }) => ({
      id,
      title,
      content,
      path: source_file,
      kind: "guideline" as const,
    }));
  const specs = [...opened.specs.all()].map(({ id, title, content, path, metadata }) => ({
    id,
    title,
    content: `${content}\n${metadata.user_story ?? ""}`,
    path,
    kind: "spec" as const,
  }));
  return [...guidelines, ...specs];
}

async function idsOfSecondLoad(root: string): Promise<readonly string[]> {
  const again = await openProject({ root, indexFile: ":memory:" });
  try {
    return recordsOf(again).map(({ id }) => id);
  } finally {
    await again.close();
  }
}

/** Converts every guideline to a steering file, with the front matter that a parser finds in it. */
async function convertAll(opened: Project): Promise<CaseReport["steering"]> {
  const guidelines = opened.guidelines.list({ limit: 50 }).guidelines;
  const results = guidelines.map(async ({ id }) => {
    const { filename, content, frontmatter } = await opened.guidelines.convert({
      guideline_id: id,
      format: "steering",
    });
    return { filename, frontmatter, read_back: readFrontMatter(scanMarkdown(content)).data };
  });
  return await Promise.all(results);
}

async function repliesOf(opened: Project): Promise<CaseReport["replies"]> {
  const { app } = createServer({ project: opened });
  const paths = ["/api/guidelines", "/api/specs", "/api/specs/diagnostics", "/"];
  return await Promise.all(
    paths.map(async (path) => {
      const reply = await app.request(`http://127.0.0.1${path}`, {
        headers: { accept: path === "/" ? "text/html" : "application/json" },
      });
      return { path, status: reply.status, body: await reply.text() };
    }),
  );
}

/** The headings of the file itself; none if a link or a folder is in its place. */
async function scanOf({ root, markdownCase }: LaidOutCase): Promise<Partial<CaseReport>> {
  const file = join(root, pathOfCase(markdownCase));
  if (!(await lstat(file)).isFile()) return {};
  const scan = scanMarkdown(new TextDecoder().decode(await readFile(file)));
  return {
    headings: scan.headings.map(({ level, title }) => [level, title] as const),
    frontmatter: readFrontMatter(scan).data,
  };
}
