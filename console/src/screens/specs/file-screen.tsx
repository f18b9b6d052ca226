import { Link, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { LineTable } from "../../ui/source-lines.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";

const pageSize = 500;
/** How many lines are shown before the marked one. */
const before = 20;

/** A file of the repository, read-only, opened at a line. */
export function FileScreen(): ReactNode {
  const { path = "", line, start } = useSearch({ from: "/console/files" });
  const markedLine = numberOf(line);
  const from = numberOf(start) ?? Math.max(1, (markedLine ?? 1) - before);
  const file = useServer({
    key: ["file", path, from],
    enabled: path !== "",
    ask: (client, signal) =>
      client.files.lines({ path, start_line: from, end_line: from + pageSize - 1 }, { signal }),
  });
  const at = (first: number) => ({ path, line, start: String(Math.max(1, first)) });
  return (
    <Page title={path === "" ? "File" : visible(path)}>
      <Body>
        {path === "" ? (
          <Notice icon="file" title="Which file?">
            The address names a file of the repository, such as ?path=src/app.ts&line=12.
          </Notice>
        ) : (
          <Answer query={file}>
            {({ lines, start_line, total_lines, cut }) => {
              const end = start_line + lines.length - 1;
              return (
                <Panel
                  title={`Lines ${start_line.toLocaleString()} to ${end.toLocaleString()} of ${total_lines.toLocaleString()}`}
                  actions={
                    <>
                      {start_line > 1 ? (
                        <Link
                          to="/console/files"
                          search={at(start_line - pageSize)}
                          className="text-accent text-sm hover:underline"
                        >
                          Earlier
                        </Link>
                      ) : null}
                      {end < total_lines ? (
                        <Link
                          to="/console/files"
                          search={at(end + 1)}
                          className="text-accent text-sm hover:underline"
                        >
                          Later
                        </Link>
                      ) : null}
                    </>
                  }
                >
                  <LineTable lines={lines} start={start_line} from={markedLine ?? 0} to={markedLine ?? 0} />
                  {cut === true ? <p className="px-4 py-2 text-soft text-xs">Long lines are cut.</p> : null}
                </Panel>
              );
            }}
          </Answer>
        )}
      </Body>
    </Page>
  );
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,6}$/.test(text) ? Number(text) : undefined;
}
