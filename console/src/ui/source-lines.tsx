import type { ReactNode } from "react";
import { useServer } from "../api/use-server.ts";
import { Scroll } from "./scroll.tsx";
import { Answer } from "./states.tsx";

interface SourceLinesProps {
  readonly path: string;
  /** Lines that are marked, from 1. */
  readonly from: number;
  readonly to: number;
}

/** Lines around a span that are shown with it. */
const around = 3;

/** A span of a file of the repository with the lines around it, each with its number. */
export function SourceLines({ path, from, to }: SourceLinesProps): ReactNode {
  const start = Math.max(1, from - around);
  const query = useServer({
    key: ["file", path, start, to],
    ask: (client, signal) =>
      client.files.lines(
        { path, start_line: start, end_line: Math.min(to, from + 400) + around },
        { signal },
      ),
  });
  return (
    <Answer query={query}>
      {({ lines, start_line, cut }) => (
        <>
          <Scroll label={`Source of ${path}`} className="max-h-128">
            <table className="w-full border-collapse font-mono text-xs">
              <tbody>
                {lines.map((line, index) => {
                  const number = start_line + index;
                  const isMarked = number >= from && number <= to;
                  return (
                    <tr key={number} className={isMarked ? "bg-accent-back" : ""}>
                      <td className="w-0 select-none px-3 text-right align-top text-faint tabular">
                        {number}
                      </td>
                      <td className="whitespace-pre-wrap py-px pr-4 foreign">{line}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </Scroll>
          {cut === true ? <p className="px-4 py-2 text-soft text-xs">Long lines are cut.</p> : null}
        </>
      )}
    </Answer>
  );
}
