import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useMemo, useRef } from "react";
import { Button } from "./button.tsx";
import { toReadable, visible } from "./text.ts";

/** The most characters of a line that are rendered as one piece. */
const longestLine = 2_000;
/** Shorter texts are rendered without a scrolling box. */
const fewLines = 40;

/** A text of any length, of which only the visible lines are rendered. */
export function LongText({ value, label }: { readonly value: unknown; readonly label: string }): ReactNode {
  const text = toReadable(value);
  const lines = useMemo(() => linesOf(text), [text]);
  return (
    <div className="group relative min-w-0 rounded-md border border-line bg-sunken">
      {lines.length <= fewLines ? (
        <pre className="whitespace-pre-wrap p-3 font-mono text-xs foreign">{visible(text)}</pre>
      ) : (
        <VirtualLines lines={lines} label={label} />
      )}
      <span className="absolute top-1.5 right-4 opacity-0 focus-within:opacity-100 group-hover:opacity-100">
        <Button
          variant="quiet"
          icon="copy"
          aria-label={`Copy ${label}`}
          onClick={() => void navigator.clipboard?.writeText(text)}
        />
      </span>
    </div>
  );
}

function VirtualLines({
  lines,
  label,
}: {
  readonly lines: readonly string[];
  readonly label: string;
}): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => 16,
    overscan: 20,
  });
  return (
    <div
      ref={box}
      role="group"
      aria-label={`${label}, ${lines.length.toLocaleString()} lines`}
      tabIndex={0}
      className="h-96 overflow-auto p-3"
    >
      <div className="relative" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start }) => (
          <pre
            key={index}
            data-index={index}
            ref={rows.measureElement}
            className="absolute inset-x-0 top-0 min-h-4 whitespace-pre-wrap font-mono text-xs foreign"
            style={{ transform: `translateY(${start}px)` }}
          >
            {visible(lines[index] ?? "")}
          </pre>
        ))}
      </div>
    </div>
  );
}

function linesOf(text: string): readonly string[] {
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    if (line.length <= longestLine) lines.push(line);
    else for (let at = 0; at < line.length; at += longestLine) lines.push(line.slice(at, at + longestLine));
  }
  return lines;
}
