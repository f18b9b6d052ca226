import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { type SyncBody, type SyncResult, syncFormats } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useChange, useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Chip, Choice, type Tone } from "../../ui/chips.tsx";
import { diffLines } from "../../ui/line-diff.ts";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Scroll } from "../../ui/scroll.tsx";
import { Answer, ErrorNotice, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { GuidelineTabs } from "./guideline-tabs.tsx";
import { nameOf } from "./tool-names.ts";

type Entry = SyncResult["entries"][number];

const tones: Readonly<Record<Entry["action"], Tone>> = {
  create: "good",
  update: "warn",
  delete: "bad",
  conflict: "bad",
  unchanged: "plain",
};

/** The files of other tools from one source of truth: each as a diff before it is written. */
export function SyncScreen(): ReactNode {
  const { from = "" } = useSearch({ from: "/console/guidelines/sync" });
  const navigate = useNavigate();
  const source = syncFormats.find((one) => one === from);
  const request: SyncBody = { source };
  const plan = useServer({
    key: ["sync", from],
    enabled: source !== undefined,
    ask: (client, signal) => client.guidelines.sync(request, { signal }),
  });
  const write = useChange(
    (client, body: SyncBody) => client.guidelines.sync({ ...body, preview: false }),
    ["sync", "guidelines", "guideline-lint"],
  );
  const [overwrite, setOverwrite] = useState(false);
  const entries = plan.data?.entries ?? [];
  const conflicts = entries.filter(({ action }) => action === "conflict").length;
  const pending = entries.filter(
    ({ action }) => action !== "unchanged" && (overwrite || action !== "conflict"),
  );
  return (
    <Page
      title="Sync"
      crumbs={[{ label: "Guidelines", link: { to: "/console/guidelines" } }]}
      actions={
        isReadOnly || pending.length === 0 ? undefined : (
          <Button
            variant="solid"
            icon="check"
            isBusy={write.isPending}
            onClick={() => write.mutate({ ...request, overwrite })}
          >
            {`Write ${pending.length} ${pending.length === 1 ? "file" : "files"}`}
          </Button>
        )
      }
      bar={
        <>
          <GuidelineTabs />
          <Choice
            label="Source of truth"
            value={from}
            onChoose={(value) => void navigate({ to: "/console/guidelines/sync", search: { from: value } })}
            choices={syncFormats.map((value) => ({ value, label: nameOf(value) }))}
          />
        </>
      }
    >
      <Body>
        {write.isError ? <ErrorNotice error={write.error} /> : null}
        {write.data === undefined ? null : (
          <p
            role="status"
            className="text-good text-sm foreign"
          >{`Written: ${visible(write.data.written.join(", "))}`}</p>
        )}
        {source === undefined ? (
          <Notice icon="guidelines" title="Which file is the truth?">
            Choose the tool whose rules the others follow. Nothing is written before you have seen it.
          </Notice>
        ) : (
          <Answer query={plan}>
            {({ entries, left_out, read_directly, in_sync }) => (
              <>
                {in_sync ? <p className="text-good text-sm">Everything is up to date.</p> : null}
                {[...read_directly, ...left_out].map((sentence) => (
                  <p key={sentence} className="text-soft text-sm foreign">
                    {visible(sentence)}
                  </p>
                ))}
                {isReadOnly || conflicts === 0 ? null : (
                  <label className="flex items-center gap-2 text-sm">
                    <input
                      type="checkbox"
                      checked={overwrite}
                      onChange={({ target }) => setOverwrite(target.checked)}
                    />
                    {`Also overwrite what was written by hand: ${conflicts} ${conflicts === 1 ? "file" : "files"}`}
                  </label>
                )}
                {entries.map((entry) => (
                  <FileDiff key={entry.path} entry={entry} />
                ))}
              </>
            )}
          </Answer>
        )}
      </Body>
    </Page>
  );
}

const lineStyles = {
  "+": "bg-good-back text-good",
  "-": "bg-bad-back text-bad",
  " ": "",
  "@": "text-faint",
} as const;

function FileDiff({ entry }: { readonly entry: Entry }): ReactNode {
  const { path, action, before = "", after = "", reason, losses } = entry;
  const lines = action === "unchanged" ? [] : diffLines(before, after);
  return (
    <Panel
      title={<bdi className="font-mono text-xs foreign">{visible(path)}</bdi>}
      actions={<Chip tone={tones[action]}>{action}</Chip>}
    >
      {reason === undefined ? null : <p className="px-4 py-2 text-soft text-sm foreign">{visible(reason)}</p>}
      {losses.map((loss) => (
        <p key={loss} className="px-4 py-1 text-sm text-warn foreign">
          {visible(loss)}
        </p>
      ))}
      {lines.length === 0 ? null : (
        <Scroll label={`Changes of ${path}`} className="max-h-96 py-2 font-mono text-xs">
          {lines.map(({ mark, text }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a diff has nothing but its order.
            <div key={index} className={`whitespace-pre-wrap px-4 foreign ${lineStyles[mark]}`}>
              {visible(`${mark} ${text.slice(0, 4_000)}`)}
            </div>
          ))}
        </Scroll>
      )}
    </Panel>
  );
}
