import { Link, type LinkProps } from "@tanstack/react-router";
import { Fragment, type ReactNode, useEffect } from "react";
import { useTitle } from "../shell/title.ts";

interface PageProps {
  readonly title: string;
  /** The screens above this one. */
  readonly crumbs?: readonly { readonly label: string; readonly link: LinkProps }[] | undefined;
  readonly actions?: ReactNode;
  /** Below the title: links to the screens beside this one. */
  readonly tabs?: ReactNode;
  /** Below the tabs: a search field and filters. */
  readonly bar?: ReactNode;
  /** The screen scrolls its own parts, such as a chat. */
  readonly isFixed?: boolean;
  readonly children: ReactNode;
}

/** A screen: its title and actions, its tabs, its filters, and its content below them. The title is at the same place on every screen. */
export function Page({
  title,
  crumbs = [],
  actions,
  tabs,
  bar,
  isFixed = false,
  children,
}: PageProps): ReactNode {
  const setTitle = useTitle();
  useEffect(() => setTitle(title), [title, setTitle]);
  return (
    <div className={`flex min-w-0 flex-1 flex-col ${isFixed ? "h-full min-h-0" : "min-h-full"}`}>
      <header className="sticky top-0 z-10 shrink-0 border-line border-b bg-back">
        <div className="flex min-h-13 flex-wrap items-center gap-x-3 px-4 sm:px-6">
          <nav aria-label="Where you are" className="flex h-13 min-w-0 items-center gap-1.5 text-sm">
            {crumbs.map(({ label, link }) => (
              <Fragment key={label}>
                <Link {...link} className="max-w-40 truncate py-1 text-soft hover:text-ink hover:underline">
                  {label}
                </Link>
                <span className="text-faint">/</span>
              </Fragment>
            ))}
            <h1 className="truncate font-semibold text-base" title={title}>
              <bdi>{title}</bdi>
            </h1>
          </nav>
          {actions === undefined || actions === null ? null : (
            <div className="ml-auto flex flex-wrap items-center gap-2 py-2">{actions}</div>
          )}
        </div>
        {tabs === undefined ? null : <div className="-mt-1.5 px-4 sm:px-6">{tabs}</div>}
        {bar === undefined ? null : (
          <div
            role="search"
            className={`flex flex-wrap items-center gap-2 px-4 py-2 sm:px-6 ${tabs === undefined ? "" : "border-line border-t"}`}
          >
            {bar}
          </div>
        )}
      </header>
      {children}
    </div>
  );
}

/** The content of a screen that scrolls as a whole. */
export function Body({ children }: { readonly children: ReactNode }): ReactNode {
  return <div className="flex w-full max-w-6xl flex-col gap-6 px-4 py-5 sm:px-6">{children}</div>;
}

interface PanelProps {
  readonly title?: ReactNode;
  readonly count?: number | undefined;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A part of a screen with a heading. */
export function Panel({ title, count, actions, children }: PanelProps): ReactNode {
  return (
    <section className="min-w-0 overflow-clip rounded-lg border border-line bg-panel">
      {title === undefined ? null : (
        <div className="flex min-h-10 items-center gap-2 border-line border-b px-4 py-1.5">
          <h2 className="font-medium text-sm">{title}</h2>
          {count === undefined ? null : (
            <span className="text-faint text-xs tabular">{count.toLocaleString()}</span>
          )}
          <div className="ml-auto flex items-center gap-2">{actions}</div>
        </div>
      )}
      {children}
    </section>
  );
}
