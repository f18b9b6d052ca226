import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Status } from "./status.tsx";
import { visible } from "./text.ts";
import { Age } from "./time.tsx";

interface ListRowProps {
  /** The screen that shows the item. */
  readonly link: LinkProps;
  readonly status: string;
  readonly title: string;
  /** Distinguishes the item from others of the same title. */
  readonly aside?: string | undefined;
  /** The second line: the reason of a failure, the wait, the cause. */
  readonly detail?: ReactNode;
  readonly isBad?: boolean;
  /** A duration or a cost, beside the time; left out in a narrow window. */
  readonly figure?: string | undefined;
  readonly at: string;
}

/** One conversation, run or dispatch in a list: its state and title, what tells it apart, and when it began. */
export function ListRow({
  link,
  status,
  title,
  aside,
  detail,
  isBad = false,
  figure,
  at,
}: ListRowProps): ReactNode {
  return (
    <Link {...link} preload={false} className="@container block py-0 text-sm hover:bg-raised">
      {/* A narrow list, on a phone or in half of Home, has the state on the second line: the first is the title's. */}
      <span className="grid min-h-13 @2xl:grid-cols-[7rem_minmax(0,1fr)_auto_4.5rem] grid-cols-[auto_minmax(0,1fr)_auto] content-center items-center gap-x-3 gap-y-0.5 @2xl:px-6 px-4 @2xl:py-1.5 py-1 [grid-template-areas:'title_title_age'_'status_detail_detail'] @2xl:[grid-template-areas:'status_title_figure_age'_'status_detail_figure_age']">
        <span className="[grid-area:status]">
          <Status value={status} />
        </span>
        <span className="flex min-w-0 items-baseline gap-2 [grid-area:title]">
          <bdi className="min-w-0 truncate font-medium">{visible(title)}</bdi>
          {aside === undefined ? null : (
            <bdi className="min-w-8 shrink-[1000] truncate text-faint text-xs">{visible(aside)}</bdi>
          )}
        </span>
        {detail === undefined || detail === "" ? null : (
          <span
            className={`line-clamp-2 text-xs [grid-area:detail] foreign ${isBad ? "text-bad" : "text-soft"}`}
          >
            {detail}
          </span>
        )}
        <span className="hidden text-right text-faint text-xs tabular [grid-area:figure] @2xl:block">
          {figure}
        </span>
        <span className="text-right text-faint text-xs [grid-area:age]">
          <Age at={at} />
        </span>
      </span>
    </Link>
  );
}
