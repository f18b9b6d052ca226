import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useServer } from "../api/use-server.ts";
import { Scroll } from "./scroll.tsx";
import { Answer } from "./states.tsx";
import { visible } from "./text.ts";

interface SourceLinesProps {
  readonly path: string;
  /** The marked lines, from 1. */
  readonly from: number;
  readonly to: number;
}

/** How many lines around a span are shown. */
const around = 3;
const mostLines = 400;

/** A span of a file of the repository with the lines around it and line numbers. */
export function SourceLines({ path, from, to }: SourceLinesProps): ReactNode {
  const start = Math.max(1, from - around);
  const end = Math.min(to, from + mostLines) + around;
  const query = useServer({
    key: ["file", path, start, end],
    ask: (client, signal) => client.files.lines({ path, start_line: start, end_line: end }, { signal }),
  });
  return (
    <Answer query={query}>
      {({ lines, start_line, cut }) => (
        <>
          <Scroll label={`Source of ${path}`} className="max-h-160">
            <LineTable lines={lines} start={start_line} from={from} to={to} />
          </Scroll>
          {cut === true ? <p className="px-4 py-2 text-soft text-xs">Long lines are cut.</p> : null}
          {to > end ? (
            <p className="px-4 py-2 text-soft text-xs">
              {`${(to - end).toLocaleString()} more lines: `}
              <Link
                to="/console/files"
                search={{ path, start: String(end) }}
                className="text-accent underline"
              >
                the file
              </Link>
            </p>
          ) : null}
        </>
      )}
    </Answer>
  );
}

interface LineTableProps {
  readonly lines: readonly string[];
  /** The number of the first line. */
  readonly start: number;
  /** The marked lines. */
  readonly from: number;
  readonly to: number;
}

export function LineTable({ lines, start, from, to }: LineTableProps): ReactNode {
  return (
    <table className="w-full border-collapse font-mono text-xs">
      <tbody>
        {lines.map((line, index) => {
          const number = start + index;
          const isMarked = number >= from && number <= to;
          return (
            <tr key={number} className={isMarked ? "bg-accent-back" : ""} data-marked={isMarked || undefined}>
              <td
                className={`w-0 select-none px-3 text-right align-top tabular ${isMarked ? "text-ink" : "text-faint"}`}
              >
                {number}
              </td>
              <td className="whitespace-pre-wrap py-px pr-4 foreign">{visible(line)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
