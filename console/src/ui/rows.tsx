import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef } from "react";

interface RowsProps<Item> {
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => string;
  /** Renders one row. */
  readonly children: (item: Item) => ReactNode;
  readonly label: string;
  /** Called when the end of the list comes into view. */
  readonly onEnd?: (() => void) | undefined;
}

/** A list of any length, of which only the visible part is rendered. */
export function Rows<Item>({ items, keyOf, children, label, onEnd }: RowsProps<Item>): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => 53,
    overscan: 12,
    // So that React renders once per frame, not for each wheel event.
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

/** Loads the next page of a list whose end is in view, one page at a time. */
export function askForMore({ hasNextPage, isFetchingNextPage, fetchNextPage }: PagedQuery): void {
  if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
}
