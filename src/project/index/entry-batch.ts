import type { BlockEntry, FileEntry } from "./file-entry.ts";

/**
 * Entries in the form in which they cost least to send to another thread: objects are sent with the
 * names of their fields, so there is one list of texts and one of numbers for all of them.
 */
export interface EntryBatch {
  readonly texts: readonly string[];
  readonly numbers: Float64Array;
}

export function packEntries(entries: readonly FileEntry[]): EntryBatch {
  const texts: string[] = [];
  const numbers: number[] = [entries.length];
  for (const { path, hash, guidelines, guidelineCount, diagnostics, features, blocks } of entries) {
    texts.push(path, hash, guidelines, diagnostics, ...features);
    numbers.push(guidelineCount, features.length, blocks.length);
    for (const block of blocks) {
      texts.push(block.base, block.title, block.content, block.data, block.edges);
      texts.push(block.searchTitle, block.searchBody, block.tags, block.marks);
      for (const ref of block.refs) texts.push(ref);
      numbers.push(block.classCode, block.kind, block.checksum, block.edgesChecksum, block.refs.length);
    }
  }
  return { texts, numbers: Float64Array.from(numbers) };
}

export function unpackEntries({ texts, numbers }: EntryBatch): FileEntry[] {
  let textAt = 0;
  let numberAt = 0;
  const text = (): string => texts[textAt++] ?? "";
  const number = (): number => numbers[numberAt++] ?? 0;
  const list = <Item>(length: number, item: () => Item): Item[] => Array.from({ length }, item);
  const block = (): BlockEntry => {
    const [base, title, content, data, edges] = [text(), text(), text(), text(), text()];
    const [searchTitle, searchBody, tags, marks] = [text(), text(), text(), text()];
    const [classCode, kind, checksum, edgesChecksum] = [number(), number(), number(), number()];
    const refs = list(number(), text);
    return {
      ...{ classCode, kind, base, title, content, data, checksum, edges, edgesChecksum },
      ...{ searchTitle, searchBody, tags, marks, refs },
    };
  };
  return list(number(), () => {
    const [path, hash, guidelines, diagnostics] = [text(), text(), text(), text()];
    const guidelineCount = number();
    const featureCount = number();
    const blockCount = number();
    const features = list(featureCount, text);
    const blocks = list(blockCount, block);
    return { path, hash, guidelines, guidelineCount, diagnostics, features, blocks };
  });
}
