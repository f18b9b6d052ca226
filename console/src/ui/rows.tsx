import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef } from "react";

interface RowsProps<Item> {
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => string;
  /** One line of a list of links. */
  readonly children: (item: Item) => ReactNode;
  readonly label: string;
  /** Asked when the end of the list comes into view. */
  readonly onEnd?: (() => void) | undefined;
}

/** A list of which only the part in view is drawn, however long it is. */
export function Rows<Item>({ items, keyOf, children, label, onEnd }: RowsProps<Item>): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => 53,
    overscan: 12,
    // React draws once in a frame, not within each event of the wheel.
    useFlushSync: false,
    getItemKey: (at) => {
      const item = items[at];
      return item === undefined ? at : keyOf(item);
    },
    onChange(list) {
      if ((list.getVirtualItems().at(-1)?.index ?? 0) >= items.length - 5) onEnd?.();
    },
  });
  return (
    <div ref={box} role="group" aria-label={label} tabIndex={0} className="min-h-0 flex-1 overflow-y-auto">
      <ul className="relative" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, key, start }) => {
          const item = items[index];
          return item === undefined ? null : (
            <li
              key={key}
              data-index={index}
              ref={rows.measureElement}
              className="absolute inset-x-0 border-line border-b [contain:layout_style]"
              style={{ top: start }}
            >
              {children(item)}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

interface PagedQuery {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  fetchNextPage(): Promise<unknown>;
}

/** Asks for the next page of a list whose end is in view, one page at a time. */
export function askForMore({ hasNextPage, isFetchingNextPage, fetchNextPage }: PagedQuery): void {
  if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
}
