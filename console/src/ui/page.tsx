import { Link, type LinkProps } from "@tanstack/react-router";
import { Fragment, type ReactNode, useEffect } from "react";
import { useTitle } from "../shell/title.ts";

interface PageProps {
  readonly title: string;
  /** The screens above this one. */
  readonly crumbs?: readonly { readonly label: string; readonly link: LinkProps }[] | undefined;
  readonly actions?: ReactNode;
  /** Below the title: filters, tabs. */
  readonly bar?: ReactNode;
  /** The screen scrolls its own parts, such as a chat. */
  readonly isFixed?: boolean;
  readonly children: ReactNode;
}

/** A screen: its title and actions, and its content below them. */
export function Page({ title, crumbs = [], actions, bar, isFixed = false, children }: PageProps): ReactNode {
  const setTitle = useTitle();
  useEffect(() => setTitle(title), [title, setTitle]);
  return (
    <div className={`flex min-w-0 flex-1 flex-col ${isFixed ? "h-full min-h-0" : "min-h-full"}`}>
      <header className="sticky top-0 z-10 flex min-h-13 shrink-0 flex-wrap items-center gap-x-3 gap-y-2 border-line border-b bg-back/90 px-4 py-2 backdrop-blur sm:px-6">
        <nav aria-label="Where you are" className="flex min-w-0 items-center gap-1.5 text-sm">
          {crumbs.map(({ label, link }) => (
            <Fragment key={label}>
              <Link {...link} className="max-w-40 truncate text-soft hover:text-ink hover:underline">
                {label}
              </Link>
              <span className="text-faint">/</span>
            </Fragment>
          ))}
          <h1 className="truncate font-semibold text-base" title={title}>
            <bdi>{title}</bdi>
          </h1>
        </nav>
        <div className="ml-auto flex flex-wrap items-center gap-2">{actions}</div>
        {bar === undefined ? null : <div className="flex w-full flex-wrap items-center gap-2">{bar}</div>}
      </header>
      {children}
    </div>
  );
}

/** The content of a screen that scrolls as a whole. */
export function Body({ children }: { readonly children: ReactNode }): ReactNode {
  return <div className="mx-auto flex w-full max-w-6xl flex-col gap-6 px-4 py-5 sm:px-6">{children}</div>;
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
          {count === undefined ? null : <span className="text-faint text-xs tabular">{count}</span>}
          <div className="ml-auto flex items-center gap-2">{actions}</div>
        </div>
      )}
      {children}
    </section>
  );
}
