import type { SpecAdapter } from "./adapter.ts";
import { claudeAdapter } from "./adapters/claude/claude-adapter.ts";
import { cursorAdapter } from "./adapters/cursor/cursor-adapter.ts";
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

/** Adapters of the user's own, asked before the built-in ones. */
export interface SpecRegistryOptions {
  readonly adapters?: readonly SpecAdapter[];
}

const builtIn: readonly SpecAdapter[] = [
  kiroAdapter,
  openspecAdapter,
  speckitAdapter,
  cursorAdapter,
  claudeAdapter,
  tesslAdapter,
];

/** Creates the registry of a project. An adapter that has the name of a built-in one replaces it. */
export function createSpecRegistry(options: SpecRegistryOptions = {}): SpecRegistry {
  const own = options.adapters ?? [];
  const names = new Set(own.map((adapter) => adapter.name));
  const adapters = [...own, ...builtIn.filter((adapter) => !names.has(adapter.name))];
  return { adapters, adapterFor: (path) => adapters.find((adapter) => adapter.matches(path)) };
}
