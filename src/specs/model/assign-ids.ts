import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { DraftId } from "../adapter.ts";

/** The wish of the adapter for an id, and the place of the block for a diagnostic. */
export interface IdRequest {
  readonly id: DraftId;
  /** POSIX, relative to the project root. */
  readonly path: string;
  /** 1-based first line of the block. */
  readonly line: number;
}

export interface AssignedIds {
  /** One id per request, in the order of the requests. */
  readonly ids: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Gives every block of a project its id. The requests come in path, then position order.
 *
 * - `declared` ids are kept; from the second one on, each is a `duplicate-id` error.
 * - `sequence` ids are `<prefix><n>`, n counted from zero per prefix.
 * - The first block of a base id X gets X, unless a file declares X; the others get, …, in
 *   order, without any X-k that some other block has as its base or declared id.
 *
 * So the ids of a base depend only on its own blocks and on which X-k are bases or declared, and two
 * bases never meet: X-k belongs to the base X alone. An index can keep them current group by group.
 */
export function assignIds(requests: readonly IdRequest[]): AssignedIds {
  const groups = new Map<string, { readonly kinds: DraftId["kind"][]; readonly places: number[] }>();
  const taken = new Set<string>();
  const firstPlaces = new Map<string, IdRequest>();
  const diagnostics: Diagnostic[] = [];
  for (const [place, request] of requests.entries()) {
    const { id } = request;
    const base = id.kind === "sequence" ? id.prefix : id.value;
    const group = groups.get(base) ?? { kinds: [], places: [] };
    group.kinds.push(id.kind);
    group.places.push(place);
    groups.set(base, group);
    if (id.kind === "sequence") continue;
    taken.add(base);
    if (id.kind === "base") continue;
    const first = firstPlaces.get(base);
    if (first === undefined) firstPlaces.set(base, request);
    else diagnostics.push(duplicateId(base, request, first));
  }
  const ids = new Array<string>(requests.length).fill("");
  for (const [base, { kinds, places }] of groups) {
    const numbers = numberGroup(base, { kinds, isTaken: (id) => taken.has(id) });
    for (const [at, place] of places.entries()) ids[place] = toId(kinds[at], base, numbers[at] ?? 1);
  }
  return { ids, diagnostics };
}

/** The id that a kind, base and number stand for. */
export function toId(kind: DraftId["kind"] | undefined, base: string, n: number): string {
  if (kind === "sequence") return `${base}${n}`;
  return kind === "base" && n > 1 ? `${base}-${n}` : base;
}

export interface IdGroup {
  /** The wishes of the blocks of one base, in path, then position order. */
  readonly kinds: readonly DraftId["kind"][];
  /** Whether some block has an id as its base or declares it. */
  readonly isTaken: (id: string) => boolean;
}

/** Numbers the blocks of one base: the number is the `n` of `toId`. */
export function numberGroup(base: string, { kinds, isTaken }: IdGroup): number[] {
  let sequence = 0;
  // A declared id belongs to its block alone: blocks that only wish for it count from 2.
  let last = kinds.includes("declared") ? 1 : 0;
  return kinds.map((kind) => {
    if (kind === "declared") return 1;
    if (kind === "sequence") {
      sequence += 1;
      return sequence - 1;
    }
    last += 1;
    while (last > 1 && isTaken(`${base}-${last}`)) last += 1;
    return last;
  });
}

/** X for X-3: a base that may want to give out the same id. */
export function parentBaseOf(base: string): string | undefined {
  const hyphen = base.lastIndexOf("-");
  return hyphen > 0 && /^[1-9]\d*$/.test(base.slice(hyphen + 1)) ? base.slice(0, hyphen) : undefined;
}

/** The `duplicate-id` error of a block whose file declares an id that an earlier one declares. */
export function duplicateId(
  id: string,
  place: Omit<IdRequest, "id">,
  first: Omit<IdRequest, "id">,
): Diagnostic {
  return {
    severity: "error",
    rule: "duplicate-id",
    message: `The id "${id}" is already declared in ${first.path}, line ${first.line}.`,
    path: place.path,
    line: place.line,
    id,
    field: "id",
  };
}
