import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { SpecFeature } from "../../protocol/spec-outline.ts";
import { slugOf } from "../../specs/model/block-title.ts";
import type { ProjectSpecs } from "../project.ts";
import { parentOf } from "../scan/tree.ts";

type NamedBlock = Pick<SpecBlock, "id" | "path" | "framework">;

/** The names that people see for specs: the feature, and the number in it. */
export interface SpecNames {
  /** `checkout#1` for a requirement, `checkout#task-1.2`, `001-cart#FR-001`; the id of a block in no known feature. */
  nameOf(block: NamedBlock): string;
  /** The ids of the specs that a name means, in any case; the number of a criterion means its requirement. */
  resolve(name: string): readonly string[];
}

/** Reads the features of a project once; create one per answer. */
export function createSpecNames(specs: Pick<ProjectSpecs, "features" | "outline">): SpecNames {
  const features = readAll((cursor) => {
    const page = specs.features({ limit: 1_000, ...cursor });
    return [page.features, page.next_cursor];
  });
  const byPath = new Map(features.map((feature) => [keyOf(feature), feature]));

  const featureOf = ({ path, framework }: NamedBlock): SpecFeature | undefined => {
    for (let feature = path; feature !== ""; feature = parentOf(feature)) {
      const found = byPath.get(keyOf({ framework, feature }));
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const nameOf = (block: NamedBlock): string => {
    const feature = featureOf(block);
    return feature === undefined ? block.id : `${feature.name}#${numberOf(block.id, feature.name)}`;
  };
  return {
    nameOf,
    resolve(written) {
      const at = written.lastIndexOf("#");
      if (at <= 0) return [];
      const label = written.slice(0, at).toLowerCase();
      const number = written.slice(at + 1).toLowerCase();
      const sameName = features.filter(
        ({ name }) => name.toLowerCase() === label || name.toLowerCase().endsWith(`/${label}`),
      );
      const blocks = sameName.flatMap(({ framework, feature, name }) =>
        readAll((cursor) => {
          const page = specs.outline({ framework, feature, limit: 1_000, ...cursor });
          return [page.blocks, page.next_cursor];
        }).map(({ id }) => ({ id, number: numberOf(id, name).toLowerCase() })),
      );
      const withNumber = (expected: string): string[] =>
        blocks.filter((block) => block.number === expected).map(({ id }) => id);
      const found = withNumber(number);
      const requirement = /^(\d+)\.\d/.exec(number)?.[1];
      return found.length > 0 || requirement === undefined ? found : withNumber(requirement);
    },
  };
}

function keyOf({ framework, feature }: Pick<SpecFeature, "framework" | "feature">): string {
  return `${framework} ${feature}`;
}

/**
 * The end of an id, without framework, feature and kind of document: `fw_a-cart-requirements-req1` is 1, and so is `…-req1-2`, which
 * another feature of the name has.
 */
function numberOf(id: string, featureName: string): string {
  const slug = slugOf(featureName.slice(featureName.lastIndexOf("/") + 1));
  const at = slug === "" ? -1 : id.indexOf(`-${slug}-`);
  const rest = at === -1 ? id.replace(/^(?:fw_[a-e]|openspec)-/, "") : id.slice(at + slug.length + 2);
  return rest
    .replace(/^requirements-(?:req(?=\d))?/, "")
    .replace(/^tasks-/, "task-")
    .replace(/^((?:task-)?\d+(?:\.\d+)*)-\d+$/, "$1")
    .replace(/^(?!task-)[a-z]{1,4}-?(?=\d)/, (code) => code.toUpperCase());
}

function readAll<Item>(
  read: (page: { readonly cursor?: string }) => readonly [readonly Item[], string | undefined],
): Item[] {
  const [first, firstCursor] = read({});
  const items = [...first];
  for (let cursor = firstCursor; cursor !== undefined; ) {
    const [more, next] = read({ cursor });
    items.push(...more);
    cursor = next;
  }
  return items;
}
