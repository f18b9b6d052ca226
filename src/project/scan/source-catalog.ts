import { compileGlob } from "../../base/glob/glob.ts";
import { guidelineAdapterFor } from "../../guidelines/registry.ts";
import type { SpecAdapter } from "../../specs/adapter.ts";
import { checkedAdapter } from "../../specs/checked-adapter.ts";
import { isFixturePath } from "../../specs/model/test-path.ts";
import { createSpecRegistry } from "../../specs/registry.ts";
import type { ProjectConfig } from "../project-config.ts";

/** Decides by the path alone which files of a project are read, and by which adapter. */
export interface SourceCatalog {
  specAdapterFor(path: string): SpecAdapter | undefined;
  isGuidelineFile(path: string): boolean;
  isSource(path: string): boolean;
  /** Identifies the configuration that the content of an index depends on. */
  readonly fingerprint: string;
}

/** Creates the catalog of a configuration. */
export function createSourceCatalog(config: ProjectConfig = {}): SourceCatalog {
  const own = config.specs?.adapters ?? [];
  const registry = createSpecRegistry({
    adapters: own.map(checkedAdapter),
    custom: config.specs?.custom ?? [],
  });
  const isSpecAllowed = createFilter(config.specs);
  // Spec files that the configuration names are read even where they look like fixtures.
  const readsFixtures = (config.specs?.include?.length ?? 0) > 0;
  const named = new Set(["custom", ...own.map(({ name }) => name)]);
  const isGuidelineAllowed = createFilter(config.guidelines);
  const specAdapterFor = (path: string): SpecAdapter | undefined => {
    const adapter = registry.adapterFor(path);
    if (adapter === undefined || !isSpecAllowed(path)) return undefined;
    return readsFixtures || named.has(adapter.name) || !isFixturePath(path, adapter.name)
      ? adapter
      : undefined;
  };
  const isGuidelineFile = (path: string): boolean =>
    guidelineAdapterFor(path) !== undefined && isGuidelineAllowed(path);
  return {
    specAdapterFor,
    isGuidelineFile,
    isSource: (path) => specAdapterFor(path) !== undefined || isGuidelineFile(path),
    fingerprint: JSON.stringify([
      config.specs?.include,
      config.specs?.exclude,
      config.specs?.custom,
      config.guidelines?.include,
      config.guidelines?.exclude,
      // Only its code distinguishes versions of a user's adapter.
      own.map((adapter) => [adapter.name, String(adapter.matches), String(adapter.parse)]),
    ]),
  };
}

interface Globs {
  readonly include?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
}

function createFilter({ include = [], exclude = [] }: Globs = {}): (path: string) => boolean {
  const included = include.map(compileGlob);
  const excluded = exclude.map(compileGlob);
  return (path) =>
    (included.length === 0 || included.some((glob) => glob.matches(path))) &&
    !excluded.some((glob) => glob.matches(path));
}
