import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { EventListener } from "../../agents/events.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import { openIndexedProject } from "../../project/open-indexed-project.ts";
import type { Project } from "../../project/project.ts";
import type { SharedIndex } from "../../project/store/open-index.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { Environment } from "../config/environment.ts";
import { type LoadedConfig, loadConfig } from "../config/load-config.ts";
import type { SourceModules } from "../sources/discover-sources.ts";
import { type MakeEngine, openProjectService } from "./open-project-service.ts";
import type { ProjectService } from "./service.ts";

/** A project as data: `kit build` writes it for platforms without a project folder, or a program composes it. */
export interface ApplicationData {
  /** The name of the project in lists and exports. */
  readonly name: string;
  /** Specs, guidelines, skills, roles, `kit.toml` and files that code reads, by project-relative path: text or bytes. */
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  /**
   * Agents, workflows, webhooks and `kit.config.ts` by project-relative path. kit loads the modules after it has written the files:
   * `{ "src/agents/reviewer.ts": () => import("./src/agents/reviewer.ts") }`.
   */
  readonly modules: SourceModules;
}

export interface OpenApplicationOptions {
  /** Keys, secrets and settings; default: the environment of the process. */
  readonly env?: Environment | undefined;
  /** The folder to which kit writes the files; default: a temporary folder, which `close` removes. */
  readonly folder?: string | undefined;
  /** The store; the caller closes it. Default: the store named in the configuration, else SQLite in `folder`. */
  readonly store?: SessionStore | undefined;
  /**
   * "memory", a folder, an engine, or a function that creates one with the limits of the configuration; `close` drains
   * it. Default: as the configuration says, else a folder in `folder`.
   */
  readonly engine?: string | Engine | MakeEngine | undefined;
  /** For agents without a sandbox; default: the sandbox named in the configuration. */
  readonly sandbox?: SandboxFactory | undefined;
  /** Models by their full name, in addition to those of the providers. */
  readonly models?: Readonly<Record<string, LanguageModelV4>> | undefined;
  /** Receives the events of every agent and workflow. */
  readonly onEvent?: EventListener | undefined;
  /** Receives errors of listeners and schedules, and the reasons of failed runs and dispatches. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** False if another process does the work: this one only accepts and reads. Default true. */
  readonly works?: boolean | undefined;
}

/** An open application without a project folder. */
export interface OpenedApplication {
  readonly project: Project;
  readonly service: ProjectService;
  readonly loaded: LoadedConfig;
  /** Drains the service for at most `timeoutMs` (default 30,000), and removes the temporary folder. */
  close(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** Keeps the index of an application in a database of the caller; not for callers of the package. */
export interface ApplicationIndex {
  readonly index?: SharedIndex | undefined;
}

/**
 * Opens an application that has no project folder: its files are data, its modules are imported already. They are put into
 * a temporary folder, and what reads a project reads them there; nothing is written into the project.
 *
 * Throws `invalid_request` for a path that leads out of the project, and for a wrong configuration.
 */
export async function openApplication(
  data: ApplicationData,
  options: OpenApplicationOptions & ApplicationIndex = {},
): Promise<OpenedApplication> {
  const { env, folder, index, onEvent, ...rest } = options;
  const opened = await openApplicationProject(data, { env, folder, index });
  try {
    const service = await openProjectService({
      ...rest,
      ...opened,
      modules: data.modules,
      observers: onEvent === undefined ? [] : [onEvent],
    });
    const close: OpenedApplication["close"] = async (how) => {
      await service.close(how);
      await opened.close();
    };
    return { ...opened, service, close };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** The project of an application, without its agents: their opener may open them again and again. */
export interface ApplicationProject extends Pick<OpenedApplication, "project" | "loaded"> {
  close(): Promise<void>;
}

/** Puts the files of an application in place, and opens the project that they are. Throws as `openApplication` does. */
export async function openApplicationProject(
  data: ApplicationData,
  { env: environment, folder, index }: Pick<OpenApplicationOptions, "env" | "folder"> & ApplicationIndex,
): Promise<ApplicationProject> {
  const ownFolder = folder === undefined ? mkdtempSync(join(tmpdir(), "kit-application-")) : undefined;
  const root = folder ?? join(ownFolder ?? "", data.name.replace(/[^\w.-]+/g, "-") || "application");
  const closing = new AsyncDisposableStack();
  if (ownFolder !== undefined) closing.defer(() => rmSync(ownFolder, { recursive: true, force: true }));
  try {
    putFiles(root, data.files);
    const loaded = await loadConfig({
      cwd: root,
      module: configModule(data),
      isTrusted: true,
      ...(environment && { environment }),
    });
    const project = await openIndexedProject({
      root,
      config: loaded.config,
      readOnly: true,
      indexFile: index ?? ":memory:",
    });
    closing.defer(() => project.close());
    return { project: { ...project, name: data.name }, loaded, close: () => closing.disposeAsync() };
  } catch (error) {
    await closing.disposeAsync();
    throw error;
  }
}

/** Writes files below a folder. Throws `invalid_request` for a path that leads out of it. */
export function putFiles(root: string, files: ApplicationData["files"]): void {
  mkdirSync(root, { recursive: true });
  for (const [path, content] of Object.entries(files)) {
    const segments = path.split("/");
    if (segments.some((segment) => ["", ".", ".."].includes(segment)) || path.includes("\\"))
      throw leadsOut(path);
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}

function leadsOut(path: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `The application has a file ${JSON.stringify(path)}, which is not a path inside a project.`,
    hint: "Name files from the project's folder on, with /: docs/rules.md.",
  });
}

function configModule({ modules }: ApplicationData): Parameters<typeof loadConfig>[0]["module"] {
  for (const [name, load] of Object.entries(modules))
    if (/^kit\.config\.(ts|mts|js|mjs)$/.test(name)) return { name, load };
  return undefined;
}
