import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { type SyncBody, syncFormats } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useChange, useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/chips.tsx";
import { Body, Page } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { FileDiff, isDue, isOverwrite, OverwriteBox, WriteRefusal } from "./file-diff.tsx";
import { GuidelineTabs } from "./guideline-tabs.tsx";
import { nameOf } from "./tool-names.ts";

/** The files of other tools from one source of truth: each as a diff before it is written. */
export function SyncScreen(): ReactNode {
  const { from = "" } = useSearch({ from: "/console/guidelines/sync" });
  // Another source means another plan, so consent and results are reset.
  return <Sync key={from} from={from} />;
}

function Sync({ from }: { readonly from: string }): ReactNode {
  const navigate = useNavigate();
  const source = syncFormats.find((one) => one === from);
  const plan = useServer({
    key: ["sync", from],
    enabled: source !== undefined,
    ask: (client, signal) => client.guidelines.sync({ source }, { signal }),
  });
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
            onClick={() =>
              write.mutate({
                source,
                overwrite,
                expected: entries.map(({ path, digest }) => ({ path, digest })),
              })
            }
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
