import type { SpecAdapter } from "./adapter.ts";
import { claudeAdapter } from "./adapters/claude/claude-adapter.ts";
import { cursorAdapter } from "./adapters/cursor/cursor-adapter.ts";
import { type CustomSource, createCustomAdapter } from "./adapters/custom/custom-adapter.ts";
import { kiroAdapter } from "./adapters/kiro/kiro-adapter.ts";
import { openspecAdapter } from "./adapters/openspec/openspec-adapter.ts";
import { speckitAdapter } from "./adapters/speckit/speckit-adapter.ts";
import { tesslAdapter } from "./adapters/tessl/tessl-adapter.ts";

/** The adapters of a project, in the order in which they are asked. */
export interface SpecRegistry {
  readonly adapters: readonly SpecAdapter[];
  /** The first adapter that reads the file at a path, by the path alone. */
  adapterFor(path: string): SpecAdapter | undefined;
}

export interface SpecRegistryOptions {
  /** Adapters of the user's own, asked before the built-in ones. */
  readonly adapters?: readonly SpecAdapter[];
  /** Files of the user's own that hold blocks: asked where no other tool's folder or name claims them. */
  readonly custom?: readonly CustomSource[];
}

const builtIn: readonly SpecAdapter[] = [
  kiroAdapter,
  openspecAdapter,
  speckitAdapter,
  cursorAdapter,
  claudeAdapter,
];

/**
 * Creates the registry of a project. An adapter that has the name of a built-in one replaces it.
 *
 * @example
 * ```ts
 * import { createSpecRegistry } from "kit/specs";
 *
 * const adapter = createSpecRegistry().adapterFor(".kiro/specs/returns/requirements.md");
 * console.log(adapter?.name);
 * ```
 */
export function createSpecRegistry(options: SpecRegistryOptions = {}): SpecRegistry {
  const own = options.adapters ?? [];
  const custom = options.custom ?? [];
  const names = new Set(own.map((adapter) => adapter.name));
  // Tessl comes last, because it has to look at every `*.spec.md`, whoever wrote it.
  const others = [...builtIn, ...(custom.length === 0 ? [] : [createCustomAdapter(custom)]), tesslAdapter];
  const adapters = [...own, ...others.filter((adapter) => !names.has(adapter.name))];
  return { adapters, adapterFor: (path) => adapters.find((adapter) => adapter.matches(path)) };
}
