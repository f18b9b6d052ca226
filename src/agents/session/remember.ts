/** Lists of receipts that a later turn may refer to. */
const maxLists = 32;

/** Keeps the turn that has first told a list; of many lists the oldest are told again. */
export function remember(lists: Map<string, string>, digest: string, turnId: string): void {
  if (lists.has(digest)) return;
  const [oldest] = lists.keys();
  if (lists.size >= maxLists && oldest !== undefined) lists.delete(oldest);
  lists.set(digest, turnId);
}
