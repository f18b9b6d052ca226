import type { LanguageModelV4 } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { ModelChoice } from "../../protocol/prompt.ts";
import type { AgentRuntime } from "../agent-runtime.ts";
import type { ModelFailure } from "../turn/retry.ts";

/** How long a model that has failed for good is passed over where another one is named beside it, in ms. */
const restMs = 60_000;

/** Until when each is passed over; shared by all sessions, since models are made once per application. */
const restingUntil = new WeakMap<LanguageModelV4, number>();

/** The models that one operation may ask, in the order in which they are named. */
export class ModelLine {
  readonly #names: readonly string[];
  readonly #runtime: Pick<AgentRuntime, "resolveModel" | "clock">;
  readonly #tried = new Set<string>();
  #current: ResolvedModel | undefined;

  private constructor(choice: ModelChoice, runtime: Pick<AgentRuntime, "resolveModel" | "clock">) {
    this.#names = typeof choice === "string" ? [choice] : [...new Set(choice)];
    this.#runtime = runtime;
  }

  /**
   * Resolves the first model that can be used and has not failed just now. One without a key or a package is
   * passed over where another one follows. Rejects as resolving the first one does where none can be used.
   */
  static async open(
    choice: ModelChoice,
    runtime: Pick<AgentRuntime, "resolveModel" | "clock">,
  ): Promise<ModelLine> {
    const line = new ModelLine(choice, runtime);
    line.#current = await line.#pick();
    return line;
  }

  /** The one at work. */
  get current(): ResolvedModel {
    if (this.#current === undefined) throw new TypeError("A line of models is opened before it is used.");
    return this.#current;
  }

  /** Whether there is more than one. */
  get hasOthers(): boolean {
    return this.#names.length > 1;
  }

  /** Goes on to the next model after a failure; false where none is left. Others pass over the failed one, too. */
  async next({ retryAfterMs = 0 }: Pick<ModelFailure, "retryAfterMs">): Promise<boolean> {
    if (!this.hasOthers) return false;
    restingUntil.set(this.current.model, this.#runtime.clock.now() + Math.max(restMs, retryAfterMs));
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
        const resolved = await this.#runtime.resolveModel(name);
        if ((restingUntil.get(resolved.model) ?? 0) <= this.#runtime.clock.now() || !this.hasOthers)
          return this.#take(name, resolved);
        reserve ??= resolved;
      } catch (error) {
        if (!isUnusable(error)) throw error;
        this.#tried.add(name);
        reason ??= error;
      }
    }
    // All that are left have failed just now: the first of them is asked nevertheless.
    if (reserve !== undefined) return this.#take(reserve.name, reserve);
    throw reason ?? new NoModelLeft();
  }

  #take(name: string, resolved: ResolvedModel): ResolvedModel {
    this.#tried.add(name).add(resolved.name);
    return resolved;
  }
}

class NoModelLeft extends Error {
  override readonly name = "NoModelLeft";
}

/** Without a key or a package, a model is no fault of the list that names it. */
function isUnusable(error: unknown): error is KitError | NoModelLeft {
  return error instanceof NoModelLeft || (error instanceof KitError && error.code === "unavailable");
}
