import { statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { KitConfig } from "../../app/config/config-schema.ts";
import { untrustedCode } from "../../app/trust/trust.ts";
import { perObject } from "../../base/remember.ts";
import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import { type ToolId, toolInfo } from "../../guidelines/tools/tool-table.ts";
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

/** The criteria and their tests are kept this long, in ms. */
const keptMs = 1_000;
/** Reading them is a small share of the time: the next reading waits so many times as long as the last one took. */
const restShare = 10;
const mostRestMs = 30_000;

interface Opened extends Omit<FolderOptions, "context"> {
  readonly config: KitConfig;
}

/** One folder of the editor: its project, and the texts that are open in it. */
export class OpenFolder {
  /** As the editor names it: links in it are not followed. */
  readonly folder: string;
  readonly layer: TextLayer;
  readonly criteria: OpenCriteria;
  readonly #project: Project;
  readonly #onChange: FolderOptions["onChange"];
  readonly #note: FolderOptions["note"];
  readonly #closing = new AbortController();
  #reading: Promise<void> = Promise.resolve();
  #nextReading: Promise<void> | undefined;
  #first: Promise<void> | undefined;
  /** The results that the last reading met, the end of its use, and the rest before the next one. */
  #facts = { stamp: "", until: 0, restMs: 0 };

  private constructor(folder: string, project: Project, { config, onChange, note }: Opened) {
    this.folder = folder;
    this.#project = project;
    this.#onChange = onChange;
    this.#note = note;
    this.layer = new TextLayer(project, config);
    this.criteria = new OpenCriteria(this.layer);
  }

  /** Throws `invalid_request` for a folder that is no project. Runs no code of a folder that no person trusts. */
  static async open(folder: string, { context, onChange, note }: FolderOptions): Promise<OpenFolder> {
    const root = realFolder(folder);
    const config = await readConfig({ ...context, root, cwd: root }, note);
    const project = await openProject({ root, config, background: true, signal: context.signal });
    const opened = new OpenFolder(folder, project, { config, onChange, note });
    // The editor hears of a change when the criteria are read again: a pass can follow the other, and problems of a whole project take long.
    const changed = (): Promise<void> => opened.#renew();
    await opened.#renew();
    // The watch waits for the first pass, and a large project answers before.
    void project
      .watch(
        () => void changed(),
        (error) => note(`kit reads the folder every two seconds: ${describeError(error)}`),
      )
      .catch((error: unknown) => context.signal.aborted || note(describeError(error)))
      .then(changed);
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

  /** Resolves when the first pass has ended, whether it could read the folder or not, and its criteria are known. */
  read(): Promise<void> {
    this.#first ??= this.#project
      .ready()
      .catch(() => undefined)
      .then(() => this.#renew());
    return this.#first;
  }

  /** The tests of a criterion, with their last results. */
  testsOf(criterion: Criterion): readonly CriterionTest[] {
    // Tests and their results change without a change of the index.
    if (performance.now() > this.#facts.until || this.#facts.stamp !== resultsStamp(this.#project.root))
      void this.#renew();
    return this.criteria.tests(criterion);
  }

  /** The tool that a guideline is written for. */
  toolOf(id: string): string {
    const tool = toolsOf(indexOf(this.#project).guidelineRecords()).get(id);
    return tool === undefined || tool === "agents" ? "AGENTS.md" : toolInfo(tool as ToolId).label;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#reading;
    await this.#project.close();
  }

  /**
   * Reads the criteria and their tests again, once for all changes until it begins. In a large project it first leaves some time to
   * other work.
   */
  #renew(): Promise<void> {
    this.#nextReading ??= (async () => {
      const { signal } = this.#closing;
      await this.#reading;
      await sleep(this.#facts.restMs, undefined, { signal }).catch(() => undefined);
      this.#nextReading = undefined;
      if (signal.aborted) return;
      this.#reading = this.#readFacts();
      await this.#reading;
    })();
    return this.#nextReading;
  }

  async #readFacts(): Promise<void> {
    const from = performance.now();
    const stamp = resultsStamp(this.#project.root);
    try {
      await this.layer.readFacts();
    } catch (error) {
      this.#note(describeError(error));
    }
    // Problems of the index have changed, too, whether the criteria could be read or not.
    if (!this.#closing.signal.aborted) this.#onChange();
    const now = performance.now();
    this.#facts = { stamp, until: now + keptMs, restMs: Math.min((now - from) * restShare, mostRestMs) };
  }
}

const toolsOf = perObject(
  (records: readonly GuidelineRecord[]) => new Map(records.map(({ id, tool }) => [id, tool])),
);

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
