/**
 * Keeps the answer about each object for as long as the object lives. For objects that never change, such as the records of an index: what
 * is computed about them is computed once.
 */
export function perObject<Subject extends object, Answer>(
  read: (subject: Subject) => Answer,
): (subject: Subject) => Answer {
  const known = new WeakMap<Subject, { readonly answer: Answer }>();
  return (subject) => {
    const kept = known.get(subject) ?? { answer: read(subject) };
    known.set(subject, kept);
    return kept.answer;
  };
}

/** Returns the list of the last call while the new one has the same entries, so that what was computed about it stays valid. */
export function sameWhileEqual<Entry>(): (list: readonly Entry[]) => readonly Entry[] {
  let last: readonly Entry[] = [];
  return (list) => {
    if (list.length !== last.length || list.some((entry, index) => entry !== last[index])) last = list;
    return last;
  };
}
