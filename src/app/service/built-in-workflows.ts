import { type BuiltInName, isBuiltInName } from "../../protocol/built-in-workflows.ts";
import type { RunnableWorkflow } from "../sources/discover-sources.ts";
import type { BuiltInParts, BuiltInWorkflow } from "./built-in-workflow.ts";

/** Their modules are loaded with the first run, since most services start none. */
const loaders: Readonly<Record<BuiltInName, (parts: BuiltInParts) => Promise<BuiltInWorkflow>>> = {
  "kit.spec": async (parts) => (await import("../spec-run/spec-workflow.ts")).specWorkflow(parts),
  "kit.verify": async (parts) => (await import("../verify/verify-workflow.ts")).verifyWorkflow(parts),
};

/** kit's own workflows, of which a service with an open project can start runs as of any workflow. */
export class BuiltInWorkflows {
  readonly #parts: BuiltInParts;
  readonly #loaded = new Map<BuiltInName, Promise<BuiltInWorkflow>>();

  constructor(parts: BuiltInParts) {
    this.#parts = parts;
  }

  /** Returns the workflow of a name; undefined for a name that is not one of kit's own. */
  async find(name: string): Promise<(RunnableWorkflow & Pick<BuiltInWorkflow, "admit">) | undefined> {
    if (!isBuiltInName(name)) return undefined;
    const loading = this.#loaded.get(name) ?? loaders[name](this.#parts);
    this.#loaded.set(name, loading);
    // A module that could not be read is read again by the next run.
    loading.catch(() => this.#loaded.delete(name));
    const { definition, admit } = await loading;
    const { run, payload, result } = definition;
    return { name, run, payload, result, admit };
  }
}
