import type { Diagnostic } from "../protocol/diagnostic.ts";
import type { DraftId } from "./adapter.ts";

/** What an id depends on: the wish of the adapter, and the place of the block for a diagnostic. */
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
  const bases = new Set<string>();
  const declared = new Set<string>();
  for (const { id } of requests) {
    if (id.kind === "base") bases.add(id.value);
    else if (id.kind === "declared") declared.add(id.value);
  }
  const isTaken = (id: string): boolean => bases.has(id) || declared.has(id);
  const sequenceIds = sequences();
  const baseIds = suffixes({ isDeclared: (id) => declared.has(id), isTaken });
  const firstPlaces = new Map<string, IdRequest>();
  const diagnostics: Diagnostic[] = [];
  const ids = requests.map((request): string => {
    const { id } = request;
    if (id.kind === "sequence") return sequenceIds(id.prefix);
    if (id.kind === "base") return baseIds(id.value);
    const first = firstPlaces.get(id.value);
    if (first === undefined) firstPlaces.set(id.value, request);
    else diagnostics.push(duplicateId(id.value, request, first));
    return id.value;
  });
  return { ids, diagnostics };
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

function sequences(): (prefix: string) => string {
  const next = new Map<string, number>();
  return (prefix) => {
    const n = next.get(prefix) ?? 0;
    next.set(prefix, n + 1);
    return `${prefix}${n}`;
  };
}

function suffixes(known: {
  isDeclared: (id: string) => boolean;
  isTaken: (id: string) => boolean;
}): (base: string) => string {
  const last = new Map<string, number>();
  return (base) => {
    let k = last.get(base) ?? 0;
    if (k === 0 && !known.isDeclared(base)) {
      last.set(base, 1);
      return base;
    }
    k = Math.max(k, 1) + 1;
    while (known.isTaken(`${base}-${k}`)) k += 1;
    last.set(base, k);
    return `${base}-${k}`;
  };
}
