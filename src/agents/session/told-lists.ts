/** Lists of receipts that a later turn may refer to, with the turn that has told each: the oldest first. */
export type ToldLists = readonly { readonly digest: string; readonly turnId: string }[];

export const nothingTold: ToldLists = [];

const maxLists = 32;

/** Keeps the turn that has first told a list; of many lists the oldest are told again. */
export function remembered(lists: ToldLists, digest: string, turnId: string): ToldLists {
  if (digest === "" || turnOf(lists, digest) !== undefined) return lists;
  const kept = lists.length < maxLists ? lists : lists.slice(1);
  return [...kept, { digest, turnId }];
}

/** The turn that has told the list of that digest. */
export function turnOf(lists: ToldLists, digest: string): string | undefined {
  for (const list of lists) if (list.digest === digest) return list.turnId;
  return undefined;
}
