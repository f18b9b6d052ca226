/** Calls `onItem` for each item of a stream, and ignores the error with which the stream ends. */
export async function readAll<Item>(
  stream: AsyncIterable<Item>,
  onItem: (item: Item) => unknown,
): Promise<void> {
  let isReading = true;
  try {
    for await (const item of stream) {
      isReading = false;
      const pending = onItem(item);
      if (pending instanceof Promise) await pending;
      isReading = true;
    }
  } catch (error) {
    if (!isReading) throw error;
  }
}
