import type { ReactNode } from "react";
import { type DiffLine, diffLines } from "./line-diff.ts";
import { parsePatch } from "./patch.ts";
import { visible } from "./text.ts";

const mostLines = 1_001;

const lineStyles = {
  " ": "",
  "-": "bg-bad-back text-bad",
  "+": "bg-good-back text-good",
  "@": "text-soft",
} as const;
const signs = { " ": " ", "-": "−", "+": "+", "@": "…" } as const;
const names = { " ": "", "-": "removed: ", "+": "added: ", "@": "left out: " } as const;

/** A change of a file, line by line. */
export function Diff({ path, before, after }: DiffProps): ReactNode {
  return <ChangedFile path={path} lines={diffLines(before, after)} />;
}

/** A diff of Git, file by file. */
export function Patch({ text }: { readonly text: string }): ReactNode {
  return (
    <div className="flex min-w-0 flex-col gap-2">
      {parsePatch(text).map(({ path, lines }) => (
        <ChangedFile key={path} path={path} lines={lines} />
      ))}
    </div>
  );
}

function ChangedFile(file: LinesProps): ReactNode {
  return (
    <figure className="overflow-hidden rounded-md border border-line bg-sunken">
      <figcaption className="border-line border-b px-3 py-1.5 font-mono text-soft text-xs foreign">
        {visible(file.path)}
      </figcaption>
      <Lines {...file} />
    </figure>
  );
}

interface DiffProps {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/** The changed lines, without the file's name. */
export function DiffLines({ path, before, after }: DiffProps): ReactNode {
  return <Lines path={path} lines={diffLines(before, after)} />;
}

interface LinesProps {
  readonly path: string;
  readonly lines: readonly DiffLine[];
}

function Lines({ path, lines }: LinesProps): ReactNode {
  return (
    <div
      role="group"
      aria-label={`Change of ${path}`}
      tabIndex={0}
      className="max-h-96 overflow-auto py-1 font-mono text-xs"
    >
      {lines.slice(0, mostLines).map(({ mark, text }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity, and do not move.
        <div key={at} className={`flex ${lineStyles[mark]}`}>
          <span aria-hidden="true" className="w-7 shrink-0 select-none text-center opacity-80">
            {signs[mark]}
          </span>
          <span className="min-w-0 whitespace-pre-wrap pr-3 foreign">
            <span className="sr-only">{names[mark]}</span>
            {visible(text.slice(0, 4_000))}
          </span>
        </div>
      ))}
      {lines.length > mostLines ? (
        <p className="px-3 text-soft">… {lines.length - mostLines} more lines</p>
      ) : null}
    </div>
  );
}
