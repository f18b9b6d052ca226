import { statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { KitConfig } from "../../app/config/config-schema.ts";
import { untrustedCode } from "../../app/trust/trust.ts";
import { type ToolId, toolInfo } from "../../guidelines/tools/tool-table.ts";
import { specCoverage } from "../../project/features/coverage.ts";
import { OpenCriteria } from "../../project/features/open-criteria.ts";
import { TextLayer } from "../../project/features/text-layer.ts";
import { openProject } from "../../project/open-project.ts";
import type { Project } from "../../project/project.ts";
import { indexOf } from "../../project/project-index.ts";
import type { CriterionTest } from "../../protocol/coverage.ts";
import type { Criterion } from "../../specs/coverage/list-criteria.ts";
import { realFolder } from "../acp/editor-project.ts";
import type { CommandContext } from "../command.ts";
import { useProjectPackages } from "../project-packages.ts";
import { describeError } from "../report-error.ts";
import { readProjectConfig, unrunCode } from "../with-project.ts";

export interface FolderOptions {
  readonly context: CommandContext;
  /** Called after a change on the disk. */
  readonly onChange: () => void;
  /** A sentence for the log of the editor. */
  readonly note: (text: string) => void;
}

/** Reads of the coverage of a project are kept this long, in ms: a test can change without a change of the index. */
const keptMs = 1_000;

/** One folder of the editor: its project, and the texts that are open in it. */
export class OpenFolder {
  /** As the editor names it: links in it are not followed. */
  readonly folder: string;
  readonly layer: TextLayer;
  readonly criteria: OpenCriteria;
  readonly #project: Project;
  #coverage: { readonly stamp: string; readonly until: number; tests: Promise<SavedTests> } | undefined;

  private constructor(folder: string, project: Project, config: KitConfig) {
    this.folder = folder;
    this.#project = project;
    this.layer = new TextLayer(project, config);
    this.criteria = new OpenCriteria(this.layer);
  }

  /** Throws `invalid_request` for a folder that is no project. Runs no code of a folder that no person trusts. */
  static async open(folder: string, { context, onChange, note }: FolderOptions): Promise<OpenFolder> {
    const root = realFolder(folder);
    const config = await readConfig({ ...context, root, cwd: root }, note);
    const project = await openProject({ root, config, background: true, signal: context.signal });
    const opened = new OpenFolder(folder, project, config);
    // The watch waits for the first pass, and a large project answers before.
    project
      .watch(onChange, (error) => note(`kit reads the folder every two seconds: ${describeError(error)}`))
      .then(onChange)
      .catch((error: unknown) => context.signal.aborted || note(describeError(error)));
    return opened;
  }

  /** The real path of a file of the folder; undefined for other files and addresses that are no files. */
  pathOf(uri: string): string | undefined {
    const file = filePathOf(uri);
    if (file === undefined) return undefined;
    for (const root of [this.folder, this.#project.root]) {
      const path = relative(root, file).split(sep).join("/");
      if (path !== "" && path !== ".." && !path.startsWith("../") && !path.startsWith("/"))
        return this.#project.realPath(path);
    }
    return undefined;
  }

  uriOf(path: string): string {
    return pathToFileURL(join(this.folder, path)).href;
  }

  /** Resolves when the first pass has ended, whether it could read the folder or not. */
  async read(): Promise<void> {
    await this.#project.ready().catch(() => undefined);
  }

  /** The tests of a criterion, with their last results. */
  async testsOf(criterion: Criterion): Promise<readonly CriterionTest[]> {
    const saved = (await this.#savedTests()).get(criterion.id) ?? [];
    return this.criteria.tests(criterion, saved);
  }

  /** The tool that a guideline is written for. */
  toolOf(id: string): string {
    const tools = indexOf(this.#project).cached(
      "tools-of-guidelines",
      () => new Map(this.#project.guidelines.records().map((record) => [record.id, record.tool])),
    );
    const tool = tools.get(id);
    return tool === undefined || tool === "agents" ? "AGENTS.md" : toolInfo(tool as ToolId).label;
  }

  async close(): Promise<void> {
    await this.#project.close();
  }

  #savedTests(): Promise<SavedTests> {
    const stamp = `${indexOf(this.#project).generation()} ${resultsStamp(this.#project.root)}`;
    const now = performance.now();
    if (this.#coverage?.stamp === stamp && now < this.#coverage.until) return this.#coverage.tests;
    const tests = specCoverage(this.#project).then(
      ({ criteria }) => new Map(criteria.map((criterion) => [criterion.id, criterion.tests])),
    );
    tests.catch(() => {
      this.#coverage = undefined;
    });
    this.#coverage = { stamp, until: now + keptMs, tests };
    return tests;
  }
}

type SavedTests = ReadonlyMap<string, readonly CriterionTest[]>;

/** The file of an address; undefined for `untitled:` and others, and for one that does not decode. */
export function filePathOf(uri: string): string | undefined {
  try {
    return uri.startsWith("file:") ? fileURLToPath(uri) : undefined;
  } catch {
    return undefined;
  }
}

/** Changes when any process records results. */
function resultsStamp(root: string): string {
  return ["", "-wal"]
    .map((end) => statSync(join(root, `.kit/test-results.db${end}`), { throwIfNoEntry: false })?.mtimeMs ?? 0)
    .join(" ");
}

/** The configuration of a folder; the defaults for one that cannot be read, so that editing it is possible. */
async function readConfig(context: CommandContext, note: FolderOptions["note"]): Promise<KitConfig> {
  try {
    const loaded = await readProjectConfig(context, {});
    for (const warning of loaded.warnings) note(warning);
    const unrun = unrunCode(loaded, context.root);
    if (unrun !== undefined) note(describeError(untrustedCode(unrun)));
    if (loaded.untrustedCode !== true) useProjectPackages(context.root);
    return loaded.config;
  } catch (error) {
    note(
      `${describeError(error).split("\n", 1)[0]} Until it is right and the server starts again, kit uses its defaults.`,
    );
    return {};
  }
}
