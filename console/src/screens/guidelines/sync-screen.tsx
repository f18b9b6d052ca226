import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import {
  type FileChange,
  type SyncBody,
  type SyncFormat,
  syncFormats,
} from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useChange, useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/chips.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Body, Page } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { FileDiff, isDue, isOverwrite, OverwriteBox, WriteRefusal } from "./file-diff.tsx";
import { GuidelineTabs } from "./guideline-tabs.tsx";
import { nameOf } from "./tool-names.ts";

/** The files of other tools from one source of truth: each as a diff before it is written. */
export function SyncScreen(): ReactNode {
  const { from = "", to } = useSearch({ from: "/console/guidelines/sync" });
  // Another source or target means another plan, so consent and results are reset.
  return <Sync key={`${from} ${to}`} from={from} to={to} />;
}

function Sync({ from, to }: { readonly from: string; readonly to: string | undefined }): ReactNode {
  const navigate = useNavigate();
  const source = syncFormats.find((one) => one === from);
  const chosen = to === undefined ? undefined : syncFormats.filter((one) => to.split(",").includes(one));
  const hasPlan = source !== undefined && chosen?.length !== 0;
  const plan = useServer({
    key: ["sync", from, to],
    enabled: hasPlan,
    ask: (client, signal) => client.guidelines.sync({ source, targets: chosen }, { signal }),
  });
  const planned = plan.data?.targets ?? [];
  const targets = chosen ?? syncFormats.filter((one) => planned.includes(one));
  const [isAsking, setAsking] = useState(false);
  const write = useChange(
    (client, body: SyncBody) => client.guidelines.sync({ ...body, preview: false }),
    ["sync", "guidelines", "guideline-lint"],
  );
  const entries = plan.data?.entries ?? [];
  const inTheWay = entries.filter(isOverwrite);
  // The user's consent covers these texts only; others need consent again.
  const texts = inTheWay.map(({ digest }) => digest).join();
  const [agreed, setAgreed] = useState("");
  const overwrite = inTheWay.length > 0 && agreed === texts;
  const pending = entries.filter((entry) => isDue(entry, { overwrite }));
  const files = `${pending.length.toLocaleString()} ${pending.length === 1 ? "file" : "files"}`;
  const setTargets = (formats: readonly SyncFormat[]): void =>
    void navigate({ to: "/console/guidelines/sync", search: { from, to: formats.join() } });
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
            disabled={plan.isFetching}
            onClick={() => setAsking(true)}
          >
            {`Write ${files}…`}
          </Button>
        )
      }
      tabs={<GuidelineTabs />}
      bar={
        <>
          <Choice
            label="Source of truth"
            value={from}
            onChoose={(value) => void navigate({ to: "/console/guidelines/sync", search: { from: value } })}
            choices={syncFormats.map((value) => ({ value, label: nameOf(value) }))}
          />
          {source === undefined || (chosen === undefined && plan.isPending) ? null : (
            <Targets source={source} targets={targets} onChange={setTargets} />
          )}
        </>
      }
    >
      <Body>
        {isAsking && source !== undefined ? (
          <Confirmation
            title={`Write ${files}?`}
            pending={pending}
            onClose={() => setAsking(false)}
            onWrite={() => {
              setAsking(false);
              write.mutate({
                source,
                targets: chosen ?? [...planned],
                overwrite,
                expected: entries.map(({ path, digest }) => ({ path, digest })),
              });
            }}
          />
        ) : null}
        {write.isError ? <WriteRefusal error={write.error} /> : null}
        {write.data === undefined || write.data.written.length === 0 ? null : (
          <p
            role="status"
            className="text-good text-sm foreign"
          >{`Written: ${visible(write.data.written.join(", "))}`}</p>
        )}
        {source === undefined ? (
          <Notice icon="guidelines" title="Which rules are the source?">
            Choose the tool whose rules the others follow. Nothing is written before you have seen it.
          </Notice>
        ) : !hasPlan ? (
          <Notice icon="guidelines" title="What should follow it?">
            Tick the formats to write. Nothing is written before you have seen it.
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
                {isReadOnly || inTheWay.length === 0 ? null : (
                  <OverwriteBox isChecked={overwrite} onChange={(is) => setAgreed(is ? texts : "")}>
                    {`Also overwrite what was written by hand: ${inTheWay.length} ${inTheWay.length === 1 ? "file" : "files"}`}
                  </OverwriteBox>
                )}
                {entries.map((entry) => (
                  <FileDiff key={entry.path} change={entry} losses={entry.losses} />
                ))}
              </>
            )}
          </Answer>
        )}
      </Body>
    </Page>
  );
}

/** The formats to write. */
function Targets({
  source,
  targets,
  onChange,
}: {
  readonly source: SyncFormat;
  readonly targets: readonly SyncFormat[];
  readonly onChange: (targets: readonly SyncFormat[]) => void;
}): ReactNode {
  const has = (format: SyncFormat): boolean => targets.includes(format);
  return (
    <fieldset className="flex w-full flex-wrap items-center gap-x-4 gap-y-1 text-sm">
      <legend className="float-left mr-4 text-soft">Write</legend>
      {syncFormats
        .filter((format) => format !== source)
        .map((format) => (
          <label key={format} className="flex min-h-7 items-center gap-1.5">
            <input
              type="checkbox"
              checked={has(format)}
              onChange={() =>
                onChange(syncFormats.filter((one) => one !== source && has(one) !== (one === format)))
              }
            />
            {nameOf(format)}
          </label>
        ))}
    </fieldset>
  );
}

const verbs = { create: "created", update: "changed", delete: "deleted", conflict: "overwritten" } as const;

/** Names what a write does, before it does it. */
function Confirmation({
  title,
  pending,
  onClose,
  onWrite,
}: {
  readonly title: string;
  readonly pending: readonly FileChange[];
  readonly onClose: () => void;
  readonly onWrite: () => void;
}): ReactNode {
  return (
    <Dialog title={title} onClose={onClose}>
      <ul className="text-sm">
        {Object.entries(verbs).map(([action, verb]) => {
          const paths = pending.filter((change) => change.action === action).map(({ path }) => path);
          return paths.length === 0 ? null : (
            <li key={action} className="foreign">
              {`${paths.length.toLocaleString()} ${verb}: ${visible(shortList(paths))}`}
            </li>
          );
        })}
      </ul>
      <div className="flex justify-end gap-2">
        <Button variant="quiet" onClick={onClose}>
          Cancel
        </Button>
        <Button variant="solid" icon="check" onClick={onWrite}>
          Write
        </Button>
      </div>
    </Dialog>
  );
}

function shortList(paths: readonly string[]): string {
  const rest = paths.length - 5;
  return rest <= 1 ? paths.join(", ") : `${paths.slice(0, 5).join(", ")} and ${rest.toLocaleString()} more`;
}
