import { compileGlob } from "../../base/glob/glob.ts";
import { guidelineAdapterFor } from "../../guidelines/registry.ts";
import type { SpecAdapter } from "../../specs/adapter.ts";
import { checkedAdapter } from "../../specs/checked-adapter.ts";
import { isFixturePath } from "../../specs/model/test-path.ts";
import { createSpecRegistry } from "../../specs/registry.ts";
import type { ProjectConfig } from "../project.ts";

/** Which files of a project are read, and by what. Decides by the path alone. */
export interface SourceCatalog {
  specAdapterFor(path: string): SpecAdapter | undefined;
  isGuidelineFile(path: string): boolean;
  isSource(path: string): boolean;
  /** Names all that the content of an index depends on beside the files and the version of kit. */
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
  // A configuration that names spec files means them, fixtures or not.
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
      // The code of a user's own adapter is the best there is to tell one version of it from another.
      own.map((adapter) => [adapter.name, String(adapter.matches), String(adapter.parse)]),
    ]),
  };
}

interface Globs {
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
}

function createFilter({ include = [], exclude = [] }: Globs = {}): (path: string) => boolean {
  const included = include.map(compileGlob);
  const excluded = exclude.map(compileGlob);
  return (path) =>
    (included.length === 0 || included.some((glob) => glob.matches(path))) &&
    !excluded.some((glob) => glob.matches(path));
}
