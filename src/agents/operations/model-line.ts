import type { LanguageModelV4 } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { AgentRuntime } from "../agent-runtime.ts";
import type { ModelSource, ProfileModel } from "../define/model-settings.ts";
import type { ModelFailure } from "../turn/retry.ts";

/** Milliseconds for which a failed model is skipped if its list names another one. */
const skipMs = 60_000;

/** When each failed model may be used again; shared by all sessions, since an application creates each model once. */
const skippedUntil = new WeakMap<LanguageModelV4, number>();

/** The models that one operation may call, in their configured order. */
export class ModelLine {
  readonly #names: readonly ModelSource[];
  readonly #runtime: Pick<AgentRuntime, "resolveModel" | "clock">;
  readonly #tried = new Set<ModelSource>();
  #current: ResolvedModel | undefined;

  private constructor(choice: ProfileModel, runtime: Pick<AgentRuntime, "resolveModel" | "clock">) {
    this.#names = [...new Set([choice].flat())];
    this.#runtime = runtime;
  }

  /**
   * Resolves the first usable model that has not failed recently. Skips a model without a key or a package if another
   * one follows. Rejects with the first model's error if none is usable.
   */
  static async open(
    choice: ProfileModel,
    runtime: Pick<AgentRuntime, "resolveModel" | "clock">,
  ): Promise<ModelLine> {
    const line = new ModelLine(choice, runtime);
    line.#current = await line.#pick();
    return line;
  }

  /** The model in use. */
  get current(): ResolvedModel {
    if (this.#current === undefined) throw new TypeError("Open the model line before using it.");
    return this.#current;
  }

  /** Whether the list has more than one model. */
  get hasOthers(): boolean {
    return this.#names.length > 1;
  }

  /** Switches to the next model after a failure; false if none is left. Other operations skip the failed one, too. */
  async next({ retryAfterMs = 0 }: Pick<ModelFailure, "retryAfterMs">): Promise<boolean> {
    if (!this.hasOthers) return false;
    skippedUntil.set(this.current.model, this.#runtime.clock.now() + Math.max(skipMs, retryAfterMs));
    try {
      this.#current = await this.#pick();
      return true;
    } catch (error) {
      if (isUnusable(error)) return false;
      throw error;
    }
  }

  async #pick(): Promise<ResolvedModel> {
    let reserve: ResolvedModel | undefined;
    let reason: unknown;
    for (const name of this.#names) {
      if (this.#tried.has(name)) continue;
      try {
        const resolved = typeof name === "string" ? await this.#runtime.resolveModel(name) : ofProgram(name);
        if ((skippedUntil.get(resolved.model) ?? 0) <= this.#runtime.clock.now() || !this.hasOthers)
          return this.#take(name, resolved);
        reserve ??= resolved;
      } catch (error) {
        if (!isUnusable(error)) throw error;
        this.#tried.add(name);
        reason ??= error;
      }
    }
    // All remaining models have failed recently: use the first of them nevertheless.
    if (reserve !== undefined) return this.#take(reserve.name, reserve);
    throw reason ?? new NoModelLeft();
  }

  #take(name: ModelSource, resolved: ResolvedModel): ResolvedModel {
    this.#tried.add(name).add(resolved.name);
    return resolved;
  }
}

/** A model that a program brings along: kit knows nothing of it, and asks for JSON in words. */
function ofProgram(model: LanguageModelV4): ResolvedModel {
  return { name: `${model.provider}/${model.modelId}`, model, structuredOutput: "never" };
}

class NoModelLeft extends Error {
  override readonly name = "NoModelLeft";
}

/** Whether a model only lacks its key or package, which does not invalidate the list that names it. */
function isUnusable(error: unknown): error is KitError | NoModelLeft {
  return error instanceof NoModelLeft || (error instanceof KitError && error.code === "unavailable");
}
