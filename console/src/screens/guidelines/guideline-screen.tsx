import { Link, useParams } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import type { ConvertRequest, FileChange, Guideline } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useChange, useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Chip, Choice } from "../../ui/chips.tsx";
import { LongText } from "../../ui/long-text.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { Answer, Loading } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { FileDiff, isDue, isOverwrite, OverwriteBox, WriteRefusal } from "./file-diff.tsx";
import { nameOf } from "./tool-names.ts";

// Loads the Markdown parser when it is needed.
const Markdown = lazy(async () => ({ default: (await import("../../ui/markdown.tsx")).Markdown }));

const formats = ["steering", "fw_c", "fw_b", "copilot", "gemini", "windsurf", "cline", "zed"] as const;

/** One guideline: its text, its source, and its form in another tool's format. */
export function GuidelineScreen(): ReactNode {
  const { id } = useParams({ from: "/console/guidelines/$id" });
  const guideline = useServer({
    key: ["guideline", id],
    ask: (client, signal) => client.guidelines.get(id, { signal }),
  });
  return (
    <Page
      title={visible(guideline.data?.title ?? "Guideline")}
      crumbs={[{ label: "Guidelines", link: { to: "/console/guidelines" } }]}
    >
      <Body>
        <Answer query={guideline}>
          {(one) => (
            <>
              <Rule guideline={one} />
              <Conversion id={one.id} />
            </>
          )}
        </Answer>
      </Body>
    </Page>
  );
}

function Rule({ guideline }: { readonly guideline: Guideline }): ReactNode {
  const { source_type, source_file, file_pattern, aliases = [], tags, content, is_ignored } = guideline;
  return (
    <Panel
      title={<SourceLink path={source_file} />}
      actions={
        <>
          {is_ignored ? <Chip tone="warn">not in Git</Chip> : null}
          <Chip>{nameOf(source_type)}</Chip>
        </>
      }
    >
      <div className="flex flex-col gap-3 p-4 text-sm">
        {file_pattern === undefined ? null : (
          <p className="text-soft foreign">
            Applies to <code className="font-mono text-xs">{visible(file_pattern)}</code>
          </p>
        )}
        {aliases.length === 0 ? null : (
          <p className="text-soft foreign">Also {visible(aliases.join(", "))}</p>
        )}
        {tags.length === 0 ? null : <p className="text-faint text-xs foreign">{visible(tags.join(", "))}</p>}
        <Suspense fallback={<Loading />}>
          <Markdown text={content} from={source_file} />
        </Suspense>
        <p className="text-xs">
          <Link
            to="/console/guidelines/explain"
            search={{ file: source_file }}
            className="text-accent underline"
          >
            What applies to this file
          </Link>
        </p>
      </div>
    </Panel>
  );
}

function Conversion({ id }: { readonly id: string }): ReactNode {
  const [format, setFormat] = useState<ConvertRequest["format"]>();
  const preview = useServer({
    key: ["conversion", id, format],
    enabled: format !== undefined,
    ask: (client, signal) =>
      client.guidelines.convert({ guideline_id: id, format: format ?? "fw_c", preview: true }, { signal }),
  });
  return (
    <Panel title="In another format">
      <div className="flex flex-col gap-3 p-4">
        <Choice
          label="Format"
          value={format ?? ""}
          onChoose={(value) => setFormat(formats.find((one) => one === value))}
          choices={formats.map((value) => ({ value, label: nameOf(value) }))}
        />
        {format === undefined ? (
          <p className="text-soft text-sm">Choose a tool. You see the result before anything is written.</p>
        ) : (
          <Answer query={preview}>
            {({ filename, content, losses, change }) => (
              <>
                {losses.map((loss) => (
                  <p key={loss} className="text-sm text-warn foreign">
                    {visible(loss)}
                  </p>
                ))}
                {losses.length === 0 ? <p className="text-good text-sm">Nothing is lost.</p> : null}
                <h3 className="font-mono text-soft text-xs foreign">{visible(filename)}</h3>
                <LongText label={filename} value={content} />
                {change === undefined ? null : (
                  <WriteConversion
                    key={format}
                    change={change}
                    request={{ guideline_id: id, format }}
                    isStale={preview.isFetching}
                  />
                )}
              </>
            )}
          </Answer>
        )}
      </div>
    </Panel>
  );
}

/** The file that the conversion creates or changes, as a diff, with a button to write it. */
function WriteConversion({
  change,
  request,
  isStale,
}: {
  readonly change: FileChange;
  readonly request: ConvertRequest;
  /** Whether a newer preview is loading. */
  readonly isStale: boolean;
}): ReactNode {
  const write = useChange(
    (client, body: ConvertRequest) => client.guidelines.convert({ ...body, preview: false }),
    ["conversion", "guidelines", "guideline", "guideline-lint", "sync"],
  );
  // The user's consent covers this text only.
  const [agreed, setAgreed] = useState<string>();
  const { path, action, digest } = change;
  const overwrite = agreed === digest;
  return (
    <div className="flex flex-col gap-3">
      {write.isError ? <WriteRefusal error={write.error} /> : null}
      {write.data?.written_to === undefined ? null : (
        <p role="status" className="text-good text-sm foreign">
          {`Written: ${visible(write.data.written_to)}`}
        </p>
      )}
      <FileDiff change={change} />
      {isReadOnly || action === "unchanged" ? null : (
        <div className="flex flex-wrap items-center gap-3">
          {isOverwrite(change) ? (
            <OverwriteBox isChecked={overwrite} onChange={(is) => setAgreed(is ? digest : undefined)}>
              {`Replace what is in ${visible(path)}`}
            </OverwriteBox>
          ) : null}
          <Button
            variant="solid"
            icon="check"
            isBusy={write.isPending}
            disabled={isStale || !isDue(change, { overwrite })}
            onClick={() => write.mutate({ ...request, overwrite, expected: digest })}
          >
            {action === "create" ? "Write this file" : "Write this change"}
          </Button>
        </div>
      )}
    </div>
  );
}
